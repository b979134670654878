"""A front that does not read for a while: what it is to know reaches it later."""
import os
import signal
import time
from pathlib import Path

import pytest

from harness.poll import wait_for

SAVED = Path("/run/glovebox/selftest")
MAGIC = 0x31745367  # of struct selftest_record (wire/selftest.h)
NEWS = 1000  # more than its channel holds


def record(probes):
    numbers = [MAGIC, probes, 0, 0]
    return b"".join(n.to_bytes(4, "little") for n in numbers).ljust(36, b"\0") + b"2026-01-31T12:00:00Z".ljust(88, b"\0")


def tell(probes):
    """A result as `glovebox selftest` leaves it."""
    made = Path(f"/run/glovebox/selftest.{os.getpid()}")
    made.touch(0o600)
    made.write_bytes(record(probes))
    made.rename(SAVED)


@pytest.fixture(name="busy")
def _busy(serve):
    """A server whose front is stopped, with a channel that is full of news; the last has NEWS probes."""
    before = SAVED.read_bytes() if SAVED.exists() else None
    server = serve("--cold")
    os.kill(server.front, signal.SIGSTOP)
    try:
        for probes in range(1, NEWS + 1):
            tell(probes)
            time.sleep(0.002)
        tell(NEWS)  # which is none
        yield server
    finally:
        SAVED.unlink(missing_ok=True)
        if before:
            SAVED.write_bytes(before)
            SAVED.chmod(0o600)


def test_news_that_find_no_room_come_later(busy):
    os.kill(busy.front, signal.SIGCONT)
    wait_for("the last news", lambda: busy.health().json()["selftest"]["probes"] == NEWS)
    assert busy.run("print('hi')").stdout == "hi\n"


def test_the_end_comes_later_too(busy):
    os.kill(busy.pid, signal.SIGTERM)
    wait_for("the drain", lambda: " ev=drain " in busy.log())
    time.sleep(0.2)
    began = time.monotonic()
    os.kill(busy.front, signal.SIGCONT)
    assert busy.process.wait(20) == 0, busy.log()
    assert time.monotonic() - began < 10  # and not when the grace of 30 s is over
    busy.must_leave_nothing()


def test_one_that_dies_with_news_unread_is_replaced_by_one_that_knows_them(busy):
    os.kill(busy.front, signal.SIGKILL)
    wait_for("the next one", lambda: "ev=front_restarted" in busy.log() and busy.is_ready())
    assert 'ev=front_lost why="Connection reset by peer"' in busy.log()
    assert busy.health().json()["selftest"]["probes"] == NEWS
