#!/usr/bin/env python3
"""tests/inside/timeline.py [-f] [GROUP...] - `heddle trace`: what programs do, on a timeline.

The programs are those of traced.c, and of subject.c. Each timeline is checked against docs/trace.schema.json, and for what a schema cannot say: that the slices of a
track do not overlap, that times do not go back, that each flow has both its ends, where a process runs."""
import collections
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest

HEDDLE = os.environ["HEDDLE_COMMAND"]
PROGRAMS = os.environ["INSIDE_PROGRAMS"]
TRACED = os.path.join(PROGRAMS, "traced")
SANITIZED = os.environ["INSIDE_SANITIZED"] == "1"
with open(os.environ["HEDDLE_TRACE_SCHEMA"]) as f:
    SCHEMA = json.load(f)


def check(value, schema, where="$"):
    """The part of JSON Schema that ours uses."""
    if "$ref" in schema:
        schema = SCHEMA["$defs"][schema["$ref"].rsplit("/", 1)[1]]
    kinds = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}
    kind = schema.get("type")
    if kind and (not isinstance(value, kinds[kind]) or isinstance(value, bool)):
        raise AssertionError(f"{where}: {value!r} is no {kind}")
    if "const" in schema and value != schema["const"] or "enum" in schema and value not in schema["enum"]:
        raise AssertionError(f"{where}: {value!r}")
    if kind == "array":
        for i, item in enumerate(value):
            check(item, schema["items"], f"{where}[{i}]")
    if kind == "object" and "properties" in schema:
        for name in schema.get("required", ()):
            if name not in value:
                raise AssertionError(f"{where} has no {name}")
        for name, item in value.items():
            if name not in schema["properties"]:
                raise AssertionError(f"{where}.{name} is not in the schema")
            check(item, schema["properties"][name], f"{where}.{name}")


EVENTS = 20000  # enough: a million are for Stress


class Timeline:
    def __init__(self, text):
        self.all = json.loads(text)
        check(self.all, SCHEMA)
        self.other = self.all["otherData"]
        events = self.all["traceEvents"]
        self.names = {(e["pid"], e["tid"]): e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"}
        self.slices = collections.defaultdict(list)
        self.instants = [e for e in events if e["ph"] == "i"]
        self.flows = collections.defaultdict(list)
        last = {}
        for e in events:
            if e["ph"] == "M":
                continue
            track = e["pid"], e["tid"]
            if track not in self.names:
                raise AssertionError(f"{e} is on a track without a name")
            if e["ts"] < last.get(track, 0):
                raise AssertionError(f"{e}: the time of its track goes back")
            last[track] = e["ts"]
            if e["ph"] == "X":
                self.slices[track].append(e)
            elif e["ph"] in "sf":
                self.flows[e["id"]].append(e)
        for track, slices in self.slices.items():
            for a, b in zip(slices, slices[1:]):
                if round(a["ts"] * 1000) + round(a["dur"] * 1000) > round(b["ts"] * 1000):
                    raise AssertionError(f"slices overlap: {a}, {b}")
        for ends in self.flows.values():
            if [e["ph"] for e in ends] not in (["s", "f"], ["f", "s"]) or len({e["cat"] for e in ends}) != 1:
                raise AssertionError(f"a flow without two ends: {ends}")
            ends.sort(key=lambda e: e["ph"], reverse=True)
            if ends[0]["ts"] > ends[1]["ts"]:
                raise AssertionError(f"a flow that goes back: {ends}")
        if len(self.flows) != self.other["flows"]:
            raise AssertionError("flows are counted wrongly")

    def of_processes(self):
        return {track: slices for track, slices in self.slices.items() if track[0] == 2}

    def arrows(self):
        """(kind, from, to) of each flow, names without numbers."""
        def name(e):
            return self.names[e["pid"], e["tid"]].split(" #")[0]
        return collections.Counter((s["cat"], name(s), name(f)) for s, f in self.flows.values())


class Program:
    def __init__(self, *words, workers=2, **environment):
        self.process = subprocess.Popen([os.path.join(PROGRAMS, "subject" if words[0] in ("chaos", "crowd") else "traced"), *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        text=True, env=dict(os.environ, HEDDLE_WORKERS=str(workers), **environment))
        self.pid = self.process.pid
        if self.process.stdout.readline() != "ready\n":
            raise RuntimeError(f"{words} is not ready: {self.process.communicate()}")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.communicate()

    def switches(self):
        """How often the kernel has switched its threads: while none of them is woken, this does not change."""
        total = 0
        for task in os.listdir(f"/proc/{self.pid}/task"):
            with open(f"/proc/{self.pid}/task/{task}/status", encoding="ascii") as status:
                total += sum(int(line.split()[1]) for line in status if "ctxt_switches" in line)
        return total

    def fall_asleep(self):
        """Returns when no thread of the program has run for a while: it says "ready" before it sleeps."""
        limit, last = time.monotonic() + 30, None
        while last != (last := self.switches()):
            if time.monotonic() > limit:
                raise AssertionError("the program does not fall asleep")
            time.sleep(0.3)


def has_begun(tool):
    """Returns once the command catches SIGINT, and a while later: it has begun by then."""
    limit, caught = time.monotonic() + 60, 0
    while not caught & 1 << (signal.SIGINT - 1):
        if time.monotonic() > limit:
            raise AssertionError("the command does not begin")
        time.sleep(0.01)
        with open(f"/proc/{tool.pid}/status", encoding="ascii") as status:
            caught = next(int(line.split()[1], 16) for line in status if line.startswith("SigCgt"))
    time.sleep(0.3)


def heddle(*words, **more):
    return subprocess.run([HEDDLE, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, **more)


def trace(target, *options, seconds=0.3):
    done = heddle("trace", "--seconds", seconds, "--events", EVENTS, "-o", "-", *options, target)
    if done.returncode != 0:
        raise AssertionError(done.stderr)
    return Timeline(done.stdout)


class Live(unittest.TestCase):
    def test_talk(self):
        """Who wakes whom, by what; messages; hand-offs; spawns."""
        for workers in 1, 2, 8:
            with self.subTest(workers), Program("talk", workers=workers) as p:
                t = trace(p.pid)
                arrows = t.arrows()
                self.assertEqual(t.other["workers"], workers)
                self.assertGreater(arrows["message", "sender", "receiver"], 0)
                self.assertGreater(arrows["wake", "ping", "pong"], 0)
                self.assertGreater(arrows["wake", "pong", "ping"], 0)
                self.assertGreater(arrows["spawn", "parent", "child"], 0)
                self.assertGreater(arrows["message", "client", "server"], 0)
                self.assertGreater(arrows["wake", "server", "client"] + arrows["hand-off", "server", "client"], 0)
                self.assertEqual(arrows["message", "receiver", "sender"], 0)
                waits = collections.defaultdict(set)
                for track, slices in t.of_processes().items():
                    waits[t.names[track].split(" #")[0]] |= {s["name"] for s in slices} - {"running", "ready"}
                self.assertLessEqual({"hd_semaphore_wait"}, waits["ping"])
                self.assertLessEqual(waits["ping"], {"hd_semaphore_wait", "hd_sleep", "waiting"})
                self.assertLessEqual(waits["receiver"], {"hd_receive", "waiting"})
                self.assertLessEqual(waits["sleeper"], {"hd_sleep", "waiting"})
                self.assertIn("timed out", {e["name"] for e in t.instants})

    def test_chaos(self):
        """A process runs on one worker at a time, on both tracks at once; whatever is lost or torn is left out."""
        for workers in 1, 2, 8:
            for size in 262144, 256:
                with self.subTest(workers=workers, size=size), Program("chaos", workers=workers) as p:
                    t = trace(p.pid, "--size", size, "--processes", 1000)
                    self.assertGreater(t.other["events"], 0)
                    on_workers = collections.defaultdict(set)
                    for track, slices in t.slices.items():
                        if track[0] == 1:
                            for s in slices:
                                on_workers[s["name"]].add(s["ts"])
                    if t.other["lost"] == 0:
                        for track, slices in t.of_processes().items():
                            for s in slices:
                                if s["name"] == "running":
                                    self.assertIn(s["ts"], on_workers[t.names[track]])
                    for (process, _), name in t.names.items():
                        if process == 2:
                            self.assertRegex(name, r"^(main|friend|worker|child|[\w ]+)? ?#\d+(\.\d+)?$")

    def test_again(self):
        """One trace after the other; the program gives the memory back, and has no events when nothing reads them."""
        with Program("talk") as p:
            for _ in range(3):
                before = time.monotonic()
                while True:  # the one before may not be over yet
                    done = heddle("trace", "--seconds", 0.1, "--events", EVENTS, "-o", "-", p.pid)
                    if done.returncode == 0 or time.monotonic() - before > 30:
                        break
                    self.assertIn("another", done.stderr)
                self.assertGreater(Timeline(done.stdout).other["events"], 0)

    def test_tool_dies(self):
        """The time limit in the wish: the program stops by itself, and another trace can be made."""
        with Program("talk") as p:
            tool = subprocess.Popen([HEDDLE, "trace", "--seconds", "0.2", "-o", "/dev/null", str(p.pid)], stderr=subprocess.DEVNULL)
            time.sleep(0.1)
            tool.kill()
            tool.wait()
            limit = time.monotonic() + 60
            while heddle("trace", "--seconds", 0.1, "--events", EVENTS, "-o", "-", p.pid).returncode != 0:
                self.assertLess(time.monotonic(), limit)
                time.sleep(0.2)

    def test_target_dies(self):
        with Program("slow") as p:
            tool = subprocess.Popen([HEDDLE, "trace", "--seconds", "60", "-o", "-", str(p.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            has_begun(tool)
            p.process.kill()
            out, err = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 0, err)
            self.assertIn("has ended", err)
            Timeline(out)

    def test_interrupt_and_limit(self):
        with Program("slow") as p:
            tool = subprocess.Popen([HEDDLE, "trace", "--seconds", "60", "-o", "-", str(p.pid)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            has_begun(tool)
            tool.send_signal(signal.SIGINT)
            out, err = tool.communicate(timeout=60)
            self.assertEqual(tool.returncode, 0, err)
            Timeline(out)
        with Program("chaos") as p:
            done = heddle("trace", "--seconds", 60, "--events", 5000, "-o", "-", p.pid)
            self.assertIn("enough", done.stderr)
            self.assertEqual(Timeline(done.stdout).other["events"], 5000)

    def test_asleep(self):
        """Nothing happens in a program that sleeps: it is not even woken to be told."""
        with Program("crowd", 3) as p:
            p.fall_asleep()
            done = heddle("trace", "--seconds", 0.2, "-o", "-", p.pid)
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("slept all the time", done.stderr)
            self.assertEqual(Timeline(done.stdout).other["events"], 0)


class Recorded(unittest.TestCase):
    """HEDDLE_TRACE."""

    def test_end(self):
        with tempfile.TemporaryDirectory() as d:
            for workers in 1, 2, 8:
                for size in "", ":64", ":1K":
                    file = os.path.join(d, "x%p.trace")
                    done = subprocess.Popen([TRACED, "brief"], stdout=subprocess.PIPE,
                                            env=dict(os.environ, HEDDLE_WORKERS=str(workers), HEDDLE_TRACE=file + size))
                    self.assertEqual(done.communicate(timeout=60)[0], b"ready\n")
                    self.assertEqual(done.returncode, 0)
                    t = trace(file.replace("%p", str(done.pid)))
                    self.assertEqual(t.other["workers"], workers)
                    if size == "":
                        self.assertEqual(t.other["lost"], 0)
                        self.assertEqual(t.arrows()["spawn", "main", "child"], 100)
                    elif size == ":64":
                        self.assertGreater(t.other["lost"], 0)

    def test_deadlock(self):
        with tempfile.TemporaryDirectory() as d:
            file = os.path.join(d, "deadlock.trace")
            subprocess.run([TRACED, "stuck"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60,
                           env=dict(os.environ, HEDDLE_WORKERS="2", HEDDLE_TRACE=file))
            t = trace(file)
            last = {t.names[track].split(" #")[0]: [s["name"] for s in slices if s["name"] not in ("running", "ready")][-1:]
                    for track, slices in t.of_processes().items()}
            self.assertEqual(last["left"], ["hd_mutex_lock"])
            self.assertEqual(last["right"], ["hd_mutex_lock"])

    def test_also_read_from_outside(self):
        with tempfile.TemporaryDirectory() as d:
            with Program("talk", HEDDLE_TRACE=os.path.join(d, "talk.trace")) as p:
                self.assertGreater(trace(p.pid).other["events"], 0)

    def test_errors(self):
        with tempfile.TemporaryDirectory() as d:
            for text, said in (os.path.join(d, "no/where"), "cannot be written"), ("x:5M", "at most"), ("x" * 5000, "too long"):
                done = subprocess.run([TRACED, "brief"], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                                      timeout=60, env=dict(os.environ, HEDDLE_TRACE=text))
                self.assertIn(said, done.stderr)
            half = os.path.join(d, "half")
            whole = os.path.join(d, "whole")
            subprocess.run([TRACED, "brief"], stdout=subprocess.DEVNULL, timeout=60, check=True,
                           env=dict(os.environ, HEDDLE_TRACE=whole))
            with open(whole, "rb") as f:
                content = f.read()
            with open(half, "wb") as f:
                f.write(content[:len(content) // 2])
            done = heddle("trace", "-o", "-", half)
            self.assertEqual(done.returncode, 2)
            self.assertIn("its end is missing", done.stderr)

    def test_damaged(self):
        """Whatever a file has, it is read to its end, or refused."""
        with tempfile.TemporaryDirectory() as d:
            whole, other = os.path.join(d, "whole"), os.path.join(d, "other")
            subprocess.run([TRACED, "brief"], stdout=subprocess.DEVNULL, timeout=60, check=True,
                           env=dict(os.environ, HEDDLE_TRACE=whole + ":512", HEDDLE_WORKERS="2"))
            with open(whole, "rb") as f:
                content = f.read()
            seed = 12345
            for i in range(60):
                damaged = bytearray(content)
                for _ in range(1 + i % 20):
                    seed = (seed * 6364136223846793005 + 1442695040888963407) % (1 << 64)
                    damaged[(seed >> 20) % len(damaged)] = seed >> 50 & 255
                with open(other, "wb") as f:
                    f.write(damaged)
                done = heddle("trace", "-o", "-", other)
                self.assertIn(done.returncode, (0, 2), done.stderr)
                if done.returncode == 0:
                    json.loads(done.stdout)


class Replayed(unittest.TestCase):
    @unittest.skipIf(SANITIZED, "the simulator needs a plain build")
    def test_timeline(self):
        with tempfile.TemporaryDirectory() as d:
            texts = []
            for _ in range(2):
                out = os.path.join(d, "out.json")
                done = heddle("replay", f"--trace={out}", "7", TRACED, "brief")
                self.assertEqual(done.returncode, 0, done.stderr + done.stdout)
                with open(out) as f:
                    texts.append(re.sub(r"0x[0-9a-f]+", "", f.read()))
            self.assertEqual(texts[0], texts[1])
            self.assertEqual(Timeline(texts[0]).arrows()["spawn", "main", "child"], 100)
            out = os.path.join(d, "stuck.json")
            done = heddle("replay", f"--trace={out}", "7", TRACED, "stuck")
            self.assertEqual(done.returncode, 1, done.stderr + done.stdout)
            with open(out) as f:
                Timeline(f.read())


class Errors(unittest.TestCase):
    def test_all(self):
        for words, said in ((), "which program"), (("--seconds", "0", "1"), "--seconds"), (("--seconds", "x", "1"), "--seconds"), \
                (("--size", "5000000", "1"), "--size"), (("999999999",), "no process"), (("/dev/null",), "core"), ((os.getpid(),), "no heddle"):
            done = heddle("trace", *words)
            self.assertEqual(done.returncode, 2, words)
            self.assertIn(said, done.stderr)


class Stress(unittest.TestCase):
    def test_million(self):
        with Program("chaos") as p:
            done = heddle("trace", "--seconds", 60, "--events", 1000000, "-o", "-", p.pid)
            t = Timeline(done.stdout)
            self.assertEqual(t.other["events"], 1000000)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[1:]], verbosity=1)
