#!/usr/bin/env python3
"""tests/inside/top.py [-f] [GROUP...] - `heddle stats` and `heddle top`: programs in numbers, and in a terminal.

The terminal is a pty, and what is written to it is put on a screen as a terminal would."""
import fcntl
import json
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import unittest

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from timeline import HEDDLE, Program, heddle  # pylint: disable=wrong-import-position


class Stats(unittest.TestCase):
    def json(self, target, *options):
        done = heddle("stats", "--json", *options, target)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def test_counts(self):
        """What stands still is counted exactly."""
        with Program("ill", HEDDLE_SPARES="0") as p:
            s = self.json(p.pid)
            self.assertEqual(s["processes"], {"ready": 3, "running": 2, "waiting": 1, "suspended": 0, "ended": 0})
            self.assertEqual(s["waiting"], {"hd_semaphore_wait": 1})
            self.assertEqual(s["ready"], {"20": 3})
            self.assertEqual(len(s["workers"]), 2)
            self.assertEqual(sum(w["ready"] for w in s["workers"]), 3)
            self.assertGreater(s["longest_ready"], 0)
            for w in s["workers"]:
                self.assertLessEqual(w["busy"] + w["idle"], s["age"] + 1)
            text = heddle("stats", p.pid).stdout
            self.assertIn("3 ready, 2 running, 1 waiting, 0 suspended, 0 ended", text)
            self.assertIn("ready with priority 20: 3", text)
        with Program("crowd", 50) as p:
            s = self.json(p.pid)
            self.assertEqual(s["waiting"].get("hd_semaphore_wait"), 50)

    def test_grows(self):
        """Counters do not go back; a worker that sleeps is idle, one that computes busy."""
        with Program("talk") as p:
            before = self.json(p.pid)
            after = self.json(p.pid, "--latency", 0.2)
            for old, new in zip(before["workers"], after["workers"]):
                for name in old:
                    if name not in ("ready", "asleep", "timers"):
                        self.assertGreaterEqual(new[name], old[name], name)
            latency = after["latency"]
            self.assertGreater(latency["count"], 0)
            self.assertLessEqual(sum(b["count"] for b in latency["buckets"]), latency["count"])
            self.assertLessEqual(latency["most"] , latency["sum"])
        with Program("crowd", 1, workers=1) as p:
            p.fall_asleep()
            first = self.json(p.pid)
            time.sleep(0.5)
            then = self.json(p.pid)
            self.assertEqual(then["workers"][0]["busy"], first["workers"][0]["busy"])
            self.assertGreaterEqual(then["workers"][0]["idle"] - first["workers"][0]["idle"], 400000000)

    def test_prometheus(self):
        """Each line is what the text format of Prometheus allows; a name has its HELP and TYPE once, before its samples; histograms add up."""
        with Program("talk") as p:
            done = heddle("stats", "--prometheus", "--latency", 0.2, p.pid)
            self.assertEqual(done.returncode, 0, done.stderr)
        kinds, seen, buckets = {}, set(), []
        for line in done.stdout.splitlines():
            m = re.fullmatch(r"# (HELP|TYPE) ([a-z_]+) (.+)", line)
            if m:
                if m[1] == "TYPE":
                    self.assertIn(m[3], ("gauge", "counter", "histogram"))
                    self.assertNotIn(m[2], kinds)
                    kinds[m[2]] = m[3]
                continue
            m = re.fullmatch(r'([a-z_]+)(\{([a-z]+="[^"\\\n]*")\})? (-?[0-9.]+)', line)
            self.assertTrue(m, line)
            name = re.sub(r"_(bucket|sum|count)$", "", m[1]) if m[1].startswith("heddle_ready_seconds") else m[1]
            self.assertIn(name, kinds)
            self.assertNotIn((m[1], m[3]), seen)
            seen.add((m[1], m[3]))
            if kinds[name] == "counter":
                self.assertTrue(name.endswith("_total"), name)
            if m[1].endswith("_bucket"):
                buckets.append(int(m[4]))
            if m[1] == "heddle_ready_seconds_count":
                self.assertEqual(int(m[4]), buckets[-1])
        self.assertEqual(buckets, sorted(buckets))
        self.assertIn("heddle_worker_busy_seconds_total", kinds)
        self.assertEqual(kinds["heddle_ready_seconds"], "histogram")

    def test_errors(self):
        for words, said in ((), "which program"), (("--latency", "x", "1"), "--latency"), (("999999999",), "no process"):
            done = heddle("stats", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


class Screen:
    """`heddle top` on a pty, and what is on its screen: the sequences that it uses are known, all others are an error."""

    def __init__(self, *words, rows=24, columns=100):
        self.rows, self.columns = rows, columns
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.environ["TERM"] = "xterm"
            while True:  # until the size is set
                size = struct.unpack("HHHH", fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8))
                if size[0] == rows:
                    break
                time.sleep(0.01)
            os.execv(HEDDLE, [HEDDLE, "top", *map(str, words)])
        self.lines = [[" "] * columns for _ in range(rows)]
        self.row = self.column = 0
        self.alternate = self.hidden = False
        self.looks = 0
        self.rest = ""
        self.printed = ""
        self.set_size(rows, columns)
        self.status = None

    def set_size(self, rows, columns):
        self.rows, self.columns = rows, columns
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def resize(self, rows, columns):
        self.set_size(rows, columns)
        self.lines = [(line + [" "] * columns)[:columns] for line in (self.lines + [[" "] * columns for _ in range(rows)])[:rows]]

    def show(self, text):
        text = self.rest + text
        i = 0
        while i < len(text):
            if text[i] == "\033":
                m = re.compile(r"\033\[(\??[\d;]*)([A-Za-z])").match(text, i)
                if not m:
                    break
                i = m.end()
                what = m[1] + m[2]
                if what == "H":
                    self.row = self.column = 0
                    self.looks += 1
                elif what == "K":
                    self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
                elif what == "J" or what == "2J":
                    if what == "J":
                        self.lines[self.row][self.column:] = [" "] * (self.columns - self.column)
                    for r in range(self.row + 1 if what == "J" else 0, self.rows):
                        self.lines[r] = [" "] * self.columns
                elif what in ("?1049h", "?1049l"):
                    self.alternate = what.endswith("h")
                elif what in ("?25h", "?25l"):
                    self.hidden = what.endswith("l")
                elif m[2] != "m":
                    raise AssertionError(f"an unknown sequence: {m[0]!r}")
                continue
            c = text[i]
            i += 1
            if not self.alternate:
                self.printed += c
            elif c == "\r":
                self.column = 0
            elif c == "\n":
                self.row += 1
                if self.row >= self.rows:
                    raise AssertionError("the screen was moved: " + self.text())
            else:
                if self.column >= self.columns:
                    raise AssertionError("a line is too long: " + self.text())
                self.lines[self.row][self.column] = c
                self.column += 1
        self.rest = text[i:]

    def text(self):
        return "\n".join("".join(line).rstrip() for line in self.lines)

    def read(self, seconds):
        """Whether there is more to come."""
        if select.select([self.fd], [], [], seconds)[0]:
            try:
                data = os.read(self.fd, 65536)
            except OSError:
                data = b""
            if not data:
                return False
            self.show(data.decode("utf-8", "replace"))
        return True

    def until(self, condition, what):
        limit = time.monotonic() + 60
        while not condition(self):
            if time.monotonic() > limit or not self.read(0.2):
                raise AssertionError(f"{what} does not come: {self.text()}\n{self.printed}")

    def looks_more(self, n):
        wanted = self.looks + n
        self.until(lambda s: s.looks >= wanted, "the next look")
        self.read(0.05)

    def key(self, key):
        os.write(self.fd, key.encode())

    def end(self):
        limit = time.monotonic() + 60
        while self.read(1):
            if time.monotonic() > limit:
                raise AssertionError(f"it does not end: {self.text()}\n{self.printed}")
        self.status = os.waitstatus_to_exitcode(os.waitpid(self.pid, 0)[1])
        os.close(self.fd)
        return self.status


class Top(unittest.TestCase):
    def test_ill(self):
        """Warnings first: the hog, the blocked worker, the priority that starves, the stack."""
        with Program("ill", HEDDLE_SPARES="0") as p:
            screen = Screen("--delay", "0.1", p.pid)
            wanted = ("has a hog: hog #", "is blocked in the kernel: main #0", "priority 20 starves: 3 ready", "deep #1 has used")
            screen.until(lambda s: all(w in s.text() for w in wanted), wanted)
            lines = screen.text().splitlines()
            self.assertTrue(all(line.startswith("! ") for line in lines[1:5]), screen.text())
            screen.until(lambda s: re.search(r"#\S+ +hog +running +40 +\dp? +(9\d|100)\.\d", s.text()), "the hog, at the top")
            screen.key("q")
            self.assertEqual(screen.end(), 0)
            self.assertFalse(screen.alternate or screen.hidden)

    def test_keys_and_sizes(self):
        with Program("talk") as p:
            screen = Screen("--delay", "0.05", p.pid)
            for key, name in ("w", "wait"), ("l", "queue length"), ("c", "CPU"):
                screen.key(key)
                screen.until(lambda s, name=name: f"sorted by {name};" in s.text(), f"order by {name}")
            for rows, columns in (10, 40), (5, 20), (3, 30), (50, 200), (24, 80):
                screen.resize(rows, columns)
                for _ in range(3):  # what was on its way has the old size
                    try:
                        screen.looks_more(2)
                        break
                    except AssertionError as error:
                        if "does not come" in str(error):
                            raise
                        screen.row = min(screen.row, rows - 1)
                        screen.column = 0
                        screen.rest = ""
                if rows >= 10:
                    self.assertIn("ID", screen.text())
            os.kill(screen.pid, signal.SIGTERM)
            self.assertEqual(screen.end(), 0)
            self.assertFalse(screen.alternate or screen.hidden)

    def test_flood(self):
        with Program("flood") as p:
            screen = Screen("--delay", "0.1", p.pid)
            screen.until(lambda s: "there are more messages at each look" in s.text(), "the warning")
            screen.key("q")
            self.assertEqual(screen.end(), 0)

    def test_target_dies(self):
        with Program("talk") as p:
            screen = Screen("--delay", "0.1", p.pid)
            screen.looks_more(2)
            p.process.kill()
            self.assertEqual(screen.end(), 0)
            self.assertIn("has ended", screen.printed)
            self.assertFalse(screen.alternate or screen.hidden)

    def test_many(self):
        with Program("crowd", 100000) as p:
            screen = Screen("--delay", "0.1", p.pid)
            screen.until(lambda s: "100001 processes" in s.text(), "the count")
            screen.looks_more(2)
            screen.key("q")
            self.assertEqual(screen.end(), 0)

    def test_once(self):
        with Program("ill", HEDDLE_SPARES="0") as p:
            for words in ("--once",), ():
                done = heddle("top", *words, "--delay", 0.1, p.pid, stdin=subprocess.DEVNULL)
                self.assertEqual(done.returncode, 0, done.stderr)
                self.assertNotIn("\033", done.stdout)
                self.assertIn("worker 1", done.stdout)
                self.assertRegex(done.stdout, r"(?m)^#\S+ +starved +ready +20 ")

    def test_errors(self):
        for words, said in ((), "which program"), (("--delay", "0", "1"), "--delay"), (("--sort", "x", "1"), "--sort"), (("999999999",), "no process"):
            done = heddle("top", *words)
            self.assertEqual(done.returncode, 2)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + sys.argv[1:], verbosity=1)
