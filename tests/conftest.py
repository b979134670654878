"""Fixtures of the end-to-end and escape tests. They need root, as the server does."""
import os
import signal

import pytest

from harness import census
from harness.openapi import Document
from harness.server import PROGRAM, Server


def pytest_report_header(config):
    return f"program under test: {PROGRAM}"


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


@pytest.fixture(scope="module")
def server(request):
    """A server for the tests of one module, with defaults, or with the module's FLAGS."""
    need_program()
    s = Server(*getattr(request.module, "FLAGS", ()))
    try:
        s.start()
        yield s
        s.must_live()
        finish(s)
    finally:
        if s.process:
            s.stop()  # after a failure above: leave nothing for other tests


@pytest.fixture
def serve():
    """Start servers of one's own: serve(*flags, env=…, listen=…) gives a ready one."""
    need_program()
    made = []

    def start(*flags, ready=True, **kw):
        s = Server(*flags, **kw)
        made.append(s)
        if ready:
            s.start()
        else:
            s.launch()
        return s

    yield start
    for s in made:
        s.stop()
