"""What must hold after every attack, whatever it was: checked here and nowhere else.

  1  one well-formed answer a request, whose fields agree with each other
  2  in time: the run's own limit and a grace
  3  nothing left on the host: processes, groups, mounts, descriptors, namespaces, IPC objects
  4  memory, tasks and output never over their limits, by the answer and by the kernel's files
  5  the supervisor and the front hold no more than before; /health answers all the while
  6  a file of the host, the service's environment and the requests before appear in no answer
  7  a trivial program afterwards gives what it gave before
  8  a well-behaved program beside it gives its usual result
  9  nothing that a program controls is in the log as it wrote it

An Arena is one server that stands through many attacks: what leaks a little each time shows too.
`tests/escape/test_invariants.py` breaks each of these on purpose."""
import collections
import contextlib
import itertools
import json
import os
import re
import stat
import time

from harness import census
from harness.background import Background
from harness.life import finish
from harness.poll import DEADLINE_S, PATIENCE
from harness.rawhttp import Wire
from harness.reply import Reply
from harness.server import CANARY, Server

# Layers that the servers of this session are allowed to do without (tests/torture).
ALLOWED_TO_MISS = set(re.findall(r"--allow-degraded[ =](\S+)", os.environ.get("GLOVEBOX_TEST_FLAGS", "")))

SECRET = "canary-90ab-of-a-host-file"
# Tearing down a cell that filled its memory with page tables takes 0.8 s on a loaded two-core
# machine. The rest is for tests that share it: what is meant to be caught takes a minute.
GRACE_S = 8.0 * PATIENCE
# Of an idle host; half of the answers must keep to it also on a busy one.
HEALTH_S = 0.1 * PATIENCE
HEALTH_WORST_S = 5.0 * PATIENCE
# Memory of a forked interpreter, on top of memory_limit_mb (docs/cases.md), and what the kernel
# charges in lots.
ON_TOP_BYTES = 12 << 20
# Bytes of an answer for one of output at most: \\u0000, and four thirds where base64 is beside it.
ENCODED = 6 + 4 / 3
# Private memory that may be more than after the first runs. The supervisor's does not move at all: a hundred
# attacks that leaked a page each would show. The front holds streams and answers of all that runs, and keeps
# (as glibc does) a part of it.
GROWS_KB = {"supervisor": 256, "front": 16 << 10}
GROWS_BESIDE_KB = {"supervisor": 256, "front": 64 << 10}

_numbers = itertools.count(1)

# Tells everything that could be another after an attack. Its secret must never be seen again.
PROBE = """\
import os, resource, signal, sys, threading
secret = {secret!r}
fds = []
for fd in range(256):
    try: os.fstat(fd); fds.append(fd)
    except OSError: pass
print("fine", os.getcwd(), sys.argv, sorted(os.environ.items()), os.getpid(), os.getppid(), os.getsid(0),
      os.getresuid(), os.getresgid(), oct(os.umask(0)), fds, threading.active_count(), os.uname().nodename,
      signal.pthread_sigmask(0, []), signal.getitimer(0), os.nice(0), os.sched_getaffinity(0),
      [resource.getrlimit(i) for i in range(16)],
      [(d, sorted(os.listdir(d))) for d in ("/", "/workspace", "/tmp", "/dev/shm", "/dev", "/etc")],
      sorted(p for p in os.listdir("/proc") if p.isdigit()), os.path.exists("/proc/self/root/root"))
for d in ("/workspace", "/tmp", "/dev/shm"):
    with open(d + "/left", "w") as f: f.write(secret)
os.environ["LEFT"] = secret
"""

# A well-behaved program, and what it says.
NEIGHBOUR = ("print('next door', sum(i * i for i in range(20_000)))", "next door 2666466670000\n")
NEIGHBOUR_LIMITS = {"timeout_seconds": 20 * PATIENCE, "memory_limit_mb": 64, "cpu_limit": 0.5}

LOG_LINE = re.compile(r'(relay=\w+ )?t=[0-9TZ:.-]+ lvl=\w+ proc=\w+ ev=\w+( \w+=([!#-~]+|"([ !#-\[\]-~]|\\.)*"))*')


def strict_json(body):
    """One JSON document in UTF-8, without what only some parsers take."""
    def once(pairs):
        assert len(dict(pairs)) == len(pairs), f"a key comes twice: {[k for k, _ in pairs]}"
        return dict(pairs)

    def never(word):
        raise AssertionError(f"{word} is no JSON")

    return json.loads(body.decode("utf-8"), object_pairs_hook=once, parse_constant=never)


# ---- 1, 2, 4: the answer ----


def agree(reply):
    """What the fields of a reply say of each other, beyond what Reply.check() knows."""
    limits, usage, cause = reply["limits"], reply["usage"], reply.cause
    ran_ms, limit_ms = reply.execution_time_ms, limits["timeout_seconds"] * 1000
    assert reply["queue_ms"] + ran_ms <= reply.wall_s * 1000 + 20, f"longer than it took: {reply}"
    assert (cause != "wall_timeout") or ran_ms >= 0.95 * limit_ms, f"a timeout before its time: {reply}"
    assert ran_ms <= limit_ms + GRACE_S * 1000, f"ended too late: {reply}"
    if cause == "cpu_timeout":
        assert usage["cpu_ms"] >= 0.9 * limits["cpu_time_seconds"] * 1000, reply
    if cause in ("wall_timeout", "cpu_timeout", "oom_kill"):
        assert reply["signal"] is None, f"our own signal is told as the program's: {reply}"
    # A period of the quota more, and what the kernel lets pass.
    assert usage["cpu_ms"] <= limits["cpu_limit"] * reply.wall_s * 1000 + 400, f"over its share: {reply}"
    assert usage["pids_peak"] is None or usage["pids_peak"] <= limits["pids_limit"], reply
    assert usage["memory_peak_bytes"] <= limits["memory_limit_mb"] * (1 << 20) * reply.memory_most, reply
    assert abs(usage["memory_peak_bytes"] / (1 << 20) - reply.memory_used_mb) < 0.1, reply
    # Read one after the other, and the kernel may still be taking the process down.
    assert usage["user_ms"] + usage["system_ms"] <= usage["cpu_ms"] + 20, reply
    assert set(reply["isolation"]["degraded"]) <= ALLOWED_TO_MISS and reply["isolation"]["layers"], reply["isolation"]


def bounded(reply, output_bytes):
    """What was kept of both streams."""
    for stream in ("stdout", "stderr"):
        out, kept = reply["output"][stream], len(reply.raw(stream))
        assert out["kept"] == kept <= output_bytes, (stream, out)
        assert out["bytes"] == out["kept"] + out["dropped"], (stream, out)
        assert (out["encoding"] == "utf-8") == ("base64" not in out), (stream, out)
        assert (out["dropped"] > 0) == any(w.startswith(stream) for w in reply["warnings"]), reply["warnings"]


class Arena:
    """A server, and what is known of it from before the attacks."""

    def __init__(self, canary, *flags):
        self.canary = canary
        self.server = Server(*flags).start()
        try:
            self._learn()
        except BaseException:
            self.server.stop()
            raise

    def _learn(self):
        self.is_broken = False
        self.settle_s = DEADLINE_S  # what the server has for coming to rest
        self._secrets = []   # of the probes so far
        self._log_seen = 0
        self._health_s = []  # what /health took during the attack that goes on
        limits = self.server.request("GET", "/limits").json()
        self.output_bytes = limits["fixed"]["output_bytes"]
        self._mark = self._canary_mark()
        # Where the server keeps something for good, the first runs make it.
        for _ in range(8):
            self._usual = self.probe()
        self.server.rest()
        self.idle = self.server.rest()
        self._front = self.server.front
        self.private_kb = self._private()
        self._log_seen = self.server.log().rfind("\n") + 1

    def close(self):
        # finish() holds every exchange against the documents: of the same question ten are enough.
        asked, kept = collections.Counter(), []
        for exchange in self.server.exchanges:
            question = exchange[1], re.sub(rb"secret-\w+-of-request-\d+", b"", exchange[2] or b"")
            asked[question] += 1
            if asked[question] <= 10:
                kept.append(exchange)
        self.server.exchanges = kept
        finish(self.server)

    # ---- Talk ----

    def ask(self, request):
        """POST it on a connection of its own; the reply, judged by 1, 2, 4 and 6."""
        body = json.dumps(request, ensure_ascii=False).encode("utf-8")
        before = tuple(self._secrets)
        began = time.monotonic()
        with Wire(self.server, timeout=request.get("timeout_seconds", 3) + 60 * PATIENCE) as w:
            w.send(w.head(Content_Length=len(body), Connection="close") + body)
            answer = w.answer()
            assert answer is not None, "no answer"
            answer.wall_s = time.monotonic() - began
            assert w.is_closed(), "more than one answer"
        self.server.exchanges.append(("POST", "/execute", body, answer))
        assert answer.status == 200, answer
        assert answer.headers["Content-Type"].startswith("application/json"), answer
        assert len(answer.body) <= 2 * ENCODED * self.output_bytes + (64 << 10), len(answer.body)
        self._tells_no_secret(answer.body, before)
        reply = Reply(strict_json(answer.body), answer.wall_s).check()
        bound = reply["limits"]["timeout_seconds"] + reply["queue_ms"] / 1000 + GRACE_S
        assert answer.wall_s <= bound, f"answered after {answer.wall_s:.1f} s, bound {bound:.1f} s"
        agree(reply)
        bounded(reply, self.output_bytes)
        return reply

    def probe(self):
        """What the trivial program gives, on the slot of the attack if its cage was kept."""
        secret = f"secret-{os.urandom(6).hex()}-of-request-{next(_numbers)}"
        r = self.ask({"code": PROBE.format(secret=secret), **NEIGHBOUR_LIMITS, "cpu_limit": 1})
        self._secrets.append(secret)
        return r.status, r.exit_code, r.stdout, r.stderr

    def run(self, code, **limits):
        """A program that is not the attack itself."""
        return self.ask({"code": code, "timeout_seconds": 30 * PATIENCE, "memory_limit_mb": 128,
                         "cpu_limit": 1, **limits})

    @property
    def last_secret(self):
        """Of the last probe: in no answer from then on."""
        return self._secrets[-1]

    # ---- Attack ----

    def withstand(self, attack, neighbour=None):
        """Run it as often as it says, with a neighbour beside it; the last reply."""
        reply = None
        for _ in range(attack.times):
            jobs = [Background(self.ask, attack.request) for _ in range(attack.at_once)]
            for reply in self.beside(*jobs, neighbour=neighbour):
                attack.judge(reply)
                self._stays_out_of_the_log(reply)
        return reply

    def beside(self, *jobs, neighbour=None):
        """While these go on: /health, a neighbour, and the kernel's own counters. Their results."""
        self._health_s = []
        while True:
            self._is_healthy()
            self._within_the_kernels_limits()
            self.holds_no_more(GROWS_BESIDE_KB)
            self._neighbour_is_fine(*(neighbour or NEIGHBOUR))
            alive = [job for job in jobs if job.is_alive()]
            if not alive:
                break
            alive[0].join(0.05)
        took = sorted(self._health_s)
        assert len(took) < 5 or took[len(took) // 2] < HEALTH_S, f"/health took {took}"
        return [job.result() for job in jobs]

    def _is_healthy(self):
        a = self.server.health()
        assert a.status == 200, a
        assert a.wall_s < HEALTH_WORST_S, f"/health took {a.wall_s:.1f} s during the attack"
        self._health_s.append(a.wall_s)

    def _neighbour_is_fine(self, code, says):
        r = self.ask({"code": code, **NEIGHBOUR_LIMITS})
        assert (r.status, r.stdout, r.stderr) == ("success", says, ""), f"the neighbour: {r}"

    def _within_the_kernels_limits(self):
        """By the files of every leaf: a counter over its limit, or a limit that is none."""
        for leaf in census.leaves(self.server.groups):
            for counter, limit, slack in census.LEAF_LIMITS:
                most, now = census.number(leaf, limit), census.number(leaf, counter)
                # A leaf is used again, with other limits: then these two are of two runs.
                if None not in (now, most) and most == census.number(leaf, limit):
                    assert now <= most + slack, f"{leaf}: {counter} {now} > {most}"

    # ---- 3, 5, 6, 7, 9: afterwards ----

    @contextlib.contextmanager
    def unharmed(self):
        """Around an attack: everything is as it was. After a failure the arena is broken: what
        is left of one attack must not be blamed on the next."""
        try:
            yield self
            self.must_be_unharmed()
        except BaseException:
            self.is_broken = True
            raise

    def must_be_unharmed(self):
        self.nobody_died()
        self.nothing_is_left()
        self.probe_is_as_usual()
        self.holds_no_more(GROWS_KB)
        self.canary_is_unchanged()
        self.log_is_clean()

    def nobody_died(self):
        self.server.must_live()
        assert self.server.front == self._front, f"the front was started again:\n{self.server.log()[-2000:]}"

    def nothing_is_left(self):
        self.server.settles_to(self.idle, self.settle_s)

    def probe_is_as_usual(self):
        now = self.probe()
        if PATIENCE > 1:
            # In an emulated machine a zygote's child can come too late. The main that was started in its
            # place has the number after it (priv/launch/cell.c); its cage is not used again.
            status, code, out, err = now
            now = status, code, out.replace("] 3 0 3 (", "] 2 0 2 ("), err
        assert now == self._usual, f"the next program sees\n{now}\ninstead of\n{self._usual}"

    def holds_no_more(self, grows_kb):
        """Memory of the supervisor and the front. Their descriptors are in the census."""
        for name, now in self._private().items():
            before = self.private_kb[name]
            assert now <= before + grows_kb[name], f"the {name} has {now} kB, before {before} kB"

    def _private(self):
        return {"supervisor": census.private_kb(self.server.pid), "front": census.private_kb(self._front)}

    def _canary_mark(self):
        now = os.stat(self.canary)
        return (self.canary.read_text(), now.st_mtime_ns, now.st_ino, stat.S_IMODE(now.st_mode), now.st_nlink,
                sorted(os.listdir(self.canary.parent)))

    def canary_is_unchanged(self):
        assert self._canary_mark() == self._mark, f"the host's file was touched: {self._canary_mark()}"

    def _tells_no_secret(self, body, before):
        for secret in (SECRET, CANARY, *before):
            assert secret.encode() not in body, f"an answer has {secret}: {body[:2000]!r}"

    def log_is_clean(self):
        """Every new line is one of ours, and of printable ASCII."""
        log = self.server.log()
        log = log[:log.rfind("\n") + 1]  # what is being written is looked at the next time
        fresh, self._log_seen = log[self._log_seen:], len(log)
        for line in fresh.splitlines():
            assert LOG_LINE.fullmatch(line), f"a line of the log: {line!r}"
        for secret in (SECRET, CANARY, *self._secrets[-8:]):
            assert secret not in fresh, "a secret is in the log"

    def _stays_out_of_the_log(self, reply):
        log = self.server.log()[self._log_seen:]
        for text in (reply.stdout, reply.stderr):
            for line in text[:400].splitlines():
                assert len(line) < 12 or line not in log, f"output is in the log: {line!r}"


class Arenas:
    """The arena of a test session: made when it is first needed, and anew after a failure."""

    def __init__(self, canary):
        self._canary, self._arena = canary, None

    def ready(self):
        if self._arena and self._arena.is_broken:
            self._arena.server.stop()
            self._arena = None
        if not self._arena:
            self._arena = Arena(self._canary)
        return self._arena

    def close(self):
        if self._arena:
            try:
                if not self._arena.is_broken:
                    self._arena.close()
            finally:
                self._arena.server.stop()
