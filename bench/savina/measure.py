"""The savina section of bench/run: the micro and concurrency programs of the Savina suite, heddle beside Go and Erlang, with one worker and two."""
import collections
import os

from common import (ENOUGH, Failed, Machine, Peer, Progress, ROOT, build_heddle, build_peer, figure, median_of_quiet, print_lines,
                    quiet_rounds, ratio, run_program)

PEERS = [  # heddle itself is built by meson
    Peer("heddle", "heddle", None, None, None),
    Peer("go", "Go", "golang-go", "savina/go", lambda output: ["go", "build", "-buildvcs=false", "-o", output, "."]),
    Peer("erlang", "Erlang", "erlang-base", "savina/erlang", lambda output: ["erlc", "-o", os.path.dirname(output), "savina.erl"]),
]
PROGRAMS = {  # and what heddle's time shall be at most, as a part of the better of Go's and Erlang's
    "ping_pong": None, "counting": None, "fork_join_throughput": None, "fork_join_create": None, "thread_ring": None,
    "chameneos": 0.3, "big": 0.3, "dictionary": None, "sorted_list": None, "bounded_buffer": None, "philosophers": None,
    "barber": None, "smokers": None, "logistic_map": None, "bank": None,
}
WORKERS = (1, 2)
SLOWER = 1.05  # two workers are slower than one: chance is 5 %


class Savina:
    def __init__(self, options):
        self.options = options
        self.names = options.savina or list(PROGRAMS)
        self.values = collections.defaultdict(list)  # (program, workers, peer): per round a value, and the CPUs that others used
        self.programs, self.reasons = {}, {}

    def build(self):
        directory = os.path.join(ROOT, self.options.build)
        progress = Progress(len(PEERS))
        for peer in PEERS:
            progress.step(f"building {peer.title}")
            try:
                output = os.path.join(directory, "savina", peer.key)
                if peer.command is None:
                    build_heddle(directory)
                    output = os.path.join(directory, "bench", "heddle-savina")
                else:
                    os.makedirs(os.path.dirname(output), exist_ok=True)
                    build_peer(peer, output)
                self.programs[peer.key] = output
            except (Failed, OSError) as failure:
                self.reasons[peer.title] = str(failure)
        progress.clear()

    def command(self, peer, name, workers):
        program = self.programs[peer.key]
        if peer.key != "erlang":
            return [program, name]
        return ["erl", "-noshell", "-noinput", "+S", f"{workers}:{workers}", "-pa", os.path.dirname(program), "-s", "savina", "main",
                "-extra", name]

    def measure_program(self, name, workers, peer):
        if peer.title in self.reasons or (peer.title, name, workers) in self.reasons:
            return
        environment = dict(os.environ, BENCH_QUICK="1" if self.options.quick else "0", BENCH_WORKERS=str(workers))
        machine = Machine()
        try:
            values, _ = run_program(self.command(peer, name, workers), environment)
            self.values[name, workers, peer.key].append((values[name], machine.used_by_others()))
        except Failed as failure:
            self.reasons[peer.title, name, workers] = str(failure)

    def measure(self):
        rounds = self.options.rounds
        runs = [(name, workers, peer) for name in self.names for workers in WORKERS for peer in PEERS]
        progress = Progress(rounds * len(runs))
        try:
            for r in range(1, rounds + 1):
                for name, workers, peer in runs:
                    progress.step(f"round {r} of {rounds}: {name}/{workers}, {peer.title}")
                    self.measure_program(name, workers, peer)
        finally:
            progress.clear()

    def value(self, name, workers, peer):
        return median_of_quiet(self.values.get((name, workers, peer), []))

    def best(self, name, workers):
        """The better of the others."""
        values = [self.value(name, workers, p.key) for p in PEERS if p.key != "heddle"]
        return min((v for v in values if v), default=None)

    def verdict(self, name):
        """The goals of a program as text, and "met", or those that are missed, or "?"."""
        one, two = (self.value(name, workers, "heddle") for workers in WORKERS)
        judged = [(f"2 workers <= {SLOWER} x 1", two and one and two <= SLOWER * one)]
        if PROGRAMS[name] is not None:
            for workers in WORKERS:
                mine, best = self.value(name, workers, "heddle"), self.best(name, workers)
                judged.append((f"/{workers} <= {PROGRAMS[name]} x best", mine and best and mine <= PROGRAMS[name] * best))
        missed = [text for text, met in judged if met is False]
        if missed:
            return "MISSED " + ", ".join(missed)
        return "?" if any(met is None for _, met in judged) else "met"

    def print(self):
        if self.values:
            print("\nSavina: milliseconds with one worker and with two, heddle's time over that of the better of the others, and with two\n"
                  "workers over one.")
            header = ["program", *(f"{p.title}{'/2' if w > 1 else ''}" for w in WORKERS for p in PEERS), "/best", "/2 /best", "/2 /1",
                      "goals"]
            lines, disturbed = [], []
            for name in self.names:
                mine = [self.value(name, w, "heddle") for w in WORKERS]
                lines.append([name, *(figure(self.value(name, w, p.key)) for w in WORKERS for p in PEERS),
                              *(ratio(mine[i], self.best(name, w)) for i, w in enumerate(WORKERS)), ratio(mine[1], mine[0]),
                              self.verdict(name)])
                if min(quiet_rounds(self.values.get((name, w, p.key), [])) for w in WORKERS for p in PEERS) < min(ENOUGH, self.options.rounds):
                    disturbed.append(name)
            print_lines(header, lines, text=(0, -1))
            if disturbed:
                print(f"Other programs disturbed too many rounds of: {', '.join(disturbed)}.")
        for what, reason in self.reasons.items():
            print(f"Savina, {', '.join(map(str, what)) if isinstance(what, tuple) else what}: {reason}")

    def record(self):
        return {"programs": {f"{name}/{workers}": {p.key: {"median": self.value(name, workers, p.key),
                                                            "rounds": [v for v, _ in self.values.get((name, workers, p.key), [])]}
                                                    for p in PEERS} for name in self.names for workers in WORKERS},
                "verdicts": {name: self.verdict(name) for name in self.names},
                "remarks": [f"{what}: {reason}" for what, reason in self.reasons.items()]}
