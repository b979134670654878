"""The corpus: hostile programs as data, with the verdict that each must come to.

An entry is an Attack. A file of this folder holds one class of them, as lists that its tests are
parametrized with; `arena.withstand(attack)` runs one and judges the answers, and the fixture
checks what must hold after any of them (invariants.py). docs/attacks.md says what stops which
class, and where it stops."""
import re
import signal
from dataclasses import dataclass

from harness.poll import PATIENCE

# ---- Verdicts ----


@dataclass(frozen=True)
class Verdict:
    status: str
    cause: str
    exit_code: int
    signal: str | None = None

    def fits(self, reply):
        return (self.status, self.cause, self.exit_code, self.signal) == \
            (reply.status, reply.cause, reply.exit_code, reply["signal"])


SUCCESS = Verdict("success", "exit", 0)
TIMEOUT = Verdict("timeout", "wall_timeout", 124)
CPU_TIMEOUT = Verdict("timeout", "cpu_timeout", 124)
OUT_OF_MEMORY = Verdict("memory_exceeded", "oom_kill", 137)


def failed(code):
    """The main process ended by itself, with this exit code."""
    return Verdict("error", "exit", code)


def killed_by(name):
    """The main process died of a signal that Glovebox did not send."""
    return Verdict("error", "signal", 128 + signal.Signals[name], name)


# ---- Programs ----

# Gives an attack `sc(number, …)`: the result, or the name of the errno. Numbers are x86-64's.
PRELUDE = """\
import os, sys, time, ctypes, errno
L = ctypes.CDLL(None, use_errno=True)
def sc(*a):
    r = L.syscall(*a)
    return r if r >= 0 else errno.errorcode.get(ctypes.get_errno())
"""

# What a call that the cage does not give is answered with.
REFUSED = ("EPERM", "ENOSYS", "EACCES", "EAFNOSUPPORT")


def shell(script):
    """A program that becomes this shell script."""
    return f"import os\nos.execv('/bin/sh', ['sh', '-c', {script!r}])"


def all_refused(reply):
    """Every word that the program has printed is a refusal, and there is one."""
    words = reply.stdout.split()
    assert words and not set(words) - set(REFUSED), reply


# ---- Entries ----


@dataclass(frozen=True)
class Attack:
    """One hostile program and its right result.

    name      what it does, unique in its file
    code      the program; with `calls` it has PRELUDE in front
    verdict   what must come back, or a tuple of verdicts of which one must
    says      its standard output: the text, a compiled pattern that fits all of it, or None for
              any; with a verdict other than success a program may have been cut short
    complains the same for its standard error
    check     called with the reply, for what the two above cannot say
    timeout, memory, cpu, pids, cpu_time
              limits: seconds (longer where the processor is emulated), MiB, CPUs, tasks, seconds
    times     one after another, each with the same result
    at_once   so many of them at the same time, each with the same result
    artifacts what is asked of its files"""
    name: str
    code: str
    verdict: object = SUCCESS
    says: object = None
    complains: object = None
    check: object = None
    calls: bool = False
    timeout: float = 10
    memory: float = 128
    cpu: float = 1
    pids: int | None = None
    cpu_time: float | None = None
    times: int = 1
    at_once: int = 1
    artifacts: str | None = None

    def __str__(self):
        return self.name

    @property
    def request(self):
        """The body of the request."""
        body = {"code": PRELUDE + self.code if self.calls else self.code,
                "timeout_seconds": min(self.timeout * PATIENCE, 300), "memory_limit_mb": self.memory,
                "cpu_limit": self.cpu, "pids_limit": self.pids,
                "cpu_time_seconds": self.cpu_time, "artifacts": self.artifacts}
        return {key: value for key, value in body.items() if value is not None}

    def judge(self, reply):
        """The stated result, or an AssertionError."""
        wanted = self.verdict if isinstance(self.verdict, tuple) else (self.verdict,)
        assert any(v.fits(reply) for v in wanted), f"wanted {wanted}: {reply}"
        _compare(self.says, reply.stdout, reply)
        _compare(self.complains, reply.stderr, reply)
        if self.check:
            self.check(reply)


def _compare(wanted, text, reply):
    if isinstance(wanted, re.Pattern):
        assert wanted.fullmatch(text), f"{text[:400]!r} is not {wanted.pattern!r}: {str(reply)[:2000]}"
    elif wanted is not None:
        assert text == wanted, f"{text[:400]!r} is not {wanted!r}: {str(reply)[:2000]}"
