#!/usr/bin/env python3
"""tests/lua/command.py HEDDLE - what `heddle lua` answers to right and wrong command lines, and what it says."""
import os
import subprocess
import sys
import tempfile
import unittest

heddle = sys.argv.pop(1)


def lua(program, *arguments, options=(), stdin="", command="lua", environment=None):
    with tempfile.TemporaryDirectory() as directory:
        file = os.path.join(directory, "program.lua")
        with open(file, "w") as f:
            f.write(program)
        with open(os.path.join(directory, "beside.lua"), "w") as f:
            f.write("return function(to, n) heddle.send(to, n + 1) end")
        return subprocess.run([heddle, command, *options, file, *arguments], input=stdin, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, env=dict(os.environ, **(environment or {})), timeout=60)


class Status(unittest.TestCase):
    def test_returns(self):
        done = lua("print(...)", "a", "b c")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "a\tb c\n", ""))

    def test_arg(self):
        self.assertEqual(lua("print(#arg, arg[1], arg[0]:match('program.lua'))", "x").stdout, "1\tx\tprogram.lua\n")

    def test_error(self):
        done = lua("local function f()\n  error('boom')\nend\nf()\n")
        self.assertEqual(done.returncode, 1)
        self.assertIn("(main) died: ", done.stderr)
        self.assertIn("program.lua:2: boom", done.stderr)
        self.assertIn("program.lua:4: in main chunk", done.stderr)

    def test_syntax(self):
        done = lua("x = = 1")
        self.assertEqual(done.returncode, 1)
        self.assertIn("program.lua:1: unexpected symbol near '='", done.stderr)

    def test_error_of_another_process(self):
        done = lua("heddle.spawn_with({name = 'child'}, function() undefined() end) heddle.sleep(0.01) print 'on'")
        self.assertEqual((done.returncode, done.stdout), (0, "on\n"))
        self.assertIn("(child) died: ", done.stderr)
        self.assertIn("each process has globals of its own", done.stderr)

    def test_exit_of_the_program(self):
        self.assertEqual(lua("heddle.spawn(function() while true do end end) os.exit(7)").returncode, 7)
        self.assertEqual(lua("heddle.spawn(function() os.exit(false) end) heddle.receive()").returncode, 1)
        self.assertEqual(lua("io.write('flushed') os.exit()").stdout, "flushed")

    def test_exit_with_a_reason(self):
        done = lua("heddle.exit('enough')")
        self.assertEqual((done.returncode, done.stderr), (1, ""))

    def test_deadlock(self):
        done = lua("heddle.receive()")
        self.assertEqual(done.returncode, 1)
        self.assertIn("deadlock", done.stderr)

    def test_daemon(self):
        self.assertEqual(lua("heddle.spawn_with({daemon = true}, function() heddle.receive() end)").returncode, 0)

    def test_goes_on_after_the_first_process(self):
        done = lua("heddle.spawn(function() heddle.sleep(0.01) print 'later' end) print 'first'")
        self.assertEqual((done.returncode, done.stdout), (0, "first\nlater\n"))


class Options(unittest.TestCase):
    def test_memory(self):
        done = lua("local t = {} while true do t[#t + 1] = {} end", options=["--memory", "1M"])
        self.assertEqual(done.returncode, 1)
        self.assertIn("died: not enough memory", done.stderr)
        self.assertEqual(lua("s = ('x'):rep(20 << 20)", options=["--memory", "0"]).returncode, 0)

    def test_workers(self):
        self.assertEqual(lua("print(heddle.stats().workers)", options=["--workers", "3"]).stdout, "3\n")

    def test_wrong(self):
        for options in (["--workers", "0"], ["--workers", "x"], ["--memory", "-1"], ["--memory", "1T"], ["--budget", "0"], ["--no"]):
            done = lua("print 'ran'", options=options)
            self.assertEqual((done.returncode, done.stdout), (2, ""), options)
            self.assertNotEqual(done.stderr, "", options)

    def test_no_file(self):
        done = subprocess.run([heddle, "lua"], text=True, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (2, "heddle: which file? `heddle help lua` explains\n"))
        done = subprocess.run([heddle, "lua", "/nowhere/x.lua"], text=True, stderr=subprocess.PIPE)
        self.assertEqual((done.returncode, done.stderr), (2, "heddle: /nowhere/x.lua: No such file or directory\n"))

    def test_help(self):
        for words in (["help", "lua"], ["lua", "--help"]):
            done = subprocess.run([heddle, *words], text=True, stdout=subprocess.PIPE)
            self.assertEqual(done.returncode, 0)
            self.assertIn("--memory BYTES", done.stdout)

    def test_run_knows_better(self):
        done = lua("print 1", command="run")
        self.assertEqual(done.returncode, 2)
        self.assertIn("heddle lua ", done.stderr)


class Modules(unittest.TestCase):
    def test_beside_the_file(self):
        done = lua("heddle.spawn('beside', heddle.self(), 41) print((heddle.receive()))")
        self.assertEqual(done.stdout, "42\n")


class Input(unittest.TestCase):
    program = """
        local ticks = 0
        heddle.spawn_with({daemon = true}, function() while true do heddle.sleep(0.001) end end)
        for line in heddle.read_line do print(#line, line) end
        print(heddle.read_line())
    """

    def test_lines(self):
        done = lua(self.program, stdin="one\n\ntwo\0three\nlast")
        self.assertEqual(done.stdout, "3\tone\n0\t\n9\ttwo\0three\n4\tlast\nnil\n")

    def test_a_reader_that_is_killed(self):
        read, write = os.pipe()
        program = """
            local p = heddle.spawn_with({watch = true}, function() heddle.read_line() end)
            heddle.sleep(0.01)
            heddle.kill(p)
            heddle.receive({'ended', p, 'killed'})
            print(heddle.read_line(0.01))
        """
        with tempfile.NamedTemporaryFile("w", suffix=".lua") as f:
            f.write(program)
            f.flush()
            done = subprocess.run([heddle, "lua", f.name], stdin=read, text=True, stdout=subprocess.PIPE, timeout=60)
        os.close(read)
        os.close(write)
        self.assertEqual((done.returncode, done.stdout), (0, "nil\ttimeout\n"))

    def test_lines_are_whole(self):
        done = lua("""
            for i = 1, 20 do heddle.spawn(function() for j = 1, 50 do print(("x"):rep(500), i, ("y"):rep(500)) end end) end
        """, options=["--workers", "4"])
        lines = done.stdout.splitlines()
        self.assertEqual(len(lines), 1000)
        for line in lines:
            self.assertRegex(line, r"^x{500}\t\d+\ty{500}$")


if __name__ == "__main__":
    unittest.main()
