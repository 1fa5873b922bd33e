"""The reaction section of bench/run: how late a high priority runs after its time while every CPU computes.

Every program has as many CPUs as workers, and a hog for each: also its timers, its watcher or what else it has must get a CPU from a hog.
Rounds alternate between the programs; a figure is the median over the rounds that other programs disturbed least.
"""
import collections
import os

from common import (C_FLAGS, ENOUGH, Failed, Machine, Peer, Progress, ROOT, build_heddle, build_peer, figure, median_of_quiet, print_lines,
                    quiet_rounds, ratio, run_program)

THREADS = Peer("threads", "threads", "gcc libc6-dev", "reaction", lambda output: ["gcc", *C_FLAGS, "-o", output, "threads.c", "-pthread"])
GO = Peer("go", "Go", "golang-go", "reaction/go", lambda output: ["go", "build", "-buildvcs=false", "-o", output, "."])
ERLANG = Peer("erlang", "Erlang", "erlang-base", "reaction/erlang",
              lambda output: ["erlc", "-o", os.path.dirname(output), "reaction.erl"])

Program = collections.namedtuple("Program", "key title peer arguments")
PROGRAMS = [
    Program("heddle", "heddle", None, ()),
    Program("go", "Go", GO, ()),
    Program("erlang", "Erlang", ERLANG, ()),
    Program("other", "SCHED_OTHER", THREADS, ("other",)),
    Program("fifo", "SCHED_FIFO", THREADS, ("fifo",)),
]
WORKERS = (1, 2)
HOGS = {"loop": "hogs in a loop without calls",
        "libc": "hogs inside the C library: snprintf; Go and Erlang, which do not use it, make text from numbers by their own"}
FIGURES = ["p50", "p99", "max"]
GOALS = [("p50", "go", 0.01), ("p50", "fifo", 2), ("p99", "fifo", 3)]  # heddle's figure, times that of these


class Reaction:
    def __init__(self, options):
        self.options = options
        self.values = collections.defaultdict(list)  # (hogs, workers, program, figure): per round a value, and the CPUs that others used
        self.programs, self.reasons = {}, {}
        self.cpus = [str(cpu) for cpu in sorted(os.sched_getaffinity(0))]

    def build(self):
        directory = os.path.join(ROOT, self.options.build, "reaction")
        os.makedirs(directory, exist_ok=True)
        progress = Progress(len(PROGRAMS))
        for program in PROGRAMS:
            progress.step(f"building {program.title}")
            try:
                if program.peer is None:
                    build_heddle(self.options.build)
                    output = os.path.join(ROOT, self.options.build, "bench", "heddle-reaction")
                else:
                    output = os.path.join(directory, program.peer.key)
                    if output not in self.programs.values():
                        build_peer(program.peer, output)
                self.programs[program.key] = output
            except (Failed, OSError) as failure:
                self.reasons[program.title] = str(failure)
        progress.clear()

    def command(self, program, hogs, workers):
        output = self.programs[program.key]
        alone = ["taskset", "-c", ",".join(self.cpus[:workers])]
        if program.key != "erlang":
            return [*alone, output, hogs, *program.arguments]
        return [*alone, "erl", "-noshell", "-noinput", "+S", f"{workers}:{workers}", "-pa", os.path.dirname(output), "-s", "reaction", "main",
                "-extra", hogs]

    def measure_program(self, hogs, workers, program):
        if program.title in self.reasons or (program.title, hogs, workers) in self.reasons:
            return
        if workers > len(self.cpus):
            self.reasons[program.title, hogs, workers] = f"needs {workers} CPUs"
            return
        environment = dict(os.environ, BENCH_QUICK="1" if self.options.quick else "0", BENCH_WORKERS=str(workers))
        machine = Machine()
        try:
            values, _ = run_program(self.command(program, hogs, workers), environment)
            others = machine.used_by_others()
            for name in FIGURES:
                self.values[hogs, workers, program.key, name].append((values[name], others))
        except Failed as failure:
            self.reasons[program.title, hogs, workers] = str(failure)

    def measure(self):
        rounds = self.options.rounds
        runs = [(hogs, workers, program) for hogs in HOGS for workers in WORKERS for program in PROGRAMS]
        progress = Progress(rounds * len(runs))
        try:
            for r in range(1, rounds + 1):
                for hogs, workers, program in runs:
                    progress.step(f"round {r} of {rounds}: reaction, {hogs}, {workers} worker{'s' if workers > 1 else ''}, {program.title}")
                    self.measure_program(hogs, workers, program)
        finally:
            progress.clear()

    def value(self, hogs, workers, program, name):
        return median_of_quiet(self.values.get((hogs, workers, program, name), []))

    def verdict(self, hogs, workers):
        """heddle's goals that are missed, or "met", or "?" where nothing can be compared."""
        judged = []
        for name, key, limit in GOALS:
            mine, other = (self.value(hogs, workers, k, name) for k in ("heddle", key))
            judged.append((f"{name} <= {limit} x {key}", mine is not None and other is not None and mine <= limit * other))
            if mine is None or other is None:
                judged[-1] = (judged[-1][0], None)
        missed = [text for text, met in judged if met is False]
        if missed:
            return "MISSED " + ", ".join(missed)
        return "?" if any(met is None for _, met in judged) else "met"

    def print(self):
        for hogs, title in HOGS.items():
            if any(key[0] == hogs for key in self.values):
                self.print_hogs(hogs, title)
        for what, reason in self.reasons.items():
            print(f"Reaction, {', '.join(map(str, what)) if isinstance(what, tuple) else what}: {reason}")

    def print_hogs(self, hogs, title):
        print(f"\nReaction, {title}:\nhow late, in us, a high priority runs after its time, with a hog on every CPU, and as many CPUs as workers; and heddle's\n"
              "figure over each.")
        lines, disturbed = [], []
        for workers in WORKERS:
            for program in PROGRAMS:
                p50, p99, most = (self.value(hogs, workers, program.key, name) for name in FIGURES)
                mine = {name: self.value(hogs, workers, "heddle", name) for name in FIGURES}
                own = program.key == "heddle"
                lines.append([str(workers), program.title, figure(p50), figure(p99), figure(most),
                              *(("", "") if own else (over(mine["p50"], p50), over(mine["p99"], p99))),
                              self.verdict(hogs, workers) if own else ""])
                rounds = self.values.get((hogs, workers, program.key, "p50"), [])
                if rounds and quiet_rounds(rounds) < min(ENOUGH, self.options.rounds):
                    disturbed.append(f"{program.title}/{workers}")
        print_lines(["workers", "program", "p50", "p99", "max", "/p50", "/p99", "goals"], lines, (1, -1))
        if disturbed:
            print(f"Other programs disturbed too many rounds of: {', '.join(disturbed)}.")

    def record(self):
        """Every figure, for a JSON file."""
        return {"late": {f"{hogs}/{workers}": {p.key: {name: {"median": self.value(hogs, workers, p.key, name),
                                                              "rounds": [v for v, _ in self.values.get((hogs, workers, p.key, name), [])]}
                                                       for name in FIGURES} for p in PROGRAMS} for hogs in HOGS for workers in WORKERS},
                "verdicts": {f"{hogs}/{workers}": self.verdict(hogs, workers) for hogs in HOGS for workers in WORKERS},
                "remarks": [f"{what}: {reason}" for what, reason in self.reasons.items()]}


def over(mine, other):
    """heddle's figure over another's: below 0.1, with three decimals."""
    if mine is None or not other:
        return "-"
    return ratio(mine, other) if mine / other >= 0.1 else f"{mine / other:.3f}"
