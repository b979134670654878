"""Requests that bear a mark of their own, so that a lost, doubled or exchanged answer shows.

A run's standard output is one pipe from the first try to the last: a program that was begun
twice for one request has printed its mark twice."""
import itertools
import os
import re

from harness.background import Background
from harness.poll import wait_for
from harness.rawhttp import Wire
from harness.reply import Reply

_numbers = itertools.count(1)
CODE = "print({mark!r})"
SLOW = "import time; print({mark!r}); time.sleep(1.2)"


def ask(server, code=CODE, **fields):
    """One request. Its reply, after the only answer on a connection that then closes."""
    mark = f"mark-{os.getpid()}-{next(_numbers)}"
    fields = {"timeout_seconds": 30, "memory_limit_mb": 128, "cpu_limit": 1, **fields}
    with Wire(server, timeout=120) as w:
        w.send(w.post(code.format(mark=mark), connection="close", **fields))
        answer = w.answer()
        assert answer is not None, f"no answer to {mark}\n{server.log()[-2000:]}"
        assert answer.status == 200, f"{mark}: {answer}\n{server.log()[-2000:]}"
        assert w.is_closed(), f"more than one answer to {mark}"
    reply = Reply(answer.json()).check()
    assert (reply.status, reply.stdout, reply.stderr) == ("success", f"{mark}\n", ""), reply
    return reply


def begin(server, count, code=CODE, **fields):
    """So many of them at the same time, each in the background."""
    return [Background(ask, server, code, **fields) for _ in range(count)]


def must_have_answered(server, count):
    """By the server's own account: so many runs, each once. Its log comes a little later."""
    line = re.compile(r' ev=request id=\S+ method="POST" path="/execute" http=200 ')
    wait_for(f"{count} answers in the log", lambda: len(line.findall(server.log())) >= count)
    assert len(line.findall(server.log())) == count
    ids = re.findall(r" ev=request id=(\S+) ", server.log())
    assert len(ids) - ids.count("-") == len(set(ids) - {"-"})
