#!/usr/bin/env python3
"""tests/inside/inside.py [-f] [GROUP...] - what `heddle ps`, `heddle waits` and `heddle bt` tell of programs that run, and of core files.

The programs are in subject.c: each comes to a certain state, prints "ready", and stays there. Nothing here waits for a time: what
is looked at stands still, or (Torn) is looked at as often as there is time."""
import glob
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEDDLE = os.environ["HEDDLE_COMMAND"]
PROGRAMS = os.environ["INSIDE_PROGRAMS"]
SANITIZED = os.environ["INSIDE_SANITIZED"] == "1"
with open(os.environ["HEDDLE_SCHEMA"]) as f:
    SCHEMA = json.load(f)
with open(os.path.join(os.path.dirname(os.environ["HEDDLE_SCHEMA"]), "bt.schema.json")) as f:
    BT_SCHEMA = json.load(f)
HAS_BT = os.environ["INSIDE_LIBDW"] == "1"


class Subject:
    """A program that is ready."""

    def __init__(self, *words, program="subject", workers=2, cwd=None, cores=False, errors=None, environment=None):
        def limit():
            most = resource.getrlimit(resource.RLIMIT_CORE)[1]
            resource.setrlimit(resource.RLIMIT_CORE, (most if cores else 0, most))

        path = program if os.path.isabs(program) else os.path.join(PROGRAMS, program)
        self.process = subprocess.Popen([path, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL if cores else errors,
                                        text=True, cwd=cwd, preexec_fn=limit,
                                        env=dict(os.environ, HEDDLE_WORKERS=str(workers), **(environment or {})))
        self.pid = self.process.pid
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{words} is not ready")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        if self.process.stderr:
            self.process.stderr.close()


def heddle(*words, user=None, cwd=None):
    return subprocess.run([HEDDLE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, user=user, cwd=cwd)


def check(value, schema, where="$", root=None):
    """The part of JSON Schema that ours uses."""
    root = root or schema
    if "$ref" in schema:
        schema = root["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "boolean": bool}
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or kind == "integer" and isinstance(value, bool)):
        raise AssertionError(f"{where}: {value!r} is no {kind}")
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        raise AssertionError(f"{where}: {value!r}")
    if kind == "array":
        for i, item in enumerate(value):
            check(item, schema["items"], f"{where}[{i}]", root)
    if kind == "object":
        for name in schema.get("required", ()):
            if name not in value:
                raise AssertionError(f"{where} has no {name}")
        for name, item in value.items():
            if name not in schema["properties"]:
                raise AssertionError(f"{where}.{name} is not in the schema")
            check(item, schema["properties"][name], f"{where}.{name}", root)


def ps(target, *options):
    done = heddle("ps", "--json", *options, target)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    answer = json.loads(done.stdout)
    check(answer, SCHEMA)
    return answer


def settled(s):
    """Of a program that stands still in a moment: what it does then."""
    before = None
    for _ in range(1000):
        answer = ps(s.pid)
        seen = answer["runtimes"][0]["processes"], answer["runtimes"][0]["workers"]
        if seen == before and all(p["state"] != "running" for p in seen[0]) and all(w["asleep"] for w in seen[1]):
            return answer
        before = seen
    raise AssertionError("the program does not come to rest")


def stuck(s):
    """Returns once all workers of the program have kept their processes for so long that it is told."""
    limit = time.monotonic() + 60
    while not re.search("the only worker runs|all workers are busy", heddle("waits", s.pid).stdout):
        if time.monotonic() > limit:
            raise AssertionError("the program does not keep its workers")
    time.sleep(0.1)  # a core file is some milliseconds behind


def by_name(answer):
    return {p["name"]: p for p in answer["runtimes"][0]["processes"]}


class Kinds(unittest.TestCase):
    """Every kind of wait is told, with its object and its holder."""

    def test_all(self):
        with Subject("kinds") as s:
            answer = settled(s)
        self.assertTrue(answer["live"])
        self.assertTrue(answer["runtimes"][0]["exact"])
        processes = by_name(answer)
        names = {p["pid"]: name for name, p in processes.items()}
        expected = {  # call, object, holder
            "in semaphore": ("hd_semaphore_wait", "semaphore", None),
            "in deadline": ("hd_semaphore_wait", "semaphore", None),
            "in condition": ("hd_condition_wait", "condition", None),
            "with book": ("hd_sleep", None, None),
            "in read": ("hd_rwlock_read", "rwlock", "with book"),
            "in write": ("hd_rwlock_write", "rwlock", "with book"),
            "in barrier": ("hd_barrier_wait", "barrier", None),
            "in event": ("hd_event_wait", "event", None),
            "in wait group": ("hd_waitgroup_wait", "wait group", None),
            "in promise": ("hd_promise_value", "promise", None),
            "in next": ("hd_queue_next", "queue", None),
            "in put": ("hd_queue_put", "queue", None),
            "in join": ("hd_join", None, "joined"),
            "in fd": ("hd_read", None, None),
            "in receive": ("hd_receive", "port", None),
            "in call": ("hd_call", None, "server"),
            "in mutex": ("hd_mutex_lock", "mutex", "with mutex"),
            "machine": ("hd_receive", None, None),
        }
        for name, (call, kind, holder) in expected.items():
            with self.subTest(name):
                p = processes[name]
                self.assertEqual(p["state"], "waiting")
                self.assertFalse(p["changing"])
                waits = p["waits"]
                self.assertEqual(waits["call"], call)
                self.assertEqual(waits.get("object", {}).get("kind"), kind)
                self.assertEqual(names.get(waits.get("holder", {}).get("pid")), holder)
                if holder:
                    self.assertIn(p["pid"], processes[holder]["waiters"])
                self.assertEqual(waits["deadline"], name in ("in deadline", "with book"))
        self.assertEqual(processes["in semaphore"]["waits"]["object"], processes["joined"]["waits"]["object"])
        self.assertIsInstance(processes["in fd"]["waits"]["fd"], int)
        self.assertEqual((processes["with mutex"]["priority"], processes["with mutex"]["lent"]), (30, 60))
        self.assertEqual(processes["zombie"]["state"], "ended")
        quoted = processes['quoted "name" \\']
        self.assertEqual((quoted["state"], quoted["daemon"], quoted["policy"], quoted["switches"]), ("suspended", True, "rr", 0))
        self.assertEqual(processes["machine"]["kind"], "machine")
        self.assertEqual(processes["machine"]["stack"]["size"], 0)
        self.assertEqual(processes["main"]["stack"]["size"], 8 << 20)
        used = processes["in semaphore"]["stack"]
        self.assertEqual(used["size"], 65536)
        self.assertTrue(0 < used["used"] <= used["size"])
        behaviours = [p for p in answer["runtimes"][0]["processes"] if p["kind"] == "behaviour"]
        self.assertEqual(len(behaviours), 2)
        runs, waits = sorted(behaviours, key=lambda p: p["waits"]["call"] != "hd_semaphore_wait")
        self.assertEqual(waits["waits"]["object"]["kind"], "cown")
        self.assertEqual(waits["waits"]["holder"], {"pid": runs["pid"]})

    def test_table(self):
        with Subject("kinds") as s:
            text = heddle("ps", s.pid).stdout
        self.assertIn(f"process {s.pid} (subject): heddle ", text)
        self.assertRegex(text, r"#\d+ +in mutex +process +waiting +60 +fifo .* hd_mutex_lock, mutex 0x[0-9a-f]+, held by with mutex #\d+\n")
        self.assertRegex(text, r"with mutex +process +waiting +30>60 .* in mutex #\d+ waits for its mutex 0x")
        self.assertRegex(text, r"in fd .* hd_read, fd \d+\n")
        self.assertRegex(text, r"machine +machine +waiting .* hd_receive\n")
        self.assertRegex(text, r"behaviour waiting .* hd_when, for its cowns, cown 0x[0-9a-f]+, held by behaviour #\d+\n")
        self.assertRegex(text, r"suspended,d .* has not begun\n")


class Explained(unittest.TestCase):
    """Why nothing moves."""

    def test_deadlock(self):
        with Subject("deadlock") as s:
            settled(s)
            done = heddle("waits", s.pid)
            dot = heddle("waits", "--dot", s.pid).stdout
        self.assertEqual(done.returncode, 1)
        lines = done.stdout.splitlines()
        self.assertEqual(lines[1], "a circle of 2 processes, each of which waits for the next: a deadlock")
        self.assertRegex(lines[2], r"^  ann #\d+ waits in hd_mutex_lock, mutex 0x[0-9a-f]+, held by bob #\d+, for ")
        self.assertRegex(lines[3], r"^  bob #\d+ waits in hd_mutex_lock, mutex 0x[0-9a-f]+, held by ann #\d+, for ")
        self.assertEqual(lines[4], "an owner has ended and has not given up what others wait for")
        self.assertIn("no process runs or is ready; 4 wait, 1 of them with a deadline, 0 for the system", lines)
        self.assertRegex(lines[5], r"^  seeker #[\d.]+ waits in hd_mutex_lock, mutex 0x[0-9a-f]+, held by process #\d+, which has ended, for ")
        self.assertEqual(len(re.findall(r'"ann #\d+" -> "bob #\d+" .*color=red', dot)), 1)
        self.assertEqual(dot.count("color=red"), 2)

    def test_loops_on_all_workers(self):
        for workers in 1, 2, 3:
            with Subject("loops", workers=workers) as s:
                stuck(s)
                done = heddle("waits", s.pid)
                running = [p["name"] for p in ps(s.pid)["runtimes"][0]["processes"] if p["state"] == "running"]
            self.assertEqual(done.returncode, 0)
            self.assertRegex(done.stdout, "the only worker runs" if workers == 1 else "all workers are busy: each runs a process that has not given way")
            for worker in range(workers):
                self.assertRegex(done.stdout, rf"  worker {worker} runs (main|spinner) #[\d.]+ of priority 40, for ")
            self.assertRegex(done.stdout, r"1 process is ready and runs nowhere, the first of them for .*hd_checkpoint")
            self.assertEqual(sorted(running), ["main"] + ["spinner"] * (workers - 1))

    def test_quit_of_loops(self):
        """The program itself tells of its stuck workers, as often as it is asked, and goes on."""
        with Subject("loops", errors=subprocess.PIPE, environment={"HEDDLE_QUIT": "dump"}) as s:
            stuck(s)
            for _ in range(2):
                os.kill(s.pid, signal.SIGQUIT)
                said = [s.process.stderr.readline()]
                while " runs " not in said[-1] or "worker 1" not in said[-1] or "given way" not in said[-1]:
                    said.append(s.process.stderr.readline())
                self.assertRegex(said[0], "^heddle: SIGQUIT: this is what the processes do")
                self.assertRegex(said[-2], r"^heddle: worker 0 runs (main|spinner) #\d+, which has not given way for ")
            self.assertIsNone(s.process.poll())

    def test_a_thread_has_a_mutex(self):
        with Subject("thread") as s:
            done = heddle("waits", s.pid)
            answer = ps(s.pid)
            thread = by_name(answer)["first"]["waits"]["holder"]["thread"]
            self.assertTrue(os.path.exists(f"/proc/{s.pid}/task/{thread}"))
        self.assertIn("plain threads, which heddle does not see into, have what processes wait for", done.stdout)
        self.assertRegex(done.stdout, rf"  first #1 waits in hd_mutex_lock, mutex 0x[0-9a-f]+, held by thread {thread} \(keeper\), for ")
        self.assertEqual(done.returncode, 0)

    def test_inversion(self):
        with Subject("inversion", workers=1) as s:
            done = heddle("waits", s.pid)
        self.assertRegex(done.stdout, r"priority inversion\n  high #\d+ of priority 70 waits in mutex 0x[0-9a-f]+ for low #\d+ of priority 20, which is "
                                      r"ready, and middle #\d+ of priority 50 runs\n")

    def test_no_false_circle(self):
        with Subject("kinds") as s:
            done = heddle("waits", s.pid)
        self.assertEqual(done.returncode, 0)
        self.assertNotIn("circle", done.stdout)
        self.assertNotIn("busy", done.stdout)


class WithCore(unittest.TestCase):
    def setUp(self):
        directory = tempfile.TemporaryDirectory()
        self.addCleanup(directory.cleanup)
        self.directory = directory.name

    def core(self, *words, look, number=signal.SIGABRT, **how):
        """What `look` tells of the program, and the core file that it leaves."""
        with open("/proc/sys/kernel/core_pattern") as f:
            pattern = f.read().strip()
        if SANITIZED:
            self.skipTest("a sanitizer's memory is not for core files")
        if pattern.startswith("|"):
            self.skipTest(f"core files go to a program: core_pattern is {pattern}")
        with Subject(*words, cwd=self.directory, cores=True, **how) as s:
            told = look(s)
            os.kill(s.pid, number)
            s.process.wait(timeout=100)
        where = self.directory if "/" not in pattern else os.path.dirname(pattern)
        files = [f for f in glob.glob(os.path.join(where, "*core*")) if os.path.getmtime(f) > time.time() - 100]
        if len(files) != 1:
            self.skipTest(f"there is no core file: core_pattern is {pattern}")
        return told, files[0]


class Cores(WithCore):
    """A core file tells what the program did."""

    def test_same_as_live(self):
        for program in "subject", "subject-inside", "subject-fixed":
            for words in ("kinds",), ("deadlock",), ("thread",), ("crowd", "300"):
                with self.subTest(program=program, words=words):
                    live, file = self.core(*words, look=settled, program=program)
                    dead = ps(file)
                    self.assertFalse(dead["live"])
                    self.assertEqual(dead["pid"], live["pid"])
                    self.assertEqual(dead["runtimes"][0]["processes"], live["runtimes"][0]["processes"])
                    self.assertEqual(dead["runtimes"][0]["workers"], live["runtimes"][0]["workers"])
                    os.unlink(file)

    def test_waits(self):
        live, file = self.core("deadlock", look=lambda s: settled(s) and heddle("waits", s.pid).stdout)
        dead = heddle("waits", file)
        self.assertEqual(dead.returncode, 1)
        without_times = [re.sub(r", for [\d.]+ s.*", "", line) for line in live.splitlines()[1:7]]
        self.assertEqual([re.sub(r", for [\d.]+ s.*", "", line) for line in dead.stdout.splitlines()[2:8]], without_times)
        self.assertIn("times are as of the program's last look at the clock", dead.stdout)

    def test_loops(self):
        _, file = self.core("loops", look=stuck)
        self.assertIn("all workers are busy", heddle("waits", file).stdout)

    def test_quit(self):
        live, file = self.core("kinds", look=settled, number=signal.SIGQUIT)
        self.assertEqual(len(ps(file)["runtimes"][0]["processes"]), len(live["runtimes"][0]["processes"]))

    def test_without_the_beginnings_of_files(self):
        def leave_out(s):
            with open(f"/proc/{s.pid}/coredump_filter", "w") as f:
                f.write("0x1")  # what the program has written, and nothing else: the note is not there
            return settled(s)

        for program in "subject", "subject-inside":
            live, file = self.core("kinds", look=leave_out, program=program)
            self.assertEqual(ps(file)["runtimes"][0]["processes"], live["runtimes"][0]["processes"])
            os.unlink(file)

    def test_size(self):
        def rss(s):
            with open(f"/proc/{s.pid}/status") as f:
                return int(re.search(r"VmRSS:\s+(\d+) kB", f.read())[1]) * 1024

        used, file = self.core("crowd", 3000, look=rss)
        self.assertLess(os.stat(file).st_blocks * 512, 1.2 * used)

    def test_truncated(self):
        _, file = self.core("crowd", 300, look=lambda s: None)
        whole = os.path.getsize(file)
        seen = set()
        lengths = [0, 10, 63, 64, 100, 500, 3000] + [whole * i // 20 for i in range(1, 20)] + [whole - 1]
        for length in sorted(lengths, reverse=True):
            os.truncate(file, length)
            done = heddle("ps", file)
            self.assertIn(done.returncode, (0, 2), length)
            if done.returncode == 2:
                self.assertRegex(done.stderr, "truncated|neither a core file|as far as the file goes")
                seen.add("refused")
            else:
                self.assertRegex(done.stderr, "warning: .*truncated")
                seen.add("shown")
        self.assertEqual(seen, {"refused", "shown"})


class Errors(unittest.TestCase):
    """What cannot be looked into is said so, in one line."""

    def refused(self, word, expected, user=None):
        for command in ("ps",), ("ps", "--json"), ("waits",), ("waits", "--dot"):
            done = heddle(*command, word, user=user)
            self.assertEqual((done.returncode, done.stdout), (2, ""), done.stderr)
            self.assertRegex(done.stderr, rf"\Aheddle: .*{expected}.*\n\Z")

    def test_no_such_process(self):
        with open("/proc/sys/kernel/pid_max") as f:
            self.refused(int(f.read()) + 1, "there is no process")
        self.refused(0, "there is no process")
        self.refused("99999999999999999999", "there is no process")

    def test_program_without_heddle(self):
        sleeper = subprocess.Popen(["sleep", "1000"])
        try:
            self.refused(sleeper.pid, r"process \d+ \(\w+\): there is no heddle in it")
        finally:
            sleeper.kill()
            sleeper.wait()

    def test_no_runtime(self):
        with Subject("over") as s:
            self.refused(s.pid, "no runtime runs in it")

    def test_other_version(self):
        with Subject(program="future") as s:
            self.refused(s.pid, "version 99, and this command knows version 1")

    def test_other_user(self):
        if os.geteuid() != 0:
            self.skipTest("only root can be another user")
        with Subject("kinds") as s:
            self.refused(s.pid, "runs for another user: only that user, or root, may look into it", user=65534)

    def test_yama(self):
        said = subprocess.run([os.path.join(PROGRAMS, "explain")], stdout=subprocess.PIPE, text=True).stdout.splitlines()
        by = dict(line.split(": ", 1) for line in said)
        self.assertIn("HEDDLE_INSPECT=1", by["1"])
        self.assertIn("kernel.yama.ptrace_scope is 1", by["1"])
        self.assertIn("kernel.yama.ptrace_scope is 2", by["2"])
        self.assertIn("kernel.yama.ptrace_scope is 3", by["3"])
        self.assertIn("filter of system calls", by["-1"])
        self.assertIn("another user", by["other"])

    def test_ended_and_kernel(self):
        child = subprocess.Popen(["true"])
        os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
        self.refused(child.pid, "has no memory")
        child.wait()

    def test_files(self):
        self.refused("/", "neither a core file")
        self.refused(HEDDLE, "a program or a library, not a core file")
        self.refused(__file__, "neither a core file")
        self.refused("/no/such/file", "No such file")
        self.refused("no-program-of-this-name", "there is no such file, and no program of that name runs")

    def test_overwritten(self):
        with Subject("kinds", program="subject-inside") as s:
            with open(f"/proc/{s.pid}/mem", "r+b", 0) as memory, open(f"/proc/{s.pid}/maps") as maps:
                for line in maps:  # the description is in the program's data
                    at, rights, _, _, _, *path = line.split()
                    start, end = (int(x, 16) for x in at.split("-"))
                    if "w" in rights and path and path[0].endswith("subject-inside"):
                        memory.seek(start)
                        found = memory.read(end - start).find(b"heddle inside\n\0\0")
                        if found >= 0:
                            memory.seek(start + found + 56)  # sched: see rt/inside.h
                            memory.write((0x1000).to_bytes(8, "little"))
            self.refused(s.pid, "its runtime has just ended|makes no sense")

    def test_usage(self):
        for words in ("ps",), ("waits",), ("ps", "1", "2"), ("ps", "--state", "odd", "1"), ("ps", "--sort", "odd", "1"), ("ps", "--priority", "5", "1"), \
                ("ps", "--priority", "50-40", "1"), ("ps", "--odd", "1"), ("waits", "--odd", "1"):
            done = heddle(*words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertNotEqual(done.stderr, "")
        for command in "ps", "waits":
            self.assertEqual(heddle(command, "--help").stdout, heddle("help", command).stdout)


class Forms(unittest.TestCase):
    """Programs of every form are looked into."""

    def test_forms(self):
        for program in "subject", "subject-inside", "subject-fixed", "subject-static":
            path = os.path.join(PROGRAMS, program)
            if not os.path.exists(path):
                continue
            with tempfile.TemporaryDirectory() as directory:
                stripped = os.path.join(directory, program)
                subprocess.run(["strip", "-o", stripped, path], check=True)
                for form in path, stripped:
                    with self.subTest(form), Subject("deadlock", program=form) as s:
                        self.assertEqual(heddle("waits", s.pid).returncode, 1)
                        self.assertEqual(len(by_name(ps(s.pid))), 4)

    def test_file_is_gone(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "gone")
            subprocess.run(["cp", os.path.join(PROGRAMS, "subject-inside"), path], check=True)
            with Subject("deadlock", program=path) as s:
                os.unlink(path)
                self.assertEqual(len(by_name(ps(s.pid))), 4)

    def test_two_copies(self):
        with Subject(os.environ["HEDDLE_LIBRARY"], program="twice") as s:
            answer = ps(s.pid)
            done = heddle("ps", s.pid)
        self.assertEqual(sorted(len(r["workers"]) for r in answer["runtimes"]), [1, 3])
        self.assertRegex(done.stderr, r"has 2 copies of heddle:\nheddle:   .*: heddle [\d.]+, a runtime runs\nheddle:   .*: heddle [\d.]+, a runtime runs\n")
        self.assertEqual(done.stdout.count("heddle "), 2)

    def test_forked_child_has_no_runtime(self):
        done = heddle("ps", os.getpid())
        self.assertIn("there is no heddle in it", done.stderr)

    def test_by_name(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "a-rather-long-name-of-a-program")
            os.symlink(os.path.join(PROGRAMS, "subject-inside"), path)
            copy = os.path.join(directory, "copied-subject")
            subprocess.run(["cp", os.path.join(PROGRAMS, "subject-inside"), copy], check=True)
            with Subject("deadlock", program=copy) as s:
                self.assertEqual(ps("copied-subject")["pid"], s.pid)
                with Subject("deadlock", program=copy) as other:
                    done = heddle("ps", "copied-subject")
                    self.assertEqual(done.returncode, 2)
                    self.assertIn("2 programs are called copied-subject", done.stderr)
                    for pid in s.pid, other.pid:
                        self.assertIn(f" {pid}", done.stderr)


class Options(unittest.TestCase):
    def test_filters(self):
        with Subject("kinds") as s:
            everything = settled(s)["runtimes"][0]
            for state in "waiting", "suspended", "ended", "ready", "running":
                got = ps(s.pid, "--state", state)["runtimes"][0]
                self.assertEqual(got["count"], everything["count"])
                self.assertEqual(got["processes"], [p for p in everything["processes"] if p["state"] == state])
            self.assertEqual(sorted(by_name(ps(s.pid, "--name", "in [rw]*"))), ["in read", "in receive", "in wait group", "in write"])
            self.assertEqual(sorted(by_name(ps(s.pid, "--priority", "60"))), ["in mutex", "with mutex"])
            self.assertEqual(len(ps(s.pid, "--priority", "10-59")["runtimes"][0]["processes"]), everything["count"] - 2)

    def test_orders(self):
        keys = {"id": lambda p: p["slot"], "name": lambda p: p["name"].encode(), "cpu": lambda p: -p["cpu"], "for": lambda p: p["since"],
                "switches": lambda p: -p["switches"], "stack": lambda p: -p["stack"]["used"], "waiters": lambda p: -len(p["waiters"]),
                "priority": lambda p: -max(p["priority"], p["lent"]),
                "state": lambda p: ["running", "ready", "suspended", "waiting", "ended"].index(p["state"])}
        with Subject("kinds") as s:
            settled(s)
            for name, key in keys.items():
                got = ps(s.pid, "--sort", name)["runtimes"][0]["processes"]
                self.assertEqual(got, sorted(got, key=lambda p: (key(p), p["slot"])), name)
            few = ps(s.pid, "--sort", "name", "--first", "3")["runtimes"][0]
            self.assertEqual(few["processes"], ps(s.pid, "--sort", "name")["runtimes"][0]["processes"][:3])
            self.assertEqual(few["left_out"], few["count"] - 3)
            self.assertTrue(heddle("ps", "--first", "3", s.pid).stdout.endswith(f"\nand {few['count'] - 3} more\n"))

    def test_all(self):
        with Subject("crowd", 50) as s:
            settled(s)
            self.assertEqual(len(heddle("waits", s.pid).stdout.splitlines()), 2 + 1 + 10 + 1)
            self.assertEqual(len(heddle("waits", "--all", s.pid).stdout.splitlines()), 2 + 1 + 51)
            self.assertIn("\nno process runs or is ready; 51 wait, 1 of them with a deadline, 0 for the system\n", heddle("waits", s.pid).stdout)


class Torn(unittest.TestCase):
    """A program that never stands still: every row makes sense."""
    seconds = 3

    def test_two_workers(self):
        self.look(2)

    def test_eight_workers(self):
        self.look(8)

    def look(self, workers):
        mutexes, semaphores, looks, changing, rows = set(), set(), 0, 0, 0
        with Subject("chaos", workers=workers) as s:
            end = time.monotonic() + self.seconds
            while time.monotonic() < end:
                looks += 1
                answer = ps(s.pid)
                self.assertEqual(heddle("waits", s.pid).returncode, 0)  # it has neither a circle nor an owner that has ended
                runtime = answer["runtimes"][0]
                self.assertGreaterEqual(len(runtime["workers"]), workers)  # and spares
                self.assertEqual(runtime["missing"], 0)
                seen = set()
                for p in runtime["processes"]:
                    rows += 1
                    changing += p["changing"]
                    self.assertNotIn(p["slot"], seen)
                    seen.add(p["slot"])
                    self.assertEqual(p["pid"], p["generation"] << 24 | p["slot"])
                    self.assertIn(p["name"], ("main", "friend", "child", ""))
                    self.assertEqual(p["kind"], "process" if p["name"] else "behaviour")
                    self.assertTrue(10 <= p["priority"] <= 80)
                    self.assertTrue(p["lent"] == 0 or p["priority"] < p["lent"] <= 80)
                    self.assertTrue(-1 <= p["worker"] < len(runtime["workers"]))  # -1: of a spare that has come since
                    self.assertIn(p["stack"]["size"], (0, 65536, 8 << 20))
                    self.assertTrue(p["stack"]["used"] <= p["stack"]["size"])
                    self.assertTrue(0 <= p["since"] - 10**15 < 10**12)
                    if "waits" not in p or p["changing"]:
                        continue
                    waits = p["waits"]
                    self.assertIn(waits["call"], ("hd_mutex_lock", "hd_semaphore_wait", "hd_sleep", "hd_join", "hd_when, for its cowns", "nothing"))
                    if waits["call"] == "hd_mutex_lock" and "object" in waits:
                        mutexes.add(waits["object"]["address"])
                    if waits["call"] == "hd_semaphore_wait" and "object" in waits:
                        semaphores.add(waits["object"]["address"])
                self.assertLessEqual(len([p for p in runtime["processes"] if p["name"] == "friend"]), 200)
            self.assertIsNone(s.process.poll())
        self.assertLessEqual(len(mutexes), 8)
        self.assertLessEqual(len(semaphores), 1)
        print(f"{workers} workers: {looks} looks, {rows} rows, {changing} changing, {len(mutexes)} mutexes", file=sys.stderr)


def bt(target, *options, done_with=0):
    done = heddle("bt", "--json", *options, target)
    if done.returncode != done_with:
        raise AssertionError(done.stderr)
    answer = json.loads(done.stdout)
    check(answer, BT_SCHEMA)
    for runtime in answer["runtimes"]:
        for group in runtime["groups"]:
            if group["count"] != len(group["processes"]):
                raise AssertionError(group)
    return answer


def traces(answer, own=False):
    """By the names of processes: the functions that they are in, the innermost first; or why there are none."""
    found = {}
    for runtime in answer["runtimes"]:
        for group in runtime["groups"]:
            names = [f.get("function", "?") for f in group["frames"] if own or not f["own"]]
            for p in group["processes"]:
                found[p["name"]] = names if group["stack"] == "walked" else group["stack"]
    return found


PROGRAMS_OF_ALL_KINDS = [p for p in ("subject", "subject-inside", "subject-fixed", "subject-static") if os.path.exists(os.path.join(PROGRAMS, p))]


@unittest.skipUnless(HAS_BT, "this build has no libdw: there is no heddle bt")
class Bt(WithCore):
    """Backtraces."""
    kinds = {
        "in semaphore": ["hd_semaphore_wait", "in_semaphore"], "in condition": ["hd_condition_wait", "in_condition"],
        "in read": ["hd_rwlock_read", "in_read"], "in write": ["hd_rwlock_write", "in_write"], "in barrier": ["hd_barrier_wait", "in_barrier"],
        "in event": ["in_event"], "in wait group": ["in_waitgroup"], "in promise": ["hd_promise_value", "in_promise"],
        "in next": ["hd_queue_next", "in_next"], "in put": ["hd_queue_put", "in_put"], "in join": ["hd_join", "in_join"], "in fd": ["hd_read", "in_fd"],
        "in receive": ["hd_receive", "in_receive"], "in call": ["hd_call", "in_call"], "in mutex": ["hd_mutex_lock", "in_mutex"],
        "with mutex": ["with_mutex"], "server": ["server"], "main": ["kinds"],
    }

    def compare(self, found):
        for name, functions in self.kinds.items():
            with self.subTest(name):
                got = found[name]
                if SANITIZED:  # calls have other names there, or one more
                    self.assertIn(functions[-1], got)
                else:
                    self.assertEqual([f for f in got if f in functions], functions[-len(got):] if len(got) < len(functions) else functions)
                    self.assertEqual(got[-1], functions[-1])
        self.assertEqual(found["machine"], "machine")
        self.assertEqual(found["zombie"], "ended")
        self.assertEqual(found['quoted "name" \\'], "not begun")

    def test_kinds(self):
        for program in PROGRAMS_OF_ALL_KINDS:
            with Subject("kinds", program=program) as s, self.subTest(program=program):
                settled(s)
                answer = bt(s.pid)
                self.assertTrue(answer["runtimes"][0]["complete"])
                self.compare(traces(answer))
                frames = [f for g in answer["runtimes"][0]["groups"] for f in g["frames"] if f.get("function") == "in_semaphore"]
                with open(os.path.join(os.path.dirname(__file__), "subject.c")) as f:
                    lines = f.read().splitlines()
                for f in frames:
                    self.assertRegex(f["file"], r"(^|/)subject\.c$")
                    self.assertIn("hd_semaphore_wait(&no_signal, HD_FOREVER)", lines[f["line"] - 1])
                stacks = [p for g in answer["runtimes"][0]["groups"] for p in g["processes"] if p["name"] in ("in semaphore", "joined")]
                self.assertEqual(len(stacks), 2)

    def test_text(self):
        with Subject("kinds") as s:
            settled(s)
            text = heddle("bt", s.pid).stdout
            one = heddle("bt", s.pid, "#4").stdout
            everything = heddle("bt", "--all", s.pid, 4).stdout
        self.assertRegex(text, r"(?s)\n2 processes wait in hd_semaphore_wait: in semaphore #1, joined #13\n.*    in in_semaphore, .*subject\.c:\d+\n")
        self.assertRegex(text, r"machine #\d+ waits in hd_receive, .*\n    a machine has no stack between its turns: machine_ops\n")
        self.assertRegex(text, r"    a behaviour has no stack before it begins: second_behaviour\n")
        self.assertRegex(text, r"    has not begun: in_semaphore\n")
        self.assertRegex(one, r"\Aprocess .*\nwith book #4 waits in hd_sleep, for [\d.]+ s, with a deadline\n")
        self.assertNotIn("in semaphore", one)
        self.assertIn("    in hd__begin, ", everything)
        self.assertNotIn("hd__", one)

    def test_crowd_is_folded(self):
        with Subject("crowd", 5000) as s:
            settled(s)
            answer = bt(s.pid)
            lines = heddle("bt", s.pid).stdout.splitlines()
        self.assertEqual(sum(g["count"] for g in answer["runtimes"][0]["groups"]), 5001)
        self.assertLess(len(answer["runtimes"][0]["groups"]), 40)
        self.assertLess(len(lines), 40)
        self.assertTrue(all(g["stack"] == "walked" for g in answer["runtimes"][0]["groups"]))

    def test_cores(self):
        for program in PROGRAMS_OF_ALL_KINDS:
            with self.subTest(program=program):
                live, file = self.core("kinds", look=lambda s: settled(s) and bt(s.pid), program=program)
                dead = bt(file)
                os.unlink(file)
                self.compare(traces(dead))
                self.assertEqual(traces(dead, own=True), traces(live, own=True))

    def test_core_of_loops(self):
        """Those that ran have their registers in the file."""
        _, file = self.core("loops", look=stuck)
        found = traces(bt(file))
        self.assertEqual((found["main"][-1], found["spinner"][-1]), ("loops", "loop"))

    def test_core_without_its_program(self):
        """The stacks are there, but not the code: what can be told is told, and what cannot is said."""
        with tempfile.TemporaryDirectory() as empty:
            _, file = self.core("kinds", look=settled)
            done = heddle("bt", "--root", empty, file)
        self.assertEqual(done.returncode, 0)
        self.assertIn("cannot be opened", done.stderr)
        self.assertIn("processes wait in hd_semaphore_wait", done.stdout)

    def test_runs(self):
        with Subject("loops") as s:
            time.sleep(0.1)  # it need not have been long; nothing depends on it
            self.assertEqual(traces(bt(s.pid))["spinner"], "runs")
            self.assertRegex(heddle("bt", s.pid).stdout, r"spinner #\d+ runs on worker 0, .*\n    it runs: its registers are in the kernel, with thread \d+; `--stop`")

    def stoppable(self, s):
        done = heddle("bt", "--stop", s.pid)
        if "cannot be stopped" in done.stderr:
            self.skipTest("ptrace is forbidden here: " + done.stderr)
        return done

    def test_stop(self):
        for program in PROGRAMS_OF_ALL_KINDS:
            with Subject("loops", program=program) as s, self.subTest(program=program):
                self.stoppable(s)
                for _ in range(3):
                    found = traces(bt(s.pid, "--stop"))
                    self.assertEqual((found["main"][-1], found["spinner"][-1]), ("loops", "loop"))
                self.goes_on(s)

    def goes_on(self, s):
        for tid in os.listdir(f"/proc/{s.pid}/task"):
            with open(f"/proc/{s.pid}/task/{tid}/stat") as f:
                self.assertNotIn(f.read().rsplit(")", 1)[1].split()[0], "tT")
            with open(f"/proc/{s.pid}/task/{tid}/status") as f:
                self.assertIn("TracerPid:\t0\n", f.read())

    def test_stop_that_is_killed(self):
        """However the command ends, the program goes on."""
        with Subject("loops") as s:
            self.stoppable(s)
            for i in range(30):
                tool = subprocess.Popen([HEDDLE, "bt", "--stop", str(s.pid)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                time.sleep(i * 0.0005)  # at any moment
                tool.kill()
                tool.wait()
                self.goes_on(s)

    def test_preempted(self):
        """A process that a signal has stopped is walked through the kernel's frame."""
        if SANITIZED:
            self.skipTest("under sanitizers it may not be preempted")
        for program in "subject", "subject-inside", "subject-fixed":  # where the C library is inside, nothing may be stopped
            with Subject("preempted", program=program, workers=1) as s, self.subTest(program=program):
                for _ in range(200):
                    found = traces(bt(s.pid))["victim"]
                    if found != "has run" and found != "runs":
                        break
                self.assertEqual(found, ["spin_for_ever", "victim"])

    def test_without_debug_information(self):
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "subject-inside")
            for option, expected in ("--strip-debug", "in_semaphore"), ("--strip-all", None):
                subprocess.run(["strip", option, "-o", path, os.path.join(PROGRAMS, "subject-inside")], check=True)
                with Subject("kinds", program=path) as s:
                    settled(s)
                    group = next(g for g in bt(s.pid)["runtimes"][0]["groups"] if any(p["name"] == "in semaphore" for p in g["processes"]))
                    names = [f.get("function") for f in group["frames"]]
                    self.assertGreater(len(names), 1)
                    self.assertTrue(all("offset" in f and "line" not in f for f in group["frames"] if f["module"] == path))
                    if expected:
                        self.assertIn(expected, names)

    def test_program_that_is_gone(self):
        """Built anew, or deleted: what its memory has is told, and not what another file says."""
        with tempfile.TemporaryDirectory() as directory:
            path = os.path.join(directory, "subject")
            subprocess.run(["cp", os.path.join(PROGRAMS, "subject-inside"), path], check=True)
            with Subject("kinds", program=path) as s:
                settled(s)
                os.unlink(path)
                self.compare(traces(bt(s.pid)))  # the kernel still has it
                subprocess.run(["cp", HEDDLE, path], check=True)
                done = heddle("bt", s.pid)
                self.assertEqual(done.returncode, 0)
                self.assertIn("in_semaphore", done.stdout)
                self.assertNotIn("bt_main", done.stdout)

    def test_reader_that_dies(self):
        """Whatever happens to libdw: the command says so, and tells what it knows."""
        if SANITIZED:
            self.skipTest("a sanitizer wants to be loaded first")
        with Subject("kinds") as s:
            settled(s)
            for how, expected in ("crash", "died of signal"), ("loop", "CPU time, or too much memory"), ("garble", "told what makes no sense"):
                done = subprocess.run([HEDDLE, "bt", str(s.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100,
                                      preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_CPU, (2, 100)),
                                      env=dict(os.environ, LD_PRELOAD=os.environ["INSIDE_BROKEN"], BROKEN=how))
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertRegex(done.stderr, "warning: some backtraces are missing: .*" + expected)
                self.assertIn("processes wait in hd_semaphore_wait", done.stdout)
                self.assertRegex(done.stdout, r"    at subject\+0x[0-9a-f]+\n")

    def test_resolve(self):
        with Subject("kinds", program="subject-inside") as s:
            settled(s)
            frames = [f for g in bt(s.pid)["runtimes"][0]["groups"] for f in g["frames"] if f.get("function") == "in_semaphore"]
        log = f"a {frames[0]['module']}+{frames[0]['offset']} b\n/no/such/file+0x10\n+0x12 and (/also/none+0x)\nthe end"
        done = subprocess.run([HEDDLE, "bt", "--resolve"], input=log, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100)
        self.assertEqual(done.returncode, 0)
        lines = done.stdout.split("\n")
        self.assertRegex(lines[0], rf"^a .*\+0x[0-9a-f]+ \(in_semaphore .*subject\.c:{frames[0]['line']}\) b$")
        self.assertEqual(lines[1:], log.split("\n")[1:])

    def test_usage(self):
        with Subject("kinds") as s:
            for words, expected in ((), "which program"), (("--odd", s.pid), "odd"), ((s.pid, "x"), "is not the id of a process"), \
                    ((s.pid, "77777"), "there is no process 77777"), (("--resolve", s.pid), "reads what it resolves"), (("/",), "neither a core file"):
                done = heddle("bt", *words)
                self.assertEqual((done.returncode, done.stdout), (2, ""), words)
                self.assertIn(expected, done.stderr)
        self.assertEqual(heddle("bt", "--help").stdout, heddle("help", "bt").stdout)

    def test_torn(self):
        """A program that never stands still: every backtrace that is told makes sense."""
        with Subject("chaos") as s:
            for _ in range(5):
                for name, got in traces(bt(s.pid)).items():
                    if got == ["hd__arch_begin"]:
                        continue  # it has its stack, and not run its first instruction
                    if isinstance(got, list) and name in ("friend", "child", "main"):
                        self.assertIn(got[-1], ("friend_of_all", "short_life", "chaos"), got)
            self.assertIsNone(s.process.poll())


@unittest.skipIf(SANITIZED, "sanitizers tell of crashes themselves")
class Crashes(unittest.TestCase):
    """A process that crashes is named, with places that can be resolved; the program dies of what it would have died of."""

    def crash(self, how, program="crash", **more):
        with tempfile.TemporaryDirectory() as directory:  # a core file goes there
            return subprocess.run([os.path.join(PROGRAMS, program), how], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=100, cwd=directory,
                                  env=dict(os.environ, HEDDLE_WORKERS="2"), **more)

    def resolved(self, text):
        if not HAS_BT:
            return text
        return subprocess.run([HEDDLE, "bt", "--resolve"], input=text, stdout=subprocess.PIPE, text=True, timeout=100).stdout

    def test_signals(self):
        for how, number in ("segv", signal.SIGSEGV), ("bus", signal.SIGBUS), ("ill", None), ("fpe", signal.SIGFPE), ("abort", signal.SIGABRT):
            for program in "crash", "crash-inside":
                with self.subTest(how, program=program):
                    done = self.crash(how, program)
                    if number is None:  # a trap is one or the other, by machine
                        self.assertIn(-done.returncode, (signal.SIGILL, signal.SIGTRAP))
                        if -done.returncode == signal.SIGTRAP:
                            continue
                    else:
                        self.assertEqual(done.returncode, -number)
                    name = signal.Signals(-done.returncode).name
                    self.assertRegex(done.stderr, rf'^heddle: process \d+ "victim" on worker \d+ has crashed by {name}( at the address 0x\w+)?; it was here:\n')
                    self.assertRegex(done.stderr, rf"heddle:     at {PROGRAMS}/{program}\+0x[0-9a-f]+\n")
                    said = self.resolved(done.stderr)
                    if HAS_BT:
                        self.assertRegex(said, r"(?s)at \S+ \(crash \S*crash\.c:\d+\)\n.*at \S+ \((\w+ \S+:\d+, inlined in )*victim \S*crash\.c:\d+\)\n")

    def test_address(self):
        self.assertIn("by SIGSEGV at the address 0x10;", self.crash("segv").stderr)

    def test_assertion(self):
        done = self.crash("panic")
        self.assertEqual(done.returncode, -signal.SIGABRT)
        self.assertRegex(done.stderr, r'heddle: expected .*\n(?s:.*)heddle: process \d+ "victim" on worker \d+ has crashed by SIGABRT; it was here:\n')

    def test_no_code_there(self):
        done = self.crash("jump")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertRegex(done.stderr, r"crashed by SIGSEGV at the address 0x10; it was here:\nheddle:     at 0x10\n")
        if HAS_BT:
            self.assertRegex(self.resolved(done.stderr), r"\(crash \S*crash\.c:\d+\)")

    def test_smashed_stack(self):
        """The walk must not fault, loop or hang, whatever is on the stack."""
        for program in "crash", "crash-inside":
            done = self.crash("smashed", program)
            self.assertIn(-done.returncode, (signal.SIGSEGV, signal.SIGBUS, signal.SIGABRT))
            self.assertRegex(done.stderr, r'^heddle: process \d+ "victim" (?s:.*)names these places\n\Z')

    def test_two_at_once(self):
        for _ in range(10):
            done = self.crash("both")
            self.assertEqual(done.returncode, -signal.SIGSEGV)
            self.assertEqual(done.stderr.count("has crashed by SIGSEGV"), 1, done.stderr)
            self.assertIn("names these places", done.stderr)

    def test_passed_on(self):
        done = self.crash("thread")
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGSEGV, ""))
        done = self.crash("handled")
        self.assertEqual((done.returncode, done.stderr), (42, ""))
        for number in signal.SIGABRT, signal.SIGSEGV:
            with Subject("sent", program="crash", errors=subprocess.PIPE) as s:
                os.kill(s.pid, number)
                self.assertEqual(s.process.wait(timeout=100), -number)
                self.assertEqual(s.process.stderr.read(), "")


GDB = shutil.which("gdb") if HAS_BT and not SANITIZED else None


@unittest.skipUnless(GDB, "there is no gdb, or no heddle bt")
class Gdb(WithCore):
    """gdb shows processes that do not run, in a program and in its core file, and changes nothing."""

    def gdb(self, *words, target):
        commands = [a for word in words for a in ("-ex", word)]
        done = subprocess.run([GDB, "-q", "-batch", "-nx", "-iex", "set debuginfod enabled off", *target, "-ex", f"source {os.environ['INSIDE_GDB']}", *commands],
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100, stdin=subprocess.DEVNULL)
        if "ptrace: Operation not permitted" in done.stdout:
            self.skipTest("ptrace is forbidden here")
        if "Python scripting is not supported" in done.stdout or "Scripting in the \"Python\"" in done.stdout:
            self.skipTest("this gdb has no Python")
        return done.stdout

    def look(self, target):
        said = self.gdb("heddle ps --state suspended", "heddle bt 1", "echo ---\n", "heddle frame 14", "up 20", "down", "info frame", "heddle bt 5", "echo ---\n", "heddle frame",
                        "heddle bt 22", "heddle bt 77777", target=target)
        one, frame, rest = said.split("---\n")
        self.assertRegex(one, r"#20 +quoted .* suspended,d")
        self.assertRegex(one, r"(?s)hd_semaphore_wait \(s=.*<no_signal>.* in_semaphore \(arg=0x0\) at .*subject\.c:\d+\n.* hd__begin ")
        self.assertRegex(frame, r" in_join \(arg=0x0\) at|hd__begin ")
        self.assertRegex(frame, r"in_read \(arg=0x0\)")
        self.assertIn("process 22 has no stack to show: machine", rest)
        self.assertIn("there is no process 77777", rest)

    def test_live(self):
        with Subject("kinds") as s:
            before = settled(s)["runtimes"][0]["processes"]
            self.look(["-p", str(s.pid)])
            self.assertIsNone(s.process.poll())
            self.assertEqual(settled(s)["runtimes"][0]["processes"], before)

    def test_core(self):
        _, file = self.core("kinds", look=settled)
        self.look([os.path.join(PROGRAMS, "subject"), file])

    def test_running(self):
        with Subject("loops") as s:
            said = self.gdb("heddle bt 0", "echo ---\n", "heddle bt", target=["-p", str(s.pid)])
        self.assertRegex(said.split("---\n")[0], r"loop \(arg=.*\n(.*\n)*.* loops \(arg=")
        self.assertIn("spinner #1 runs on worker", said)


class WithoutLibdw(unittest.TestCase):
    @unittest.skipIf(HAS_BT, "this build has libdw")
    def test_says_so(self):
        done = heddle("bt", os.getpid())
        self.assertEqual(done.returncode, 2)
        self.assertIn("libdw-dev", done.stderr)


class Stress(WithCore):
    def timed(self, *words):
        with tempfile.TemporaryFile() as out:
            begin = time.monotonic()
            pid = os.posix_spawn(HEDDLE, [HEDDLE, *map(str, words)], os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, out.fileno(), 1)])
            _, status, used = os.wait4(pid, 0)
            took = time.monotonic() - begin
            self.assertEqual(os.waitstatus_to_exitcode(status), 0)
            out.seek(0)
            lines = sum(1 for _ in out)
        print(f"{words}: {took:.2f} s, {used.ru_maxrss >> 10} MB, {lines} lines", file=sys.stderr)
        return used.ru_maxrss

    def test_million(self):
        for n in 10000, 1000000:
            try:
                subject = Subject("crowd", n)
            except RuntimeError:
                self.skipTest(f"{n} processes cannot be had here")
            with subject as s:
                for words in (("ps", s.pid), ("ps", "--json", s.pid), ("waits", s.pid)) + ((("bt", s.pid),) if HAS_BT else ()):
                    self.assertLess(self.timed(*words), 1 << 20)

    def test_core_of_many(self):
        live, file = self.core("crowd", 100000, look=settled)
        print(f"core file: {os.stat(file).st_blocks >> 11} MB, with holes {os.path.getsize(file) >> 20} MB", file=sys.stderr)
        for command in ("ps", "waits") + (("bt",) if HAS_BT else ()):
            self.timed(command, file)
        self.assertEqual(ps(file)["runtimes"][0]["processes"], live["runtimes"][0]["processes"])

    def test_torn(self):
        for workers in 2, 8:
            torn = Torn()
            torn.seconds = 120
            torn.look(workers)


if __name__ == "__main__":
    unittest.main()
