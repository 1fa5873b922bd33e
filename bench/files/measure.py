"""The files section of bench/run: 64 readers of a file of 1 GiB, 4 KiB at a time at random places, past the page cache and out of it."""
import collections
import json
import os
import shutil
import struct
import subprocess

from common import (C_FLAGS, ENOUGH, Failed, Machine, Peer, Progress, ROOT, TIME_LIMIT, available_gib, build_heddle, build_peer, figure, last_line,
                    median_of_quiet, print_lines, quiet_rounds, run_program)

BLOCK, CHUNK, GIB = 4096, 1 << 20, 1 << 30
READERS = 64


def c_program(key, package, *libraries):
    return Peer(key, key, package, "files", lambda output: ["gcc", *C_FLAGS, "-o", output, f"{key}.c", *libraries])


Reader = collections.namedtuple("Reader", "key title peer")
READERS_BY = [
    Reader("heddle-files", "heddle, io_uring", None),
    Reader("heddle-files-by-threads", "heddle, its threads", None),
    Reader("threads", f"pread, {READERS} threads", c_program("threads", "gcc libc6-dev", "-pthread")),
    Reader("uring", "io_uring, one thread", c_program("uring", "gcc liburing-dev", "-luring")),
    Reader("fio", "fio, io_uring", None),
]
MODES = [("direct", "O_DIRECT"), ("cached", "page cache")]
FIGURES = ["rate", "cpu", "p50", "p99", "p99.9"]


def make_file(path):
    """Writes the file; each block begins with its number. It is smaller where there is little room on the disk."""
    size = min(GIB, shutil.disk_usage(os.path.dirname(path)).free // 4) // CHUNK * CHUNK
    chunk = bytearray(os.urandom(CHUNK))
    with open(path, "wb") as f:
        for start in range(0, size, CHUNK):
            for at in range(0, CHUNK, BLOCK):
                struct.pack_into("=Q", chunk, at, (start + at) // BLOCK)
            f.write(chunk)
        os.fsync(f.fileno())
    return size


def read_into_cache(path):
    with open(path, "rb") as f:
        while f.read(CHUNK):
            pass


def run_fio(path, mode, seconds):
    """What the programs print, from fio."""
    done = subprocess.run(["fio", "--name=read", f"--filename={path}", "--readonly", "--rw=randread", f"--bs={BLOCK}", "--thread",
                           "--ioengine=io_uring", f"--iodepth={READERS}", f"--direct={int(mode == 'direct')}", "--time_based",
                           "--invalidate=0", f"--runtime={seconds}", "--percentile_list=50:99:99.9", "--output-format=json"],
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=TIME_LIMIT)
    if done.returncode != 0:
        raise Failed(last_line(done.stderr))
    job = json.loads(done.stdout)["jobs"][0]
    percentiles = {name: job["read"]["clat_ns"]["percentile"][key] / 1e3
                   for name, key in (("p50", "50.000000"), ("p99", "99.000000"), ("p99.9", "99.900000"))}
    rate = job["read"]["iops"]
    return {"rate": rate, "cpu": (job["usr_cpu"] + job["sys_cpu"]) / 100 / rate * 1e6, **percentiles}


class Files:
    def __init__(self, options):
        self.options = options
        self.seconds = "1" if options.quick else "2"
        self.values = collections.defaultdict(list)  # (mode, reader, figure): per round a value, and the CPUs that others used
        self.programs, self.reasons, self.size = {}, {}, 0

    def build(self):
        directory = os.path.join(ROOT, self.options.build, "files")
        os.makedirs(directory, exist_ok=True)
        self.path = os.path.join(directory, "data")
        progress = Progress(len(READERS_BY))
        for reader in READERS_BY:
            progress.step(f"building {reader.title}")
            try:
                output = os.path.join(directory, reader.key)
                if reader.peer is not None:
                    build_peer(reader.peer, output)
                elif reader.key != "fio":
                    build_heddle(self.options.build)
                    output = os.path.join(ROOT, self.options.build, "bench", reader.key)
                    if not os.path.exists(output):
                        raise Failed("was built without io_uring (Debian: liburing-dev)")
                elif shutil.which(reader.key) is None:
                    raise Failed(f"{reader.key} is missing (Debian: {reader.key})")
                self.programs[reader.key] = output
            except Failed as failure:
                self.reasons[reader.title] = str(failure)
        progress.clear()

    def measure_reader(self, mode, reader):
        if reader.title in self.reasons or (reader.title, mode) in self.reasons:
            return
        machine = Machine()
        try:
            values = (run_fio(self.path, mode, self.seconds) if reader.key == "fio"
                      else run_program([self.programs[reader.key], self.path, mode, self.seconds], os.environ)[0])
            others = machine.used_by_others()
            for name in FIGURES:
                self.values[mode, reader.key, name].append((values[name], others))
        except Failed as failure:
            self.reasons[reader.title, mode] = str(failure)

    def measure(self):
        rounds = self.options.rounds
        progress = Progress(1 + rounds * len(MODES) * len(READERS_BY))
        try:
            progress.step("writing a file to read")
            self.size = make_file(self.path)
            for r in range(1, rounds + 1):
                for mode, title in MODES:
                    if mode == "cached" and available_gib() * GIB < 2 * self.size:
                        self.reasons[title] = "too little memory is available"
                        continue
                    read_into_cache(self.path)
                    for reader in READERS_BY:
                        progress.step(f"round {r} of {rounds}: {title}, {reader.title}")
                        self.measure_reader(mode, reader)
        except OSError as error:
            self.reasons["the file"] = str(error)
        finally:
            if os.path.exists(self.path):
                os.remove(self.path)
            progress.clear()

    def value(self, mode, reader, name):
        return median_of_quiet(self.values.get((mode, reader, name), []))

    def print(self):
        if self.values:
            self.print_reads()
        for what, reason in self.reasons.items():
            print(f"Files, {', '.join(what) if isinstance(what, tuple) else what}: {reason}")

    def print_reads(self):
        print(f"\nReads of {BLOCK} bytes at random places of a file of {self.size // CHUNK} MiB, {READERS} under way at any time: CPU time per\n"
              "read, over all threads, and how long reads took. A virtual machine's disk may be in a cache of its host.")
        lines, disturbed = [], False
        for mode, title in MODES:
            for reader in READERS_BY:
                rounds = self.values.get((mode, reader.key, "cpu"))
                if rounds:
                    rate, cpu, *times = (self.value(mode, reader.key, name) for name in FIGURES)
                    lines.append([title, reader.title, f"{rate:.0f}", f"{cpu:.2f}", *map(figure, times)])
                    disturbed |= quiet_rounds(rounds) < min(ENOUGH, self.options.rounds)
        print_lines(["from", "by", "reads/s", "CPU us", "p50 us", "p99 us", "p99.9 us"], lines, (0, 1))
        if disturbed:
            print("Other programs disturbed too many rounds.")

    def record(self):
        """Every figure, for a JSON file."""
        return {mode: {reader.key: {name: {"median": self.value(mode, reader.key, name),
                                           "rounds": [value for value, _ in self.values.get((mode, reader.key, name), [])]}
                                    for name in FIGURES} for reader in READERS_BY} for mode, _ in MODES}
