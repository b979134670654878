"""Threat: requests that no honest client sends: broken or boundless HTTP and JSON, clients that are slow, deaf, gone
or too many. Answer: a front without rights, one strict reader with a limit for each thing that can grow, deadlines,
and a bounded queue. What is refused is refused once, as JSON, and nothing is run."""
import json
import resource
import socket
import struct
import subprocess
import time
from dataclasses import dataclass
from pathlib import Path

import pytest

from corpus import SUCCESS, TIMEOUT, Attack
from harness import census
from harness.background import Background
from harness.poll import PATIENCE, wait_for
from harness.rawhttp import Wire
from harness.server import CANARY, PROGRAM
from invariants import HEALTH_S, SECRET, strict_json

RUN = "print('was run')"
JSON = json.dumps({"code": RUN}).encode()
GET = b"GET /health HTTP/1.1\r\nHost: 127.0.0.1\r\n"
POST = b"POST /execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
CHUNKED = POST + b"Transfer-Encoding: chunked\r\n\r\n"
MIB = 1 << 20


@dataclass(frozen=True)
class Request(Attack):
    """What a client sends, in place of a program: `code` are bytes, the verdict is the status or
    a tuple of them. After a fault of framing the connection must be closed."""
    closes: bool = True

    def send(self, arena):
        """The answer; None when the server has closed without one, which it may where it left our bytes unread."""
        began = time.monotonic()
        with Wire(arena.server, timeout=60 * PATIENCE) as w:
            try:
                w.send(self.code)
                answer = w.answer()
            except (BrokenPipeError, ConnectionResetError):
                return None
            if answer:
                answer.wall_s = time.monotonic() - began
                assert not self.closes or w.is_closed(), f"two answers to one request, or a connection that goes on: {answer}"
        return answer

    def judge(self, answer):
        wanted = self.verdict if isinstance(self.verdict, tuple) else (self.verdict,)
        if answer is None:
            assert len(self.code) > 4096, "closed without an answer"
            return
        assert answer.status in wanted, f"wanted {wanted}: {answer}"
        assert answer.wall_s < 20 * PATIENCE, f"it took {answer.wall_s:.1f} s"
        assert len(answer.body) < 8192 and SECRET.encode() not in answer.body and CANARY.encode() not in answer.body
        assert answer.headers["Content-Type"].startswith("application/json") and strict_json(answer.body)["detail"]
        assert "Access-Control-Allow-Origin" not in answer.headers


def nothing_lives(server):
    """A program is answered when the kernel records its end (ADR 8), a moment before its process has gone."""
    wait_for("every program to be gone", lambda: not server.programs())


def endure(arena, request):
    (answer,) = arena.beside(Background(request.send, arena))
    request.judge(answer)
    ran = [l for l in arena.server.log().splitlines() if " ev=request " in l and " http=200 " not in l and " id=- " not in l]
    assert not ran, f"something was run for what was refused: {ran}"
    nothing_lives(arena.server)


def head(name, data, *statuses):
    return Request(name, data, statuses or (400,))


LINES = [
    head("another protocol", b"\x16\x03\x01\x00\x05hello\r\n\r\n"),
    head("a protocol that comes later", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes(64), 400, 505),
    head("another version", b"GET /health HTTP/9.9\r\nHost: x\r\n\r\n", 505),
    head("no version", b"GET /health\r\n\r\n"),
    head("two blanks", b"GET  /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
    head("another host's target", b"GET http://evil.example/health HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400, 403),
    head("a target for a proxy", b"CONNECT evil.example:443 HTTP/1.1\r\nHost: evil.example\r\n\r\n", 400, 403, 404, 405),
    head("a NUL in the target", b"GET /hea\0lth HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
    head("bytes that are no characters", b"GET /\xff\xfe\x80 HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 400, 404),
    head("a target of 1 MB", b"GET /" + b"a" * MIB + b" HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 414),
    head("a target of 1 MB without an end", b"GET /" + b"a" * MIB, 414),
    head("a method of 10 kB", b"G" * 10_000 + b" /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", 414),
    head("a method of bytes", b"\x00\x01\x02 /health HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"),
    head("blank lines without an end", b"\r\n" * 100_000),
    head("nothing but bytes", bytes(range(256)) * 400, 400, 414, 431),
]

FIELDS = [
    head("no Host", b"GET /health HTTP/1.1\r\n\r\n"),
    head("two Hosts", GET + b"Host: 127.0.0.1\r\n\r\n"),
    head("no colon", GET + b"no colon\r\n\r\n"),
    head("a blank before the colon", GET + b"A : b\r\n\r\n"),
    head("a folded line", GET + b"A: b\r\n folded\r\n\r\n"),
    head("a NUL", GET + b"A: b\0c\r\n\r\n"),
    head("a lone CR", GET + b"A: b\rEvil: c\r\n\r\n"),
    head("lone LFs", b"GET /health HTTP/1.1\nHost: 127.0.0.1\n\n"),
    head("a name of 100 kB", GET + b"A" * 100_000 + b": b\r\n\r\n", 431),
    head("a value of 1 MB", GET + b"A: " + b"a" * MIB + b"\r\n\r\n", 431),
    head("100,000 of them", GET + b"A: b\r\n" * 100_000 + b"\r\n", 431),
    head("as many as fit into little", GET + b"".join(b"%x:\r\n" % n for n in range(50_000)) + b"\r\n", 431),
    head("an expectation that nobody has", POST + b"Expect: the-unexpected\r\nContent-Length: 2\r\n\r\n{}", 417),
    head("a head that ends in nothing", GET + b"Connection: \x7f\r\n\r\n"),
]

BODIES = [
    head("two lengths", POST + b"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!"),
    head("a length and chunks", POST + b"Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"),
    *[head(f"a length of {n!r}", POST + b"Content-Length: " + n + b"\r\n\r\nhello", 400)
      for n in (b"+5", b"-1", b"0x5", b"5,5", b"5 5", b"", b"5;", b"1e3", b"\xd9\xa5", b"18446744073709551621", b"9" * 400)],
    head("10 GB announced", POST + b"Content-Length: 10000000000\r\n\r\n" + b"x" * 1024, 413),
    head("10 GB announced, and asked for first", POST + b"Expect: 100-continue\r\nContent-Length: 10000000000\r\n\r\n", 413),
    head("another coding", POST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
    head("a coding twice", POST + b"Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400, 501),
    head("a coding in disguise", POST + b"Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400, 501),
    *[head(f"a chunk of {n!r}", CHUNKED + n + b"\r\n{}\r\n0\r\n\r\n", 400, 413)
      for n in (b"ffffffffffffffff", b"fffffffffffffffff", b"-1", b"0x2", b" 2", b"2 ", b"", b"g", b"2;name=value", b"\xb2", b"80000000", b"7fffffffffffffff")],
    head("a chunk that is longer than it says", CHUNKED + b"2\r\n{}{}\r\n0\r\n\r\n"),
    head("a chunk that ends in another line", CHUNKED + b"2\r\n{}\n0\r\n\r\n"),
    head("a trailer", CHUNKED + b"2\r\n{}\r\n0\r\nX-Trailer: 1\r\n\r\n"),
    head("chunks of one byte without an end", CHUNKED + b"1\r\nx\r\n" * 4_300_000, 413),
    head("chunks without an end", CHUNKED + (b"10000\r\n" + b"x" * 65536 + b"\r\n") * 256, 413),
    head("a second request behind a bad one", POST + b"Content-Length: x\r\n\r\n" + POST + b"Content-Length: %d\r\n\r\n" % len(JSON) + JSON),
]


def body(name, data, *statuses, closes=False):
    data = data if isinstance(data, bytes) else data.encode()
    return Request(name, POST + b"Content-Length: %d\r\n\r\n" % len(data) + data, statuses or (422,), closes=closes)


DEEP = 100_000
DOCUMENTS = [
    body("arrays in each other", "[" * DEEP), body("objects in each other", '{"a":' * DEEP),
    body("both in turn", '[{"a":' * DEEP), body("closed again", '{"code": "x", "a": ' + "[" * DEEP + "]" * DEEP + "}"),
    body("in a field that is known", '{"code": ' + "[" * DEEP + "]" * DEEP + "}"),
    body("the same key 200,000 times", "{" + ",".join(['"a":0'] * 200_000) + "}"),
    body("a key of 3 MB, twice", '{"%s": 1, "%s": 2}' % ("k" * MIB, "k" * MIB)),
    body("numbers of 10,000 digits", '{"code": "x", "timeout_seconds": %s}' % ("9" * 10_000)),
    body("300 numbers of 10,000 digits for a program", '{"code": [%s]}' % ",".join(["9" * 10_000] * 300)),
    body("a fraction of a million digits", '{"code": "x", "timeout_seconds": 0.%s}' % ("1" * MIB), 200, 422),
    body("exponents without a bound", '{"code": "x", "timeout_seconds": 1e%s, "cpu_limit": 1e-%s}' % ("9" * 1000, "9" * 1000)),
    body("a minus a million times", '{"code": "x", "timeout_seconds": %s1}' % ("-" * MIB)),
    body("escapes of half a pair, a million", '{"code": "%s"}' % ("\\ud800" * 300_000)),
    body("a string that never ends", '{"code": "' + "a" * 3 * MIB),
    body("a literal that never ends", '{"code": tru' + "u" * MIB),
    body("blanks and nothing else", " \t\r\n" * 900_000),
    body("commas", "[" + "," * MIB), body("quotes", '"' * MIB), body("backslashes", '{"code": "' + "\\" * MIB),
    body("bytes that are no UTF-8, 3 MB", b'{"code": "' + b"\xff" * 3 * MIB + b'"}'),
    body("NULs", bytes(MIB)), body("another encoding", '{"code": "x"}'.encode("utf-16")), body("and another", '{"code": "x"}'.encode("utf-32")),
    body("two documents", JSON * 2), body("a document and a NUL", JSON + b"\0"), body("a comment", b"/**/" + JSON), body("half of one", JSON[:-3]),
    body("a body over the limit", b'{"code": "' + b"x" * (4 * MIB), 413, closes=True), body("a program over the limit", b'{"code": "' + b"x" * (2 * MIB + 1) + b'"}',
           413),
    body("a program of nulls", '{"code": null, "code2": [%s]}' % ",".join(["null"] * 200_000)),
    body("NULs in names", '{"code": "x", "memory_limit_mb\\u0000": 1e9, "a\\u0000b": 1}'),
    body("names as they stand in JavaScript", '{"__proto__": {"code": "x"}, "constructor": 1}'),
]



def inputs(name, status=422, **fields):
    return body(name, json.dumps({"code": RUN, **fields}), status)


def files(name, *paths, status=422, **fields):
    return inputs(name, status, files=[{"path": p, "content": "x", **fields} for p in paths])


INPUTS = [
    files("files in the place of the host's", "/etc/passwd", "/etc/cron.d/x"), files("a way out by dots", "../../etc/cron.d/x", "a/../../x", "a/.."),
    files("a way out that comes back", "../workspace/x"), files("the directory itself", ".", "./", "./x"),
    files("paths into /proc", "/proc/self/mem", "../proc/1/root/x"), files("a NUL that hides the rest", "a\0/../../x"),
    files("components of nothing", "a//b", "a/", "/", ""), files("control characters", "a\nb", "\x1b]0;x\x07", "\x7f"),
    files("a name of 300 bytes", "n" * 300), files("a path of 5,000 bytes", "/".join(["d" * 99] * 50)),
    files("10,000 files", *map(str, range(10_000))), files("the same path 1,000 times", *["a"] * 1000),
    files("a file that is a directory too", "a", "a/b", "a/b/c"), files("a file in the place of the program", "main.py"),
    files("a program that is a directory", "main.py/x"), files("set-user-ID root", "a", mode="4755"), files("a device's mode", "a", mode="0020666"),
    files("a mode as a number", "a", mode=0o4777), files("more inodes than there are", *("/".join([str(i)] * 400) for i in range(20))),
    files("base64 that is none", "a", encoding="base64"), files("another encoding", "a", encoding="utf-7"),
    inputs("a language that is a path", language="../../bin/sh"), inputs("a language and a command", language="bash; id"),
    inputs("an image that is a path", image="../../../etc"), inputs("an image that nobody has made", image="alpine"),
    inputs("files as an object", files={"../../etc/cron.d/x": "x"}), inputs("files in files", files=[[{"path": "a", "content": ""}]] * 1000),
    inputs("more than half of the memory", memory_limit_mb=4, files=[{"path": "a", "content": "x" * (3 * MIB - 65536)}]),
    inputs("a library in the place of the interpreter's", env={"LD_PRELOAD": "/workspace/x.so", "LD_LIBRARY_PATH": "/workspace", "LD_AUDIT": "x"}),
    inputs("another start of the interpreter", env={"PYTHONSTARTUP": "/workspace/x", "PYTHONPATH": "/workspace", "PYTHONHOME": "/workspace"}),
    inputs("a shell's function", env={"BASH_FUNC_ls%%": "() { :; }; id", "BASH_ENV": "x", "ENV": "x"}),
    inputs("names that are none", env={"": "x", "=x": "1", "A\nB": "2", "A=B": "3"}), inputs("10,000 variables", env={f"A{i}": "" for i in range(10_000)}),
    inputs("a NUL in an argument", args=["a\0--help"]), inputs("100,000 arguments", args=["x"] * 100_000), inputs("an argument of 2 MB", args=["x" * 2 * MIB]),
    inputs("a program beside the program", entry_point="a", files=[{"path": "a", "content": "print('replaced')"}]),
    body("an option as the program", json.dumps({"entry_point": "-c", "files": [{"path": "-c", "content": RUN}]})),
    body("a program that is not there", json.dumps({"entry_point": "../main.py", "files": [{"path": "a", "content": RUN}]})),
]

# What this server has no field for. Others run it before their cage is shut, or let it lead out of it.
UNKNOWN = {
    "additional_files": {"../../etc/cron.d/x": "x", "/workspace/../x": "x", "main.py": "print('replaced')"},
    "env_vars": {"LD_PRELOAD": "/tmp/x.so", "PYTHONSTARTUP": "/tmp/x", "PYTHONPATH": "/tmp", "BASH_ENV": "x", "=x": "1", "A\nB": "2"}, "argv": ["--help"],
    "runtime": "python3; id", "interpreter": "/bin/sh", "input": "x" * 1000, "setup": "print('replaced')",
           "preload": "print('replaced')",
    "before": "import os; os.setuid(0)", "user": "root", "uid": 0, "privileged": True, "cap_add": ["SYS_ADMIN"], "security_opt": ["seccomp=unconfined"],
           "seccomp": False, "mounts": ["/:/host"],
    "volumes": {"/": "/host"}, "cwd": "/", "workdir": "../..", "packages": ["requests"], "callback_url": "http://192.0.2.1/",
           "webhook": "file:///etc/passwd", "id": "../../x", "session": "1", "job_id": -1,
    "memory": "1T", "timeout": 1e18, "TIMEOUT_SECONDS": 1e9, "timeout_seconds ": 1e9, "memory_limit_mb\n": 1e9, "code ": "print('replaced')",
           "Code": "print('replaced')",
}
LOOK = "import os, sys\nprint('was run', sorted(os.environ), os.listdir('.'), sys.argv, os.getresuid(), os.getcwd(), repr(sys.stdin.read()))"


@pytest.mark.parametrize("request_", LINES, ids=str)
def test_a_request_line_that_is_none_is_refused_once(request_, arena):
    endure(arena, request_)


@pytest.mark.parametrize("request_", FIELDS, ids=str)
def test_fields_that_are_none_or_too_many_are_refused_once(request_, arena):
    endure(arena, request_)


@pytest.mark.parametrize("request_", BODIES, ids=str)
def test_a_body_without_one_clear_end_is_refused_once(request_, arena):
    endure(arena, request_)


@pytest.mark.parametrize("request_", DOCUMENTS, ids=str)
def test_a_document_that_is_none_costs_a_bounded_amount(request_, arena):
    endure(arena, request_)


@pytest.mark.parametrize("request_", INPUTS, ids=str)
def test_inputs_that_lead_elsewhere_or_are_too_many_are_refused_once(request_, arena):
    endure(arena, request_)


@pytest.mark.parametrize("field", UNKNOWN)
def test_what_is_no_field_has_no_effect(arena, field):
    usual = arena.run(LOOK)
    value = UNKNOWN[field]
    r = arena.ask({"code": LOOK, "timeout_seconds": 30 * PATIENCE, "memory_limit_mb": 128, "cpu_limit": 1, field.split(" as ")[0]: value})
    assert (r.status, r.stdout, r.stderr) == ("success", usual.stdout, ""), r
    assert len(r["warnings"]) == 1 and "was ignored" in r["warnings"][0]
    assert {**r["limits"], "timeout_seconds": 0} == {**usual["limits"], "timeout_seconds": 0}


def test_a_wide_document_is_bounded_in_time_and_in_what_is_said_of_it(arena):
    data = json.dumps({"code": RUN, "timeout_seconds": 30, **{f"k{i}": 0 for i in range(60_000)}}).encode()
    answer = Request("", POST + b"Content-Length: %d\r\n\r\n" % len(data) + data, closes=False).send(arena)
    reply = strict_json(answer.body)
    assert (answer.status, reply["stdout"]) == (200, "was run\n") and len(reply["warnings"]) == 17 and answer.wall_s < 20 * PATIENCE


# ---- What the codec's own tests know ----


def test_every_case_of_the_codecs_own_tests_leaves_the_server_whole(arena):
    """tests/unit/http_cases.c says what each must be answered; here a server stands behind it."""
    data = subprocess.run([Path(PROGRAM).parent / "tests/unit/http_frame_dump", "--cases"], stdout=subprocess.PIPE, check=True, timeout=240).stdout
    count = refused = 0
    while data:
        (length,) = struct.unpack_from("<I", data)
        case, data, count = data[4:4 + length], data[4 + length:], count + 1
        with Wire(arena.server, timeout=20 * PATIENCE) as w:
            try:
                w.send(case)
                w.sock.shutdown(socket.SHUT_WR)
                last = None
                while answer := w.answer(body=b"HEAD " not in case):
                    last = answer
                    assert last.status < 400 or b"HEAD " in case or strict_json(last.body)["detail"]
            except OSError:
                continue  # it closed with bytes of ours unread
            refused += bool(last and last.status >= 400)
    assert count > 100 and refused > 50


# ---- Names of places ----

PATHS = ["/execute/1", "/execute/../health", "/runs/00000000000000000000000000000000", "/jobs/1", "/jobs/-1", "/jobs/%2e%2e%2f", "/result?id=1", "//health",
       "/health/", "/health%00", "/health%2f", "/./health", "/HEALTH", "/health;x",
         "/..%c0%af..%c0%afetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/metrics", "/debug/pprof", "/admin", "/.git/config", "/docs", "/" + "a/" * 2000]
HOSTS = ["attacker.example", "127.0.0.1.evil.example", "localhost.evil.example", "evil.localhost.example", "127.0.0.1@evil.example", "[::1]evil",
       "0x7f000001.example", "127.0.0.1:8000:8000", "-", "127.0.0.1,evil.example"]


@pytest.mark.parametrize("path", PATHS, ids=lambda p: p[:40])
def test_no_other_place_is_there(arena, path):
    """There are no results to fetch, and so no ids to guess."""
    for method in (b"GET", b"POST", b"DELETE"):
        answer = Request("", method + b" " + path.encode() + b" HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 0\r\n\r\n", closes=False).send(arena)
        assert answer.status in (400, 404, 405) and "detail" in strict_json(answer.body), answer


@pytest.mark.parametrize("host", HOSTS)
def test_a_page_of_another_name_cannot_call(arena, host):
    for method, path in ((b"POST", b"/execute"), (b"GET", b"/health"), (b"OPTIONS", b"/execute")):
        data = b"%s %s HTTP/1.1\r\nHost: %s\r\nOrigin: http://%s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % \
            (method, path, host.encode(), host.encode(), len(JSON), JSON)
        answer = Request("", data, closes=False).send(arena)
        assert answer.status in (400, 403, 405), answer
        assert not [h for h in answer.headers if h.lower().startswith("access-control-")]


# ---- Clients that are slow, deaf or gone ----


def test_slow_heads_and_bodies_end_at_their_deadlines_and_hold_no_run(arena):
    """A byte a second, on as many connections as there are runs and many more; others are served meanwhile."""
    heads = [arena.server.socket() for _ in range(150)]
    bodies = [arena.server.socket() for _ in range(20)]
    began = time.monotonic()
    ended = {}
    try:
        for s in heads:
            s.sendall(b"POST /execute HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Le")
        for s in bodies:
            s.sendall(POST + b"Content-Length: 1000\r\n\r\n")
        for s in heads + bodies:
            s.setblocking(False)

        def drip():
            for s in [s for s in heads + bodies if s not in ended]:
                try:
                    got = s.recv(4096)
                    ended[s] = (time.monotonic() - began, got[:12])
                    continue
                except BlockingIOError:
                    pass
                except ConnectionResetError:
                    ended[s] = (time.monotonic() - began, b"HTTP/1.1 408")
                    continue
                try:
                    s.sendall(b"x")
                except OSError:
                    pass
            assert arena.run(RUN).stdout == "was run\n"
            h = arena.server.health().json()
            assert (h["running"], h["queued"]) == (0, 0)
            return len(ended) == len(heads + bodies)

        wait_for("all of them to be ended", drip, 60 * PATIENCE, pause_s=1)
        assert {got for _, got in ended.values()} == {b"HTTP/1.1 408"}
        assert all(9 < ended[s][0] < 9 + 10 * PATIENCE for s in heads) and all(29 < ended[s][0] < 29 + 15 * PATIENCE for s in bodies)
    finally:
        for s in heads + bodies:
            s.close()


def test_a_slow_reader_holds_no_run(arena):
    with Wire(arena.server) as w:
        w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        before = arena.server.log().count(" status=success ")
        w.send(w.post("print('x' * 900_000)", timeout_seconds=20, memory_limit_mb=128))
        wait_for("its run to end", lambda: arena.server.log().count(" status=success ") > before)
        nothing_lives(arena.server)
        assert [arena.run(RUN).stdout for _ in range(3)] == ["was run\n"] * 3


@pytest.mark.parametrize("leave", ["close", "reset", "half-close", "while it comes"])
def test_clients_that_leave_again_and_again_leave_nothing(arena, leave):
    """At every moment: before the run is there, while it starts, while it goes on."""
    request = b"%sContent-Length: %d\r\n\r\n%s" % (POST, len(data := json.dumps({"code": "import time; time.sleep(60)", "timeout_seconds": 100}).encode()), data)
    for n in range(60):
        with Wire(arena.server) as w:
            w.send(request if leave != "while it comes" else request[:len(request) * n // 60])
            if n % 3 == 0 and leave != "while it comes":
                wait_for("something to run", lambda: arena.server.health().json()["running"])
            if leave == "reset":
                w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            if leave == "half-close":
                w.sock.shutdown(socket.SHUT_WR)
                assert w.is_closed()


# ---- Too many ----


@pytest.fixture
def many_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def test_more_requests_than_places_are_answered_at_once_and_the_others_served(arena, many_files):
    body_ = json.dumps({"code": "import time; time.sleep(.2); print('was run')", "timeout_seconds": 60 * PATIENCE, "cpu_limit": 1}).encode()
    request = POST + b"Connection: close\r\nContent-Length: %d\r\n\r\n" % len(body_) + body_
    wires = [Wire(arena.server, timeout=120 * PATIENCE) for _ in range(400)]
    try:
        for w in wires:
            w.send(request)
        assert arena.server.health().status == 200
        answers = [w.answer() for w in wires]
    finally:
        for w in wires:
            w.close()
    served = [a for a in answers if a.status == 200]
    refused = [a for a in answers if a.status == 503]
    assert len(served) + len(refused) == 400 and len(served) >= 64 + 4 and refused, (len(served), len(refused))
    assert all(strict_json(a.body)["stdout"] == "was run\n" for a in served)
    assert all(1 <= int(a.headers["Retry-After"]) <= 300 and strict_json(a.body)["detail"] for a in refused)


def test_more_connections_than_it_takes_disturb_nobody_and_it_recovers(arena, many_files):
    job = Background(arena.run, "import time; time.sleep(1); print('on')")
    wait_for("it to run", arena.server.programs)
    most = 1024  # max-connections
    socks = [arena.server.socket() for _ in range(most + 200)]
    try:
        wait_for("the front to have taken what it takes", lambda: census.descriptors(arena.server.front) >= most)
        assert job.result().stdout == "on\n"
    finally:
        for s in socks:
            s.close()
    wait_for("a free connection", arena.server.is_ready)


def test_health_answers_a_thousand_times_during_a_bomb(arena):
    """As fast as one client can ask, on connections of its own."""
    job = Background(arena.withstand, Attack("", "import os\nwhile 1:\n  try: os.fork()\n  except OSError: pass", TIMEOUT, timeout=3, memory=512))
    took = []
    with Wire(arena.server) as w:
        while job.is_alive() or len(took) < 1000:
            began = time.monotonic()
            w.send(w.head("GET", "/health"))
            assert w.answer().status == 200
            took.append(time.monotonic() - began)
    job.result()
    assert sorted(took)[len(took) // 2] < HEALTH_S


# ---- Limits ----

OVER = [("timeout_seconds", 3600 * 24 * 3650), ("memory_limit_mb", 1 << 20), ("pids_limit", 10 ** 6), ("cpu_limit", 1e6), ("cpu_time_seconds", 1e12),
       ("timeout_seconds", 1e-9), ("memory_limit_mb", 1e-6),
        ("memory_limit_mb", 0), ("pids_limit", 0), ("cpu_limit", 1e-9)]


@pytest.mark.parametrize("field, value", OVER, ids=lambda v: str(v))
def test_a_limit_beyond_its_range_is_refused_and_named(arena, field, value):
    data = json.dumps({"code": RUN, field: value}).encode()
    request = Request("", POST + b"Content-Length: %d\r\n\r\n" % len(data) + data, (422,), closes=False)
    answer = request.send(arena)
    request.judge(answer)
    assert [d["loc"] for d in strict_json(answer.body)["detail"]] == [["body", field]]


def test_the_smallest_limits_that_there_are_come_to_a_verdict(arena):
    """Too little for an interpreter is the program's misfortune, and no failure of the server's."""
    minima = arena.server.request("GET", "/limits").json()["minima"]
    for fields in ({"memory_limit_mb": minima["memory_limit_mb"]}, {"timeout_seconds": minima["timeout_seconds"]}, {"cpu_limit": minima["cpu_limit"]},
                   {"cpu_time_seconds": minima["cpu_time_seconds"]}, {"pids_limit": minima["pids_limit"]}, {k: v for k, v in minima.items() if v is not None}):
        r = arena.ask({"code": "b = bytes(1 << 20)\nfor _ in range(10 ** 5): pass\nprint('was run')", "timeout_seconds": 20 * PATIENCE, **fields})
        assert r.status in ("success", "timeout", "memory_exceeded"), (fields, r)
        assert SUCCESS.fits(r) or r.status != "success"
