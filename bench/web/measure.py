"""The HTTP section of bench/run: requests for one page over connections that stay open, heddle beside Go's net/http.

Measured as the echo servers are (echo/measure.py), with the same client, which then sends requests.
"""
from common import ENOUGH, Peer, figure, print_lines, quiet_rounds, ratio
from echo.measure import Echo, Load, Server

GO = Peer("go", "Go", "golang-go", "web/go", lambda output: ["go", "build", "-buildvcs=false", "-o", output, "."])
RATE_GOAL = 1.3  # heddle's requests per second on one CPU, at least so many times Go's; and no worse a 99th percentile


class Http(Echo):
    name, command, idle_too = "http", "http", False
    servers = [Server("heddle", "heddle", None), Server("go", "Go, net/http", GO)]
    all_loads = [Load(1000, 1000), Load(1000, 50)]

    def verdict(self, load):
        (rate, go_rate), (p99, go_p99) = ([self.value(load, key, name) for key in ("heddle", "go")] for name in ("rate", "p99"))
        if None in (rate, go_rate, p99, go_p99):
            return ("", "")
        missed = [text for text, met in ((f"{RATE_GOAL} x Go's rate", rate >= RATE_GOAL * go_rate), ("Go's p99", p99 <= go_p99)) if not met]
        return f">= {RATE_GOAL} x Go's rate, p99 no worse", f"MISSED {', '.join(missed)}" if missed else "met"

    def print_loads(self):
        print("\nHTTP: a page of 33 bytes, over connections that stay open; server on one CPU, client on another. So many connections, so many\n"
              "requests under way at once. 'busy' is how much of its CPU the server used: where it is below 1, the client or another program\n"
              "was the limit, and the server's CPU time per request says more than its rate.")
        header = ["connections", "under way", "server", "requests/s", "/Go", "CPU us", "/Go", "busy", "p50 us", "p99 us", "goal", ""]
        lines, disturbed = [], set()
        for load in self.loads:
            for server in self.servers:
                rounds = self.values.get((load, server.key, "cpu"))
                if not rounds:
                    continue
                rate, cpu, busy, *times = (self.value(load, server.key, name) for name in ("rate", "cpu", "busy", "p50", "p99"))
                lines.append([str(load.connections), str(load.outstanding), server.title, f"{rate:.0f}",
                              ratio(rate, self.value(load, "go", "rate")), f"{cpu:.2f}", ratio(cpu, self.value(load, "go", "cpu")), f"{busy:.2f}",
                              *map(figure, times), *(self.verdict(load) if server.key == "heddle" else ("", ""))])
                if quiet_rounds(rounds) < min(ENOUGH, self.rounds):
                    disturbed.add(server.title)
        print_lines(header, lines, (2, -2, -1))
        if disturbed:
            print(f"Other programs disturbed too many rounds of: {', '.join(sorted(disturbed))}.")

    def print_pair(self):
        pass
