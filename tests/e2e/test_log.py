"""What the log does to the server, and the front to the log."""
import os
import re
import signal

import pytest

from harness import census
from harness.poll import wait_for

OUR_LINE = re.compile(r"^(relay=front )?t=[^ ]+Z lvl=[a-z]+ proc=[a-z]+ ev=[a-z_]+")


@pytest.fixture
def pipe():
    r, w = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
    yield r, w
    os.close(r)
    os.close(w)


def fill(w):
    try:
        while True:
            os.write(w, b"x" * 4096)
    except BlockingIOError:
        pass


def write_log(server, data):
    """Write as the front could, had somebody taken it over."""
    with open(f"/proc/{server.front}/fd/2", "wb", buffering=0) as log:
        log.write(data)


def test_a_log_that_nobody_reads_stops_neither_answers_nor_deadlines(serve, pipe):
    r, w = pipe
    with open(f"/proc/self/fd/{w}", "wb") as blocking:
        s = serve(stderr=blocking)
    fill(w)
    assert s.run("print('on')").stdout == "on\n"
    late = s.execute("while True: pass", timeout_seconds=0.5)
    assert late.status == "timeout"
    for _ in range(30):
        assert s.health().status == 200

    # Read again, it goes on, and says what is missing.
    seen = bytearray()

    def read_on():
        try:
            seen.extend(os.read(r, 1 << 20))
        except BlockingIOError:
            pass
        return seen

    wait_for("a line of the log", lambda: s.health() and b" ev=request " in read_on())
    assert s.stop() == 0
    assert re.search(rb" proc=supervisor ev=\S+ lines_lost=[1-9]", read_on()), seen
    s.must_leave_nothing()


def test_no_line_of_the_front_can_be_taken_for_the_supervisors(serve):
    s = serve()
    forged = b"t=2026-01-01T00:00:00.000Z lvl=err proc=supervisor ev=forged"
    wait_for("the front's own lines so far", lambda: s.log().count('path="/health"') >= 1)
    write_log(s, b"begun \r" + forged)
    write_log(s, b" by=halves\n" + forged + b" by=\x1b[2Jone\n")
    wait_for("the lines", lambda: s.log().count("ev=forged") == 2)
    assert s.health().status == 200
    lines = [x for x in s.log().splitlines() if not x.startswith("glovebox: warning: ")]
    assert all(OUR_LINE.match(x) or x.startswith("relay=front begun ?t=") for x in lines), lines
    assert [x.startswith("relay=front ") for x in lines if "ev=forged" in x] == [True, True]
    assert "\x1b" not in s.log()


def test_a_flood_of_lines_is_bounded_and_counted(serve):
    s = serve()
    line = b"f" * 99 + b"\n"
    for _ in range(40):
        write_log(s, line * 600)  # 2.4 MB, 24000 lines

    def counted():
        """(lines that passed, lines that were dropped), once all are accounted for. A line that
        comes a second later has the last ones told."""
        assert s.health().status == 200
        log = s.log()
        passed, dropped = log.count("f" * 99), re.findall(r"ev=relay from=front lines_dropped=(\d+)\n", log)
        dropped = sum(map(int, dropped))
        return passed + dropped >= 24000 and (passed, dropped)

    passed, dropped = wait_for("all lines to be counted", counted)
    assert 0 < passed < 12000 and dropped > 0
    assert s.run("print('on')").stdout == "on\n"


def test_the_last_words_of_a_front_are_all_in_the_log(serve):
    s = serve()
    front = s.front
    os.kill(s.pid, signal.SIGSTOP)
    try:
        write_log(s, b"".join(b"word %d of 3000\n" % n for n in range(1, 3001)) + b"and no end")
        os.kill(front, signal.SIGKILL)
        wait_for("its death", lambda: front not in census.processes(s.uid_base, s.pid))
    finally:
        os.kill(s.pid, signal.SIGCONT)
    wait_for("its successor", lambda: "ev=front_restarted" in s.log() and s.is_ready())
    lines = s.log().splitlines()
    assert [f"relay=front word {n} of 3000" for n in range(1, 3001)] == \
        [x for x in lines if "word" in x]
    assert "relay=front and no end" in lines
