"""Fixtures of the end-to-end and escape tests. They need root, as the server does."""
import pytest

from harness.life import finish, need_program
from harness.server import PROGRAM, Server


def pytest_report_header(config):
    return f"program under test: {PROGRAM}"


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
