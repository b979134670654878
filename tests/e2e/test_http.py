"""HTTP/1.1 as clients and their mistakes speak it."""
import json
import socket
import struct
import time

import pytest

from harness import census
from harness.background import Background
from harness.poll import wait_for
from harness.rawhttp import Wire, chunked

FLAGS = ["--max-runs", "2"]
BODY = json.dumps({"code": "print('ran')"}).encode()
SLEEPER = "import time; time.sleep(120)"


def ran(answer):
    return answer is not None and answer.status == 200 and answer.json()["stdout"] == "ran\n"


@pytest.fixture
def wire(server):
    with Wire(server) as w:
        yield w


def test_a_chunked_body_is_put_together(wire):
    wire.send(wire.head(Transfer_Encoding="chunked") + chunked(BODY[:1], BODY[1:7], BODY[7:]))
    assert ran(wire.answer())


def test_expect_100_continue_is_answered_before_the_body_comes(wire):
    wire.send(wire.head(Content_Length=len(BODY), Expect="100-continue"))
    assert wire.answer().status == 100
    wire.send(BODY)
    assert ran(wire.answer())


def test_a_refused_expectation_is_answered_without_100(wire):
    wire.send(wire.head(Content_Length=10 ** 10, Expect="100-continue"))
    assert wire.answer().status == 413


def test_a_connection_serves_many_requests(wire):
    for _ in range(3):
        wire.send(wire.post("print('ran')"))
        assert ran(wire.answer())
    wire.send(wire.head("GET", "/health"))
    assert wire.answer().status == 200


def test_an_error_does_not_spoil_the_connection(wire):
    wire.send(wire.head("GET", "/nothing"))
    assert wire.answer().status == 404
    wire.send(wire.post(5))
    assert wire.answer().status == 422
    wire.send(wire.post("print('ran')"))
    assert ran(wire.answer())


def test_connection_close_is_kept(wire):
    wire.send(wire.post("print('ran')", connection="close"))
    answer = wire.answer()
    assert ran(answer) and answer.headers["Connection"].lower() == "close"
    assert wire.is_closed()


def test_pipelined_requests_are_answered_in_order(wire):
    wire.send(b"".join(wire.post(f"print({n})") for n in range(4)) + wire.head("GET", "/limits"))
    assert [wire.answer().json()["stdout"] for _ in range(4)] == ["0\n", "1\n", "2\n", "3\n"]
    assert "maxima" in wire.answer().json()


def test_a_request_in_single_bytes_is_one_request(wire):
    wire.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in wire.post("print('ran')"):
        wire.send(bytes([byte]))
    assert ran(wire.answer())


def test_http_1_0_is_answered_and_closed(server, wire):
    wire.send(b"GET /health HTTP/1.0\r\nHost: 127.0.0.1:%d\r\n\r\n" % server.port)
    assert wire.answer().status == 200 and wire.is_closed()


@pytest.mark.parametrize("path", ["/health", "/limits", "/openapi.json"])
def test_head_gives_the_head_of_get_and_no_body(wire, path):
    wire.send(wire.head("GET", path))
    got = wire.answer()
    wire.send(wire.head("HEAD", path))
    headed = wire.answer(body=False)
    assert (headed.status, headed.headers["Content-Type"]) == \
        (got.status, got.headers["Content-Type"])
    assert int(headed.headers["Content-Length"]) == len(got.body)
    wire.send(wire.head("HEAD", path, Connection="close"))
    wire.answer(body=False)
    assert wire.is_closed()


def has_program(server):
    return bool(server.programs())


@pytest.mark.parametrize("leave", ["close", "reset", "half-close"])
def test_a_client_that_hangs_up_ends_its_run(server, leave):
    with Wire(server) as w:
        w.send(w.post(SLEEPER, timeout_seconds=200))
        wait_for("the program to start", lambda: has_program(server))
        if leave == "reset":
            w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        if leave == "half-close":
            w.sock.shutdown(socket.SHUT_WR)
            wait_for("the program's end", lambda: not has_program(server))
    wait_for("the program's end", lambda: not has_program(server))
    assert server.run("print('ran')").stdout == "ran\n"


def test_a_client_that_hangs_up_while_it_waits_never_runs(server):
    busy = [Background(server.post, {"code": SLEEPER, "timeout_seconds": 60}) for _ in range(2)]
    wait_for("both to run", lambda: len(server.programs()) == 2)
    with Wire(server) as w:
        w.send(w.post("print('ran')"))
        wait_for("it to wait", lambda: server.health().json()["queued"] == 1)
    wait_for("it to leave", lambda: server.health().json()["queued"] == 0)
    server.kill_programs()
    assert [b.result().status for b in busy] == [200, 200]


def test_health_counts_what_runs_and_what_waits(server):
    jobs = [Background(server.post, {"code": SLEEPER, "timeout_seconds": 60}) for _ in range(2)]
    wait_for("two to run", lambda: len(server.programs()) == 2)
    jobs.append(Background(server.post, {"code": "print('ran')"}))

    def counts():
        h = server.health().json()
        return (h["running"], h["queued"]) == (2, 1)

    wait_for("two to run and one to wait", counts)
    seen = time.monotonic()
    wait_for("some time to pass", lambda: time.monotonic() - seen > 0.5)
    server.kill_programs()
    replies = [j.result().json() for j in jobs]
    assert [r["cause"] for r in replies] == ["signal", "signal", "exit"]
    assert replies[0]["queue_ms"] < 500 <= replies[2]["queue_ms"]
    assert (server.health().json()["running"], server.health().json()["queued"]) == (0, 0)


def test_a_full_queue_is_a_503_with_retry_after_and_never_a_hang(serve):
    s = serve("--max-runs", "1", "--max-queue", "2")
    jobs = [Background(s.post, {"code": SLEEPER, "timeout_seconds": 60})]
    wait_for("it to run", s.programs)
    jobs += [Background(s.post, {"code": "print('ran')"}) for _ in range(2)]

    def full():
        h = s.health().json()
        return (h["running"], h["queued"]) == (1, 2)

    wait_for("the queue to be full", full)
    refused = s.post({"code": "print('ran')"})
    assert refused.status == 503 and isinstance(refused.json()["detail"], str)
    assert 1 <= int(refused.headers["Retry-After"]) <= 300
    assert refused.wall_s < 5
    s.kill_programs()
    assert [j.result().json()["cause"] for j in jobs] == ["signal", "exit", "exit"]
    assert s.run("print('ran')").stdout == "ran\n"


def test_more_connections_than_allowed_get_503_and_the_others_go_on(serve):
    s = serve("--max-connections", "8")
    idle = [s.socket() for _ in range(8)]
    try:
        with Wire(s) as w:
            w.send(w.head("GET", "/health"))
            try:
                answer = w.answer()
            except ConnectionResetError:
                answer = None
            assert answer is None or answer.status == 503
    finally:
        for sock in idle:
            sock.close()
    wait_for("a free connection", s.is_ready)


def test_replies_that_nobody_takes_do_not_fill_the_memory(serve):
    """24 of 12 MiB each; the server keeps 64 MiB and twice the streams of its runs."""
    s = serve("--max-runs", "2", "--output-bytes", "1M")
    code = ("import sys\nb = b'\\xff\\x01' * (1 << 19)\n"
            "sys.stdout.buffer.write(b); sys.stderr.buffer.write(b)")
    body = json.dumps({"code": code, "timeout_seconds": 30, "cpu_limit": 1}).encode()
    head = b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n"
    s.run("pass")
    before = census.resident_kb(s.front)
    deaf, peak = [], 0
    try:
        for n in range(1, 25):
            c = socket.socket()
            deaf.append(c)
            c.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            c.connect(("127.0.0.1", s.port))
            c.sendall(head % len(body) + body)
            wait_for("its answer", lambda n=n: s.log().count(" status=success ") == n + 1)
            peak = max(peak, census.resident_kb(s.front) - before)
        assert s.run("print('on')").stdout == "on\n"
        assert " ev=slow_reader " in s.log()
        assert peak < 130 << 10, f"the front grew by {peak} kB"
    finally:
        for c in deaf:
            c.close()


def test_a_program_cannot_write_into_the_log(server):
    server.run("import sys; sys.stdout.write('\\nlvl=err forged=1\\n'); "
               "sys.stderr.write('\\x1b[2Jforged')")
    server.request("GET", "/nothing%0alvl=err%20forged=1")
    assert "\nlvl=err forged" not in server.log() and "\x1b" not in server.log()


def test_each_request_is_one_line_of_the_log(server):
    r = server.run("pass")
    server.request("GET", "/nothing-of-its-own")
    wait_for("the later line", lambda: 'path="/nothing-of-its-own"' in server.log())
    ran = [line for line in server.log().splitlines() if r.id in line]
    assert len(ran) == 1 and " status=success " in ran[0] and 'path="/execute"' in ran[0], ran
    assert server.log().count("/nothing-of-its-own") == 1
