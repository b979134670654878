"""Tables, and what they have to show."""
import figures
import machine

LEVELS = (1, 2, 8, 32)
NETWORK = (("connect_ms", "connect, ms"), ("echo_ms", "one byte there and back, ms"),
           ("down_mb_s", "down, MB/s"), ("up_mb_s", "up, MB/s"))
PHASES = (("queue", "queue_us"), ("dispatch", "setup_us"), ("run", "run_us"), ("teardown", "teardown_us"))


class Cell:
    """All that one peer did with one program."""

    def __init__(self, program, peer):
        self.program, self.peer = program, peer
        self.paced = []           # a list of samples for each round
        self.saturated = {}       # level: [(runs, elapsed_ns)]
        self.why = ""             # of the first wrong answer

    def add(self, measured, level=None):
        if measured.wrong or not measured.samples:
            self.why = self.why or measured.why or "nothing was measured"
        elif level is None:
            self.paced.append(measured.samples)
        else:
            self.saturated.setdefault(level, []).append((len(measured.samples), measured.elapsed_ns))

    def latencies(self):
        return [s["latency_ns"] for samples in self.paced for s in samples]

    def rounds(self):
        return [[s["latency_ns"] for s in samples] for samples in self.paced]

    def p50_of(self, column):
        return figures.percentile([s[column] for samples in self.paced for s in samples], 50)

    def rest_us(self):
        """What no phase of the reply accounts for: HTTP, the wire, this client."""
        left = [s["latency_ns"] / 1000 - sum(s[c] for _, c in PHASES)
                for samples in self.paced for s in samples]
        return figures.percentile(left, 50)

    def rates(self):
        return {level: figures.rate(rounds) for level, rounds in self.saturated.items()}

    def summary(self, base):
        ms = [v / 1e6 for v in self.latencies()]
        out = {"program": self.program.name, "peer": self.peer.name, "void": self.why or None, "n": len(ms)}
        if self.why or not ms:
            return out
        out |= {f"p{p}_ms": figures.percentile(ms, p) for p in (50, 95, 99)}
        out |= {"p99_over_p50": figures.usual_spread(ms), "runs_per_second": self.rates()}
        if getattr(self.peer, "tells_usage", True):
            out |= {"faults": self.p50_of("faults"), "cpu_ms": self.p50_of("cpu_us") / 1000,
                    "memory_bytes": self.p50_of("memory_bytes")}
        if base and not base.why:
            out["times_bare"] = figures.ratio(self.rounds(), base.rounds())
            bare = base.rates()
            out["rate_times_bare"] = {k: v / bare[k] for k, v in self.rates().items() if bare.get(k)}
        if self.p50_of("run_us"):
            out["phases_ms"] = {name: self.p50_of(c) / 1000 for name, c in PHASES} | {"rest": self.rest_us() / 1000}
        return out


def number(value, digits=2):
    return "-" if value is None else f"{value:.{digits}f}"


def table(head, rows):
    """Markdown, aligned: the first column to the left, the others to the right."""
    widths = [max(len(str(r[i])) for r in [head, *rows]) for i in range(len(head))]

    def line(cells):
        padded = [str(c).ljust(w) if i == 0 else str(c).rjust(w) for i, (c, w) in enumerate(zip(cells, widths))]
        return "| " + " | ".join(padded) + " |"

    rule = "|" + "|".join("-" * (w + 2) if i == 0 else "-" * (w + 1) + ":" for i, w in enumerate(widths)) + "|"
    return "\n".join([line(head), rule, *map(line, rows)])


def main_table(rows):
    head = ["program: peer", "p50 ms", "p95", "p99", "x bare", "n", *[f"{n}/s" for n in LEVELS], "faults", "CPU ms"]
    lines = []
    for r in rows:
        name = f"{r['program']}: {r['peer']}"
        if r["void"]:
            lines.append([f"{name}", "VOID"] + [""] * (len(head) - 2))
            continue
        lines.append([name, *[number(r.get(f"p{p}_ms")) for p in (50, 95, 99)], number(r.get("times_bare"), 3),
                      r["n"], *[number(r["runs_per_second"].get(n), 1) for n in LEVELS], r.get("faults", "-"),
                      number(r.get("cpu_ms"))])
    return table(head, lines)


def phase_table(rows):
    head = ["phases, p50 ms", *[name for name, _ in PHASES], "rest"]
    return table(head, [[f"{r['program']}: {r['peer']}", *[number(v, 3) for v in r["phases_ms"].values()]]
                        for r in rows if r.get("phases_ms")])


def floor_lines(result):
    idle = result["idle"]
    yield (f"idle: {idle['cells']} ready cells, {idle['pss_kb'] / 1024:.2f} MB PSS each, "
           f"{idle['private_kb'] / 1024:.2f} MB of it private")
    yield (f"floors: this client {number(result['floors']['client_ms'], 3)} ms, "
           f"after the pauses of paced runs {number(result['floors']['paced_client_ms'], 3)} ms, "
           f"GET /limits {number(result['floors']['http_ms'], 3)} ms (p50)")
    for r in result["rows"]:
        if r["void"]:
            yield f"VOID: {r['program']}: {r['peer']}: {r['void']}"
    for name, why in result["absent"].items():
        yield f"not measured: {name}: {why}"
    for text in result["warnings"]:
        yield f"warning: {text}"


def page(result):
    """All of it, as docs/performance.md has it."""
    lines = list(floor_lines(result))
    return "\n\n".join([machine.sentence(result["machine"]), main_table(result["rows"]), phase_table(result["rows"]),
                        network_table(result["network"]), "\n".join(f"- {line}" for line in lines), target_table(result["targets"])])


def network_table(carried):
    head = ["network, median", *[name for _, name in NETWORK]]
    return table(head, [[peer, *[number(row[column], 3 if column.endswith("_ms") else 0) for column, _ in NETWORK]]
                        for peer, row in carried["rows"].items()])


def network_targets(carried):
    """As targets(): level with slirp4netns at least."""
    return [target(f"network: {what.split(',', maxsplit=1)[0]}, over slirp4netns's", carried["over_slirp"].get(column), 1,
                   least=column.endswith("mb_s")) for column, what in NETWORK]


def summary_table(result):
    """What the first page of the documents shows: print('hello'), by everybody."""
    head = ["`print('hello')`", "p50 ms", "p99 ms", "of bare `python3`", "runs/s, 1 client", "8 clients", "32 clients"]
    lines = []
    for r in result["rows"]:
        if r["program"] == "hello" and not r["void"] and r["n"]:
            lines.append([r["peer"], number(r["p50_ms"]), number(r["p99_ms"]), number(r.get("times_bare")),
                          *[number(r["runs_per_second"].get(n), 0) for n in (1, 8, 32)]])
    return f"{table(head, lines)}\n\n{machine.sentence(result['machine'])}"


BEGIN, END = "<!-- bench: begin -->", "<!-- bench: end -->"


def between_markers(document, text):
    """`document` with `text` in the place of what stands between its markers."""
    if document.count(BEGIN) != 1 or document.count(END) != 1 or document.index(END) < document.index(BEGIN):
        raise ValueError(f"not one {BEGIN} followed by one {END}")
    return document[:document.index(BEGIN) + len(BEGIN)] + f"\n{text}\n" + document[document.index(END):]


def added_ms(ours, floors):
    """What HTTP, queue and wire add to a run. A paced run finds the processor asleep: what the same client waits after
    the same pause for a server that answers at once is the machine's and the client's, not ours."""
    floor = floors.get("paced_client_ms")
    return None if floor is None else ours["phases_ms"]["rest"] + ours["phases_ms"]["queue"] - floor


def target(what, value, bound, least=False):
    return what, value, bound, None if value is None else value >= bound if least else value <= bound, least


def targets(rows, idle, floors, glovebox):
    """(what, the value, the bound, reached, whether the bound is the least) for what one run can tell."""
    by = {(r["program"], r["peer"]): r for r in rows if not r["void"]}
    ours, bare = by.get(("hello", glovebox)), by.get(("hello", "python3 -c"))
    forked, bwrap = by.get(("hello", "os.fork, warm")), by.get(("hello", "bubblewrap"))
    numpy = by.get(("numpy", f"{glovebox}, numpy preloaded"))
    plot = by.get(("plot", f"{glovebox}, image python-data"), {})
    found = []

    def add(what, value, bound, least=False):
        found.append(target(what, value, bound, least))

    def over(column, other):
        return ours[column] / other[column] if ours[column] and other[column] else None

    if ours and bare:
        add("hello: p50 over bare python3's", ours["times_bare"], 0.10)
        add("hello: p99/p50 over bare python3's, median of five parts", over("p99_over_p50", bare), 1.5)
        add("hello: rest (HTTP, wire) + queue - client, p50 ms", added_ms(ours, floors), 0.3)
    if ours and forked:
        add("hello: p50 over a warm os.fork()'s", ours["p50_ms"] / forked["p50_ms"], 0.5)
    for other, name, bound in ((bare, "bare python3's", 4), (bwrap, "bubblewrap's", 5)):
        for level in LEVELS if ours else ():
            rate, base = (r["runs_per_second"].get(level) if r else None for r in (ours, other))
            add(f"hello: runs/s over {name}, {level} client{'s' * (level > 1)}",
                rate / base if rate and base else None, bound, least=True)
    if numpy and "times_bare" in numpy:
        add("numpy, preloaded: p50 over bare python3's", numpy["times_bare"], 1 / 25)
    add("plot, image python-data: p50 over bare python3's", plot.get("times_bare"), 0.2)
    if idle and idle["cells"]:
        add("idle: PSS of a ready cell, MB", idle["pss_kb"] / 1024, 3)
    return found


def target_table(found):
    outcomes = {True: "reached", False: "missed", None: "not measured"}
    return table(["target", "measured", "wanted", "outcome"],
                 [[t["what"], number(t["measured"], 3), f"{'>=' if t['least'] else '<='} {t['wanted']:g}", outcomes[t["reached"]]]
                  for t in found])
