"""What a program writes comes back byte for byte, each stream for itself and, when it is asked for, as
one list in the order in which it was written; a flood costs the server nothing that grows with it."""
import base64
import json
import string
from pathlib import Path

import pytest

from harness.cli import glovebox
from harness.reply import Reply

FLAGS = ["--output-bytes", "64K"]
ROOMY = {"timeout_seconds": 30, "memory_limit_mb": 128, "cpu_limit": 1}


def run(server, code, **fields):
    return server.execute(code, **{**ROOMY, "interleaved": True, **fields})


def chunks(reply):
    """(stream, bytes) in order."""
    list_ = reply["interleaved"]
    for c in list_["chunks"]:
        exact = base64.b64decode(c["base64"]) if "base64" in c else c["text"].encode()
        assert len(exact) == c["bytes"] and c["bytes"] + c["dropped"] > 0, c
        assert 0 <= c["ms"] <= reply["execution_time_ms"] + 100, (c, reply["execution_time_ms"])
    assert [c["ms"] for c in list_["chunks"]] == sorted(c["ms"] for c in list_["chunks"])
    return [(c["stream"], base64.b64decode(c["base64"]) if "base64" in c else c["text"].encode()) for c in list_["chunks"]]


def joined(reply, stream):
    return b"".join(data for name, data in chunks(reply) if name == stream)


@pytest.mark.parametrize("text", [
    "\x1b[1;31mred\x1b[0m\x1b]0;title\x07", "50%\r100%\r\n", "a\bb\tc\vd\fe", "\x1b[2J\x1b[H", "\x00\x01\x7f", "\r", "\n\n", " x "])
def test_control_sequences_come_back_untouched(server, text):
    r = run(server, f"import os; os.write(1, {text.encode()!r}); os.write(2, {text.encode()!r})")
    assert r["stdout"] == r["stderr"] == text
    assert joined(r, "stdout") == joined(r, "stderr") == text.encode()


def test_both_streams_come_in_the_order_in_which_they_were_written(server):
    """Each waits until the one before has been read: the pipe is empty then."""
    r = run(server, """
import array, fcntl, os, termios
def put(fd, data):
    os.write(fd, data)
    left = array.array('i', [1])
    while left[0]:
        fcntl.ioctl(fd, termios.FIONREAD, left)
for i in range(20):
    put(1 + i % 3 % 2, b'%d;' % i)
""")
    assert r["stderr"] == "".join(f"{i};" for i in range(20) if i % 3 % 2)
    told = chunks(r)
    assert b"".join(data for _, data in told) == b"".join(b"%d;" % i for i in range(20))


def test_times_are_those_of_the_writing_since_the_release(server):
    # Not by print(), which writes a text and its newline apart: they may be read apart.
    r = run(server, "import os, time\nos.write(1, b'a')\ntime.sleep(0.4)\nos.write(1, b'b')\ntime.sleep(0.4)\nos.write(1, b'c')")
    a, b, c = (chunk["ms"] for chunk in r["interleaved"]["chunks"])
    assert a < 350 and b - a >= 395 and c - b >= 395, (a, b, c)
    assert c <= r["execution_time_ms"] + 50


def test_without_asking_there_is_no_list(server):
    assert run(server, "print(1)", interleaved=False)["interleaved"] is None
    assert run(server, "pass")["interleaved"] == {"chunks": [], "chunks_omitted": 0, "bytes_omitted": 0}


def test_bytes_that_are_no_text_are_exact_in_the_list(server):
    r = run(server, "import os\nos.write(1, b'a\\xff')\nos.write(2, 'é'.encode()[:1])")
    assert joined(r, "stdout") == b"a\xff" and joined(r, "stderr") == b"\xc3"


def test_what_was_dropped_of_a_stream_is_dropped_in_the_list_and_counted(server):
    r = run(server, "import os\nfor i in range(300): os.write(1, b'%09d\\n' % i * 100)\nos.write(2, b'end')")
    assert r.written("stdout") == 300000 and r.dropped("stdout") == 300000 - (64 << 10)
    assert r["interleaved"]["chunks_omitted"] == 0
    assert joined(r, "stdout") == r.raw("stdout") and joined(r, "stderr") == b"end"
    assert sum(c["dropped"] for c in r["interleaved"]["chunks"]) == r.dropped("stdout")


@pytest.mark.parametrize("most", [1, 2, 1000, 65536])
def test_a_request_says_how_much_is_kept_of_each_stream(server, most):
    code = "import os, string\nos.write(1, string.ascii_letters.encode() * 2000)\nos.write(2, b'e')"
    r = server.execute(code, output_bytes=most, interleaved=True)
    whole = (string.ascii_letters * 2000).encode()
    head, tail = whole[:most - most // 2], whole[len(whole) - most // 2:]
    assert (r.raw("stdout"), r.dropped("stdout")) == (head + tail, len(whole) - most) and r["stderr"] == "e", r
    assert r["output"]["stdout"]["head_bytes"] == len(head) and r["limits"]["output_bytes"] == most
    assert joined(r, "stdout") == r.raw("stdout")
    again = server.execute(code)
    assert (again["limits"]["output_bytes"], again.dropped("stdout")) == (64 << 10, len(whole) - (64 << 10))


def test_the_compilers_output_is_bounded_by_the_request_too(server):
    r = server.execute("#error " + "x" * 5000, language="c", timeout_seconds=30, output_bytes=100)
    assert r["cause"] == "compile" and len(r["compile"]["stderr"]) == 100, r


def test_run_json_has_as_much_of_each_stream_as_is_asked_for():
    done = glovebox("run", "--json", "--output-bytes", "1K", "-", input="print('x' * 5000, end='')")
    reply = Reply(json.loads(done.stdout)).check()
    assert (reply.dropped("stdout"), reply["limits"]["output_bytes"]) == (5000 - 1024, 1024)
    done = glovebox("run", "--json", "--output-bytes", "2M", "-", input="")
    assert done.returncode == 125 and b"output_bytes: 2097152; 1048576 are allowed here (output-bytes)" in done.stderr, done
    done = glovebox("run", "--output-bytes", "1K", "-", input="")
    assert done.returncode == 125 and b"need --json" in done.stderr, done


def test_a_flood_of_chunks_costs_a_bounded_list(server):
    r = run(server, "import os\nwhile 1: os.write(1, b'x'); os.write(2, b'y')", timeout_seconds=2)
    list_ = r["interleaved"]
    assert len(list_["chunks"]) <= 1024
    kept = sum(c["bytes"] + c["dropped"] for c in list_["chunks"])
    assert kept + list_["bytes_omitted"] == r.written("stdout") + r.written("stderr")


def test_a_flood_costs_flat_memory(server):
    """Ten times the output, the same peak of the process that reads it."""
    def peak():
        lines = Path(f"/proc/{server.front}/status").read_text().splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM:"))

    flood = "import os\nfor _ in range({}): os.write(1, bytes(1 << 20)); os.write(2, bytes(1 << 20))"
    for interleaved in False, True:
        for _ in range(3):
            assert run(server, flood.format(20), interleaved=interleaved)["status"] == "success"
        before = peak()
        r = run(server, flood.format(200), interleaved=interleaved)
        assert r.written("stdout") == r.written("stderr") == 200 << 20
        assert peak() - before < 2 << 20, (before, peak())
