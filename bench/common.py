"""What the sections of bench/run share: building and running programs, telling how busy the machine is, printing tables."""
import collections
import os
import platform
import resource
import shutil
import statistics
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
BENCH = os.path.join(ROOT, "bench")
TIME_LIMIT = 120  # seconds, for one program running one case
BUSY = 0.1  # CPUs used by other programs: more makes a machine busy
ENOUGH = 3  # rounds that a median is made of, at least
SKIPPED = 77  # the exit code of a program for which a case makes no sense (harness.h)

C_FLAGS = ["-std=gnu11", "-D_GNU_SOURCE", "-O2", "-Wall"]

Peer = collections.namedtuple("Peer", "key title package where command")  # where and how to build `output`


class Failed(Exception):
    pass


def last_line(text, otherwise="no message"):
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else otherwise


def first_error(text):
    """The line of a compiler's or meson's output that says what is wrong."""
    return next((line.strip() for line in text.splitlines() if "error" in line.lower()), last_line(text))


class Progress:
    """One line on stderr that says what is being done; on a terminal it overwrites itself."""

    def __init__(self, total):
        self.done, self.total, self.tty = 0, total, sys.stderr.isatty()

    def step(self, what):
        self.done += 1
        self.say(f"[{self.done}/{self.total}] {what}")

    def say(self, text):
        print(f"\r\033[K{text}" if self.tty else text, end="" if self.tty else "\n", file=sys.stderr, flush=True)

    def clear(self):
        if self.tty:
            print("\r\033[K", end="", file=sys.stderr, flush=True)


def build_heddle(directory):
    """Builds heddle, heddle-bench and calibrate; raises Failed with the reason."""
    done = subprocess.run([os.path.join(ROOT, "tools", "build"), directory, "-Dbench=true", "-Dtests=false",
                           "-Dexamples=false"], cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        print(done.stdout, file=sys.stderr)
        raise Failed("did not build: " + first_error(done.stdout))


def build_peer(peer, output):
    """Builds a peer's program; raises Failed with the reason."""
    command, where = peer.command(output), os.path.join(BENCH, peer.where)
    # For go: without a network, a C compiler or a home directory.
    environment = dict(os.environ, CGO_ENABLED="0", GOPROXY="off", GOTOOLCHAIN="local", GO111MODULE="on", GOFLAGS="",
                       GOCACHE=os.path.join(os.path.dirname(output), "go-cache"))
    if shutil.which(command[0]) is None:
        raise Failed(f"{command[0]} is missing (Debian: {peer.package})")
    done = subprocess.run(command, cwd=where, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failed(f"did not build (Debian: {peer.package}): {first_error(done.stdout)}")


def available_gib():
    with open("/proc/meminfo") as f:
        for line in f:
            if line.startswith("MemAvailable:"):
                return int(line.split()[1]) / 2**20
    return 0


def first_to_die():
    """If memory runs out after all, it is the bench that goes and nothing else on the machine."""
    try:
        with open("/proc/self/oom_score_adj", "w") as f:
            f.write("1000")
    except OSError:
        pass


def run_program(command, environment):
    """Runs one bench program. Returns two dictionaries, measurements and counters; raises Failed with the reason."""
    try:
        done = subprocess.run(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=TIME_LIMIT, preexec_fn=first_to_die)
    except subprocess.TimeoutExpired:
        raise Failed(f"not done within {TIME_LIMIT} s")
    except OSError as error:
        raise Failed(str(error))
    if done.returncode == SKIPPED:
        raise Failed(last_line(done.stderr))
    if done.returncode < 0:
        raise Failed(f"killed by signal {-done.returncode}: {last_line(done.stderr)}")
    if done.returncode > 0:
        raise Failed(f"exit code {done.returncode}: {last_line(done.stderr)}")
    values, counters = {}, {}
    for words in map(str.split, done.stdout.splitlines()):
        if len(words) == 3 and words[0] == "#":
            counters[words[1]] = int(words[2])
        elif len(words) == 2:
            values[words[0]] = float(words[1])
    return values, counters


class Machine:
    """How much CPU time others used while this ran: figures from a busy machine are worth little."""

    def __init__(self):
        self.started, self.busy, self.own = time.time(), self.all_busy(), self.own_busy()

    @staticmethod
    def all_busy():
        with open("/proc/stat") as f:
            user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, f.readline().split()[1:9])
        return (user + nice + system + irq + softirq + steal) / os.sysconf("SC_CLK_TCK")

    @staticmethod
    def own_busy():
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        return sum(u.ru_utime + u.ru_stime for u in used)

    def used_by_others(self):
        """In CPUs."""
        others = (self.all_busy() - self.busy) - (self.own_busy() - self.own)
        return max(0.0, others / max(time.time() - self.started, 1e-9))

    @staticmethod
    def describe():
        model = platform.machine()
        with open("/proc/cpuinfo") as f:
            for line in f:
                if line.startswith("model name"):
                    model = line.split(":", 1)[1].strip()
                    break
        kernel = ".".join(platform.release().split(".")[:2])
        return f"{model}, {len(os.sched_getaffinity(0))} CPUs, Linux {kernel}"


def quiet_rounds(rounds):
    """In how many rounds the machine was quiet; a round is a value, and the CPUs that other programs used meanwhile."""
    return sum(others <= BUSY for _, others in rounds)


def median_of_quiet(rounds):
    """The median over the rounds in which the machine was quiet, or over the quietest if these are too few."""
    ordered = sorted(rounds, key=lambda value: value[1])
    return statistics.median(value for value, _ in ordered[:max(quiet_rounds(rounds), ENOUGH)]) if rounds else None


def figure(value):
    if value is None:
        return "-"
    return f"{value:.1f}" if value < 1000 else f"{value:.0f}"


def ratio(mine, other):
    return "-" if mine is None or not other else f"{mine / other:.2f}"


def print_lines(header, lines, text=(0, 1, -2, -1)):
    """Prints a table; its columns are figures except those whose numbers are in `text`."""
    lines = [header, *lines]
    widths = [max(len(line[i]) for line in lines) for i in range(len(header))]
    left = {i % len(header) for i in text}
    for n, line in enumerate(lines):
        cells = [c.ljust(w) if i in left else c.rjust(w) for i, (c, w) in enumerate(zip(line, widths))]
        print("  ".join(cells).rstrip())
        if n == 0:
            print("  ".join("-" * w for w in widths))
