"""The two ends of a test server's life."""
import contextlib
import os
import signal

import pytest

from harness import census
from harness.openapi import Document
from harness.poll import wait_for
from harness.server import PROGRAM, Server


def need_program():
    """Fail at once and clearly, rather than once a test, when nothing can run."""
    if not os.access(PROGRAM, os.X_OK):
        pytest.exit(f"{PROGRAM} is not there: build first (make build) or set GLOVEBOX_PROGRAM", 2)
    if os.geteuid() != 0:
        pytest.exit("these tests start the server, which needs root", 2)


def finish(server):
    """The end of every server: exit code 0, nothing left, every exchange as documented."""
    document = Document(server.request("GET", "/openapi.json").json())
    bad = [e for x in server.exchanges for e in document.exchange_complaints(*x)]
    assert server.stop(signal.SIGTERM) == 0, server.log()
    server.must_leave_nothing()
    assert not census.populated(server.groups)
    assert not bad, "\n".join(sorted(set(bad))[:20])


@contextlib.contextmanager
def servers_by(flags_of):
    """get(way, *flags): a server with flags_of[way] and those, whose warm interpreter is there unless it has none;
    made when it is first asked for, and ended as every server is."""
    need_program()
    made = {}

    def get(way, *flags):
        key = (way, *flags)
        if key not in made:
            made[key] = Server(*flags_of[way], *flags)
            made[key].start()
            wait_for("interpreters", lambda: made[key].health().json()["warm"] in ("on", "off"))
        return made[key]

    try:
        yield get
        for s in made.values():
            finish(s)
    finally:
        for s in made.values():
            s.stop()
