"""The two ends of a test server's life."""
import os
import signal

import pytest

from harness import census
from harness.openapi import Document
from harness.server import PROGRAM


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
