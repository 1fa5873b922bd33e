#!/usr/bin/env python3
"""tests/inside/web.py [-f] [GROUP...] - `heddle web`: its server, and its page in a browser.

The programs are those of inside.py. The browser is Chromium without a window; where there is none, Browser is skipped."""
import concurrent.futures
import json
import re
import shutil
import socket
import subprocess
import sys
import unittest
import urllib.error
import urllib.request

from inside import HEDDLE, SCHEMA, Subject, check, heddle, settled

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")


class Web:
    """`heddle web` of a program; its address."""

    def __init__(self, target, *options):
        self.process = subprocess.Popen([HEDDLE, "web", *options, str(target)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError(self.process.stderr.read())
        self.host, self.port, self.token = re.fullmatch(r"http://(.+):(\d+)/([0-9a-f]{32})/", self.address).groups()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def get(self, what):
        """Status, type and body."""
        try:
            with urllib.request.urlopen(self.address + what, timeout=60) as answer:
                return answer.status, answer.headers["Content-Type"], answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.headers["Content-Type"], error.read()

    def status(self, request):
        """Of a request as it is sent, byte for byte; None if the server closes without an answer."""
        with socket.create_connection((self.host, int(self.port)), timeout=60) as s:
            s.sendall(request)
            s.shutdown(socket.SHUT_WR)
            answer = b""
            while more := s.recv(65536):
                answer += more
        return int(answer.split()[1]) if answer else None


class Server(unittest.TestCase):
    def test_page_is_whole(self):
        with Subject("deadlock") as s, Web(s.pid) as w:
            settled(s)
            status, kind, page = w.get("")
            self.assertEqual((status, kind), (200, "text/html; charset=utf-8"))
            files = re.findall(rb'(?:src|href)="([^"]*)"', page)
            self.assertEqual(files, [b"page.css", b"page.js"])  # nothing from elsewhere
            for file in files:
                status, _, text = w.get(file.decode())
                self.assertEqual(status, 200)
                self.assertNotRegex(text, rb"https?://(?!www\.w3\.org/2000/svg)")

    def test_processes_and_waits(self):
        with Subject("deadlock") as s, Web(s.pid) as w:
            there = settled(s)["runtimes"][0]["processes"]
            status, kind, text = w.get("ps.json")
            self.assertEqual((status, kind), (200, "application/json"))
            answer = json.loads(text)
            check(answer, SCHEMA)
            self.assertEqual([p["pid"] for p in answer["runtimes"][0]["processes"]], [p["pid"] for p in there])
            status, _, text = w.get("ps.json?sort=waiters&first=2&state=waiting")
            answer = json.loads(text)["runtimes"][0]
            self.assertEqual((status, len(answer["processes"]), answer["left_out"]), (200, 2, len(there) - 2))
            status, _, text = w.get("waits.txt")
            self.assertEqual(status, 200)  # also when a deadlock was found
            self.assertIn(b"a circle of 2 processes", text)
            status, kind, text = w.get("metrics")
            self.assertEqual((status, kind), (200, "text/plain; version=0.0.4; charset=utf-8"))
            self.assertEqual(text.decode(), re.sub(r"(?m)^(?!#|heddle_).*", "", text.decode()))  # Prometheus's lines
            self.assertIn(b"\nheddle_", text)

    def test_only_with_the_token(self):
        with Subject("deadlock") as s, Web(s.pid) as w:
            wrong = "0" * 32 if w.token != "0" * 32 else "1" * 32
            for path in "/", "/ps.json", f"/{wrong}/", f"/{wrong}/ps.json", f"/{w.token[:-1]}/", f"/{w.token}0/", f"/{w.token}", f"//{w.token}/":
                self.assertEqual(w.status(f"GET {path} HTTP/1.1\r\n\r\n".encode()), 403, path)
            self.assertEqual(w.status(f"GET /{w.token}/ HTTP/1.1\r\n\r\n".encode()), 200)
            with Web(s.pid) as other:
                self.assertNotEqual(other.token, w.token)

    def test_only_this_machine(self):
        with Subject("deadlock") as s, Web(s.pid) as w:
            with open("/proc/net/tcp") as f:
                local = [line.split()[1] for line in f if f":{int(w.port):04X} " in line and " 0A " in line]
            self.assertEqual(local, [f"0100007F:{int(w.port):04X}"])
        with Subject("deadlock") as s, Web(s.pid, "--listen", "0.0.0.0") as w:
            self.assertEqual(w.host, "0.0.0.0")

    def test_bad_requests(self):
        with Subject("deadlock") as s, Web(s.pid) as w:
            good = f"GET /{w.token}/ HTTP/1.1\r\n".encode()
            for request, expected in [
                    (b"", None), (b"\r\n\r\n", 405), (b"POST / HTTP/1.1\r\n\r\n", 405), (b"GET / SMTP\r\n\r\n", 400), (b"GET x HTTP/1.1\r\n\r\n", 400),
                    (b"GET /" + b"a" * 10000, 414), (good + b"X: " + b"y" * 10000, 431), (good + b"X: y\r\n" * 5000, 431), (good, None),
                    (good + b"Content-Length: 1\r\n\r\nx", 413), (b"\0" * 5000, 414), (b"GET /" + w.token.encode() + b"/" + b"a" * 700 + b" HTTP/1.1\r\n\r\n", 414)]:
                self.assertEqual(w.status(request), expected, request[:60])
            for what in "nothing", "..%2f..%2fetc/passwd", "../../etc/passwd", "ps.json/", "page.js?x":
                self.assertIn(w.get(what)[0], (404, 200) if what == "page.js?x" else (404,), what)
            for query in "first", "first=", "first=1;ls", "first=-1", "sort=--help", "state=waiting&x=1", "name=*", "first=1&" * 20:
                self.assertEqual(w.get(f"ps.json?{query}")[0], 400, query)
            status, _, text = w.get("ps.json?sort=colour")
            self.assertEqual((status, b"--sort colour" in text), (502, True))
            self.assertEqual(w.get("ps.json")[0], 200)

    def test_outlives_the_program(self):
        with Subject("deadlock") as s:
            w = Web(s.pid)
            self.assertEqual(w.get("ps.json")[0], 200)
        with w:
            for _ in range(2):
                status, _, text = w.get("ps.json")
                self.assertEqual((status, text.startswith(b"heddle: ")), (502, True))
            self.assertEqual(w.get("")[0], 200)

    def test_many_at_once(self):
        with Subject("chaos") as s, Web(s.pid) as w, concurrent.futures.ThreadPoolExecutor(20) as crowd:
            for status, _, text in crowd.map(w.get, ["ps.json?first=100"] * 100):
                self.assertEqual(status, 200, text)
                check(json.loads(text), SCHEMA)

    def test_what_is_wrong_is_said(self):
        for words, expected in [([], "which program?"), (["999999999"], "there is no process"), (["--port", "70000", "1"], "--port"), (["--colour", "1"], "colour")]:
            done = heddle("web", *words)
            self.assertEqual((done.returncode, done.stdout), (2, ""), words)
            self.assertIn(expected, done.stderr)
        with Subject("deadlock") as s, Web(s.pid) as w:
            done = heddle("web", "--port", w.port, s.pid)
            self.assertEqual(done.returncode, 2)
            self.assertIn(f"cannot listen on 127.0.0.1, port {w.port}", done.stderr)


@unittest.skipUnless(CHROMIUM, "there is no Chromium (Debian: chromium)")
class Browser(unittest.TestCase):
    def page(self, address, ms=4000):
        """What the page has become after so much of its own time."""
        done = subprocess.run([CHROMIUM, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", f"--virtual-time-budget={ms}",
                               "--dump-dom", address], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=300)
        self.assertNotIn("Uncaught", done.stderr)
        self.assertNotIn("Content Security Policy", done.stderr)
        return done.stdout

    def test_table(self):
        with Subject("kinds") as s, Web(s.pid) as w:
            names = [p["name"] for p in settled(s)["runtimes"][0]["processes"]]
            page = self.page(w.address)
        for name in names:
            self.assertIn(f"<td>{name}</td>".replace("&", "&amp;"), page)
        self.assertIn("worker 1: asleep", page)
        self.assertRegex(page, r"hd_mutex_lock, mutex 0x[0-9a-f]+, held by with mutex #")

    def test_deadlock_is_drawn(self):
        with Subject("deadlock") as s, Web(s.pid) as w:
            settled(s)
            page = self.page(w.address + "#waits")
        self.assertEqual(page.count('class="edge circle"'), 2)
        self.assertEqual(page.count('class="node circle"'), 2)
        self.assertIn("a circle of 2 processes", page)

    def test_updates(self):
        with Subject("chaos") as s, Web(s.pid) as w:
            page = self.page(w.address + "#timeline", 8000)
            self.assertGreater(page.count("<rect"), 2 * page.count('class="strip"'))
            self.assertRegex(self.page(w.address + "#histograms"), r"Waiting, for how long \([1-9]")

    def test_end_of_the_program_is_said(self):
        with Subject("deadlock") as s:
            w = Web(s.pid)
        with w:
            self.assertRegex(self.page(w.address), r'role="alert">heddle: there is no process')


if __name__ == "__main__":
    unittest.main(argv=sys.argv, verbosity=1)
