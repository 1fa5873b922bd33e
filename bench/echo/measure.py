"""The echo section of bench/run: servers under load from one client, and with idle connections.

Server and client have a CPU each, except where two workers are compared with one. Every measurement starts a server of its own. Rounds
alternate between the servers; a figure is the median over the rounds that other programs disturbed least.
"""
import collections
import ctypes
import os
import select
import signal
import subprocess
import tempfile

from common import (C_FLAGS, ENOUGH, Failed, Machine, Peer, Progress, ROOT, TIME_LIMIT, build_heddle, build_peer, figure, first_to_die,
                    last_line, median_of_quiet, print_lines, quiet_rounds, ratio, run_program)

Server = collections.namedtuple("Server", "key title peer arguments", defaults=[[]])


def c_program(key):
    return Peer(key, key, "gcc libc6-dev", "echo", lambda output: ["gcc", *C_FLAGS, "-o", output, f"{key}.c", "-pthread"])


CLIENT = c_program("client")
ASIO = Peer("asio", "Boost.Asio", "g++ libboost-fiber-dev", "echo", lambda output: [
    "g++", "-std=c++20", "-O2", "-DNDEBUG", "-o", output, "asio.cc", "-pthread"])
GO = Peer("go", "Go", "golang-go", "echo/go", lambda output: ["go", "build", "-buildvcs=false", "-o", output, "."])
SERVERS = [
    Server("heddle", "heddle", None),
    Server("epoll", "bare epoll", c_program("epoll")),
    Server("go", "Go", GO),
    Server("asio", "Boost.Asio, callbacks", ASIO, ["callbacks"]),
    Server("asio_coroutines", "Boost.Asio, coroutines", ASIO, ["coroutines"]),
    Server("threads", "a thread per connection", c_program("threads")),
]

# One load: what the client does, and how many workers the server has. In a pair, one worker is compared with two, both on two CPUs; the
# client has a third one if there is one.
Load = collections.namedtuple("Load", "connections outstanding workers pair", defaults=[1, False])
SLOWEST = Load(10000, 100)  # for its connecting, once more: left out by --quick
LOADS = [Load(1000, 1000), Load(10000, 10000), SLOWEST, Load(1000, 1000, 1, True), Load(1000, 1000, 2, True)]
PAIR = [load for load in LOADS if load.pair]
GOALS = [("epoll", 1.05), ("go", 0.75)]  # heddle's CPU time per request, times that of these
IDLE = 10000  # connections
FIGURES = ["rate", "cpu", "client_cpu", "busy", "p50", "p99", "p99.9"]


def die_with_parent():
    """No server outlives the bench."""
    first_to_die()
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


class RunningServer:
    """A server's process, on these CPUs. Raises Failed when it does not say its port."""

    def __init__(self, command, workers, cpus):
        self.messages = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(["taskset", "-c", cpus, *command], env=dict(os.environ, BENCH_WORKERS=str(workers)),
                                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=self.messages, text=True,
                                        preexec_fn=die_with_parent)
        said = select.select([self.process.stdout], [], [], TIME_LIMIT)[0] and self.process.stdout.readline().split()
        if not said or said[0] != "port":
            self.stop()
            raise Failed(self.last_message() or "did not say its port")
        self.port, self.pid = said[1], str(self.process.pid)

    def stop(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def last_message(self):
        self.messages.seek(0)
        return last_line(self.messages.read(), "")

    def __enter__(self):
        return self

    def __exit__(self, kind, failure, _):
        """Stops the server. Its own last message, if it has one, explains better than the client's why a measurement failed."""
        self.stop()
        message = self.last_message()
        self.messages.close()
        if kind is Failed and message:
            raise Failed(f"{message} (the client: {failure})") from None


class Echo:
    name, servers, all_loads, idle_too = "echo", SERVERS, LOADS, True
    command = "load"  # of the client

    def __init__(self, options):
        self.options = options
        self.rounds = options.rounds
        self.loads = [load for load in self.all_loads if not (options.quick and load is SLOWEST)]
        self.seconds, self.idle_seconds = ("0.4", "1") if options.quick else ("1", "5")
        self.values = collections.defaultdict(list)  # (load, server, figure): per round a value, and the CPUs that others used
        self.idle = {}  # server: {figure: value}
        self.programs, self.reasons = {}, {}  # by server; reasons also by (server, load)
        self.cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]

    def build(self):
        directory = os.path.join(ROOT, self.options.build, self.name)
        os.makedirs(directory, exist_ok=True)
        progress = Progress(len(self.servers) + 1)
        progress.step(f"building the {self.name} client")
        self.client = os.path.join(directory, "client")
        try:
            build_peer(CLIENT, self.client)
        except Failed as failure:
            self.reasons["the client"] = str(failure)
            return
        for server in self.servers:
            progress.step(f"building {server.title}")
            try:
                self.programs[server.key] = [self.build_server(server, directory), *server.arguments]
            except Failed as failure:
                self.reasons[server.title] = str(failure)
        progress.clear()

    def build_server(self, server, directory):
        """Builds a server's program, unless another server is the same program; answers its path."""
        if server.peer is None:
            build_heddle(self.options.build)
            output = os.path.join(ROOT, self.options.build, "bench", f"heddle-{self.name}")
            if not os.path.exists(output):
                raise Failed("has no I/O yet")
            return output
        output = os.path.join(directory, server.peer.key)
        if output not in (command[0] for command in self.programs.values()):
            build_peer(server.peer, output)
        return output

    def cpus_of(self, pair):
        """The CPUs of the server, and those of the client."""
        if not pair:
            return self.cpus[0], self.cpus[1]
        both = ",".join(self.cpus[:2])
        return both, self.cpus[2] if len(self.cpus) > 2 else both

    def run(self, server, workers, pair, command, *arguments):
        """Runs the client against a server; answers what it printed, and the CPUs that others used meanwhile."""
        machine = Machine()
        its, mine = self.cpus_of(pair)
        with RunningServer(self.programs[server.key], workers, its) as running:
            values, _ = run_program(["taskset", "-c", mine, self.client, command, running.port, running.pid, *arguments], os.environ)
        return values, machine.used_by_others()

    def measure_load(self, load, server):
        if (server.title, load) in self.reasons:
            return
        try:
            values, others = self.run(server, load.workers, load.pair, self.command, str(load.connections),
                                      str(load.outstanding), self.seconds)
            for name in FIGURES:
                self.values[load, server.key, name].append((values[name], others))
        except Failed as failure:
            self.reasons[server.title, load] = str(failure)

    def measure_idle(self, server):
        try:
            self.idle[server.key], _ = self.run(server, 1, False, "idle", str(IDLE), self.idle_seconds)
        except Failed as failure:
            self.reasons[server.title, "idle"] = str(failure)

    def measure(self):
        if len(self.cpus) < 2:
            self.reasons["all"] = "server and client need a CPU each"
            return
        servers = [s for s in self.servers if s.key in self.programs]
        progress = Progress((len(self.loads) * self.rounds + self.idle_too) * len(servers))
        try:
            for r in range(1, self.rounds + 1):
                for load in self.loads:
                    for server in servers:
                        progress.step(f"round {r} of {self.rounds}: {self.name}, {load.connections} connections, {server.title}")
                        self.measure_load(load, server)
            for server in servers if self.idle_too else []:
                progress.step(f"{IDLE} idle connections, {server.title}")
                self.measure_idle(server)
        finally:
            progress.clear()

    def value(self, load, server, name):
        return median_of_quiet(self.values.get((load, server, name), []))

    def verdict(self, load):
        """heddle's goals as text, and whether they are met; nothing without heddle."""
        mine = self.value(load, "heddle", "cpu")
        judged = [(f"<= {limit} x {key}", self.value(load, key, "cpu") and mine <= limit * self.value(load, key, "cpu"))
                  for key, limit in GOALS] if mine else []
        missed = [text for text, met in judged if met is False]
        return ", ".join(text for text, _ in judged), f"MISSED {', '.join(missed)}" if missed else "met" if judged else ""

    def print_loads(self):
        print("\nEcho of 64 bytes over loopback: server on one CPU, client on another. So many connections, so many messages under way at\n"
              "once, on connections in turn; the server's CPU time per request, and that divided by bare epoll's; how long replies took.\n"
              "'busy' is how much of its CPU the server used: where it is below 1, the client or another program was the limit.")
        header = ["connections", "under way", "server", "requests/s", "CPU us", "/epoll", "busy", "p50 us", "p99 us", "p99.9 us", "goal", ""]
        lines, disturbed = [], set()
        for load in self.loads:
            for server in self.servers:
                rounds = self.values.get((load, server.key, "cpu"))
                if load.pair or not rounds:
                    continue
                rate, cpu, busy, *times = (self.value(load, server.key, name) for name in ("rate", "cpu", "busy", "p50", "p99", "p99.9"))
                lines.append([str(load.connections), str(load.outstanding), server.title, f"{rate:.0f}", f"{cpu:.2f}",
                              ratio(cpu, self.value(load, "epoll", "cpu")), f"{busy:.2f}", *map(figure, times),
                              *(self.verdict(load) if server.key == "heddle" else ("", ""))])
                if quiet_rounds(rounds) < min(ENOUGH, self.rounds):
                    disturbed.add(server.title)
        print_lines(header, lines, (2, -2, -1))
        if disturbed:
            print(f"Other programs disturbed too many rounds of: {', '.join(sorted(disturbed))}.")

    def print_pair(self):
        where = "the client has a third" if len(self.cpus) > 2 else "the client shares them"
        print(f"\nOne worker and two, both on two CPUs; {where}. {PAIR[0].connections} connections, all active. Requests per second are limited\n"
              "by the client, which needs about as much CPU time for a request as a server. 'at best' is the speed-up that two workers\n"
              "have where the client is not the limit, if each has half of the requests: 2 x the CPU time with one / that with two.")
        header = ["server", "requests/s", "with 2", "CPU us", "with 2", "client us", "with 2", "at best"]
        lines = []
        for server in self.servers:
            one, two = ([self.value(load, server.key, name) for name in ("rate", "cpu", "client_cpu")] for load in PAIR)
            if None not in one + two:
                lines.append([server.title, f"{one[0]:.0f}", f"{two[0]:.0f}", *(f"{x:.2f}" for i in (1, 2) for x in (one[i], two[i])),
                              f"{2 * one[1] / two[1]:.2f}"])
        print_lines(header, lines, (0,))

    def print_idle(self):
        print(f"\n{IDLE} idle connections, each of which had one message: the server's memory per connection, without the kernel's (a socket,\n"
              f"and for a kernel thread 16 KiB of stack and more), and its CPU time while nothing happened for {self.idle_seconds} s.")
        header = ["server", "bytes", "CPU ms/s", "kernel threads"]
        lines = [[s.title, f"{v['memory']:.0f}", f"{v['idle']:.3f}", f"{v['threads']:.0f}"]
                 for s, v in ((s, self.idle[s.key]) for s in self.servers if s.key in self.idle)]
        print_lines(header, lines, (0,))

    def print(self):
        if self.values:
            self.print_loads()
            self.print_pair()
        if self.idle:
            self.print_idle()
        for what, reason in self.reasons.items():
            title, load = what if isinstance(what, tuple) else (what, None)
            print(f"{self.name}, {title}{f', {load.connections} connections' if isinstance(load, Load) else f', {load}' if load else ''}: {reason}")

    def record(self):
        """Every figure, for a JSON file."""
        def name(load):
            return f"{load.connections}/{load.outstanding}/{load.workers}{'/pair' if load.pair else ''}"
        loads = {name(load): {server.key: {f: {"median": self.value(load, server.key, f),
                                               "rounds": [value for value, _ in self.values.get((load, server.key, f), [])]}
                                           for f in FIGURES} for server in self.servers} for load in self.loads}
        return {"loads": loads, "idle": self.idle}
