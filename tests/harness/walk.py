"""Walks through the kernel calls of one role: call number 0, 1, 2… fails (tests/lib/flaky_page.h), each while a
request is under way, which gets its answer: right, or with the step that failed. The next one works, and in
the end nothing is left. And what is asked for meanwhile, which can be right in one way only."""
import re
import time
from contextlib import contextmanager

from harness.flaky import Kernel
from harness.poll import PATIENCE, wait_for
from harness.rawhttp import Wire

# One cell at a time, so that it is known whose call it is.
NEW_CAGES = ["--cold=false", "--pool-size", "1", "--cage-runs", "1", "--max-builds", "1"]
USED_CAGES = ["--cold=false", "--pool-size", "1", "--max-builds", "1"]
COLD = ["--cold", "--pool-size", "0", "--max-builds", "1"]
COLD_POOL = ["--cold", "--pool-size", "1", "--cage-runs", "1", "--max-builds", "1"]

# After these the supervisor would be somebody or somewhere else: it aborts, and the whole server ends
# (docs/zones/kernel.md). That is tested apart.
POINTS_OF_NO_RETURN = ["setns", "setresuid", "prctl"]
# A step, or an operation with its object: never a bare errno.
SAYS_WHERE = re.compile(r"the code did not run: (cell \d+: )?[\w /.'()-]{4,}: .+")


@contextmanager
def a_server(*flags, spare=(), only=False):
    """On a kernel of its own; at the end it must leave nothing."""
    kernel = Kernel()
    kernel.spare(*spare, only=only)
    s = kernel.server("--log-level", "debug", *flags)
    try:
        s.start()
        s.run("print(1)")
        yield kernel, s
        kernel.heal()
        assert s.stop() == 0, s.log()[-2000:]
        s.must_leave_nothing()
    finally:
        kernel.heal()
        s.stop()
        kernel.folder.cleanup()


# ---- What is asked for: programs that print a mark ----

def text(mark):
    return {"code": f"print({mark!r})"}


def files(mark):
    """Files in, files out, and the value of the last expression."""
    return {"code": "import os\nmark = open('in/mark.txt').read()\nos.mkdir('out')\n"
                    "open('out/mark.txt', 'w').write(mark)\nprint(mark)\nmark",
            "files": [{"path": "in/mark.txt", "content": mark, "mode": "666"}], "return_last": True,
            "artifacts": "inline"}


def bash(mark):
    return {"language": "bash", "code": f"mkdir out; echo -n {mark} >out/mark.txt; echo {mark}",
            "artifacts": "inline"}


def compiled(mark):
    return {"language": "c", "code": f'#include <stdio.h>\nint main(void)\n{{\n\tputs("{mark}");\n}}\n'}


def in_image(mark):
    """Of the store that the server is started with, and which has a busybox of that name."""
    return {"image": "busybox", "code": f"echo {mark}"}


def networked(mark):
    """A network, of which the program uses what its gate denies."""
    return {"allow_network": True, "code": "import socket\ntry:\n    socket.create_connection(('10.255.255.1', 80), 1)\n"
                                           f"except OSError:\n    print({mark!r})\n"}


def must_be_right(reply, body, mark, whole):
    """A program that has run is told of as what it was. What could not be had beside that is said to be
    missing, and with `whole` there is nothing of that kind."""
    said = reply["warnings"] + reply["skipped"]
    assert not (whole and said), reply
    assert (reply["status"], reply["cause"], reply["exit_code"]) == ("success", "exit", 0), reply
    assert (reply["stdout"], reply["stderr"], reply["error"]) == (f"{mark}\n", "", None), reply
    if body.get("language") == "c":
        assert (reply["compile"]["status"], reply["compile"]["stderr"]) == ("success", ""), reply
    if body.get("return_last"):
        assert reply["result"]["repr"] == repr(mark) if reply["result"] else said, reply
    if body.get("allow_network"):
        denied = reply["network"]["denied"] if reply["network"] else 0
        assert denied > 0 or said, reply
    if body.get("artifacts"):
        found = {f["path"]: f["content"] for f in reply["files"]}
        assert found == {"out/mark.txt": mark} or (not found and said), reply


def ask(server, mark, what=text, whole=True):
    """Status and text of the only answer. 200 is a right one, also without `whole`: with the mark, and with
    all else that was asked for or a word that it is not there."""
    body = {"timeout_seconds": 30, "cpu_limit": 1, **what(mark)}
    with Wire(server, timeout=60) as w:
        w.send(w.post(**body, connection="close"))
        answer = w.answer()
        assert answer is not None, f"no answer to {mark}; {server.log()[-1500:]}"
        assert w.is_closed(), "more than one answer"
    reply = answer.json()
    if answer.status == 200:
        must_be_right(reply, body, mark, whole)
        return 200, "; ".join(map(str, reply["warnings"] + reply["skipped"]))
    return answer.status, reply["detail"]


class Walk:
    """Call number 0, 1, 2… of one role fails; between them, and at the end, all is as before."""

    def __init__(self, kernel, server, role, code, what=text, passes=0):
        """`what` is asked for; `passes` processes of that role make their call before one fails."""
        self.kernel, self.server, self.role, self.code = kernel, server, role, code
        self.what, self.passes = what, passes
        self.before = None
        self.failed, self.refused, self.names = 0, 0, set()

    def quiet(self):
        """Until the call was reached, or what the request has caused is done without it."""
        end = time.monotonic() + 5
        calm = 0
        while time.monotonic() < end and calm < 12:
            if self.kernel.page.hits:
                break
            before = self.kernel.page.calls
            idle = self.server.is_idle()
            calm = calm + 1 if idle and self.kernel.page.calls == before else 0
            time.sleep(0.02)  # the events are somebody else's calls: nothing tells of them

    def fail(self, n):
        """Ask while that call fails: the answer's status, and what has failed in words."""
        if "--cold" not in self.server.flags:
            wait_for("a zygote", lambda: self.server.health().json()["warm"] == "on" and self.server.is_idle())
        self.kernel.fail_nth(self.role, n, self.code, passes=self.passes)
        began = time.monotonic()
        try:
            status, why = ask(self.server, f"call-{n}", self.what, whole=False)
        except AssertionError as e:
            raise AssertionError(f"{self.role}'s call {n}, {self.kernel.hits()}: {e}") from None
        took = time.monotonic() - began
        self.quiet()
        self.kernel.heal()
        hits = self.kernel.hits()
        where = f"{self.role}'s call {n}, {hits}: {status} {why}"
        if status != 200:
            assert status in (500, 503), where
            assert SAYS_WHERE.fullmatch(why), where
            self.refused += 1
        # An end that nobody hears of would be seen by a deadline: a run's, or that of a build, 5 s.
        assert took < 4.5 * PATIENCE, f"{where} after {took:.1f} s"
        self.failed += len(hits)
        self.names |= {name for _, name in hits}
        return status, where

    def step(self, n):
        """True if there is such a call."""
        failed = self.failed
        _, where = self.fail(n)
        assert ask(self.server, f"after-{n}", self.what) == (200, ""), where
        return self.failed > failed

    def settle(self):
        try:
            self.server.settles_to(self.before)
        except AssertionError as e:
            raise AssertionError(f"{self.role}, {self.names}: {e}") from None

    def all(self, least, stride=1, most=1000, patience=3):
        assert ask(self.server, "first", self.what) == (200, "")
        self.before = self.server.rest()
        missed = 0
        for n in range(0, most, stride):
            missed = 0 if self.step(n) else missed + 1
            if n // stride % 20 == 0:
                self.settle()
            if missed == patience:
                break
        self.settle()
        assert self.failed >= least, f"{self.role}: only {self.failed} calls failed: {self.names}"
        return self

    def reach(self, names):
        """Which call has which number depends on the clock: what the walk stepped over fails by its name."""
        for name in names - self.names:
            self.kernel.spare(name, only=True)
            # Whoever stands ready has counted others, too: he has his turn before.
            assert ask(self.server, f"before-{name}", self.what) == (200, "")
            self.step(0)
        self.settle()
        assert names <= self.names, self.names
        return self
