"""Threat: flooding whoever reads the output. Answer: bounded streams that are read to the end and
counted, what is over is dropped, and the run is ended by its own limits only."""
import re

import pytest

from corpus import TIMEOUT, Attack, shell
from harness import census

OUT = 1 << 20  # output-bytes


def full(*streams):
    """All that may be kept of these streams was, more was written, and nothing came on others."""
    def check(reply):
        for stream in ("stdout", "stderr"):
            if stream in streams:
                assert len(reply.raw(stream)) == OUT and reply.dropped(stream) > 0, reply["output"]
            else:
                assert reply.written(stream) == 0, reply["output"]
    return check


def written(stdout, stderr):
    """So many bytes were written, and counted to the last."""
    def check(reply):
        assert (reply.written("stdout"), reply.written("stderr")) == (stdout, stderr), reply["output"]
    return check


def only(byte):
    """Nothing but this byte, as much as may be kept."""
    def check(reply):
        assert reply.raw("stdout") == byte * OUT, reply["output"]
    return check


def ends_with_its_main(reply):
    assert b"done" in reply.raw("stdout") or reply.dropped("stdout") > 0
    assert reply.wall_s < 30, reply.wall_s


def endless(name, code, *results, **more):
    return Attack(name, code, TIMEOUT, *results, timeout=0.8, **more)


ENDLESS = [
    endless("text for ever", "import sys\nwhile 1: sys.stdout.write('A' * 65536)", check=full("stdout")),
    endless("errors for ever", "import os\nwhile 1: os.write(2, b'E' * 4096)", check=full("stderr")),
    endless("both for ever", "import os\nwhile 1: os.write(1, b'x' * 65536); os.write(2, b'y' * 65536)",
           check=full("stdout", "stderr")),
    endless("both byte by byte", "import os\nwhile 1: os.write(1, b'x'); os.write(2, b'y')",
            re.compile("x+"), re.compile("y+")),
    # Each is six characters of JSON.
    endless("NULs for ever", "import os\nwhile 1: os.write(1, bytes(65536))", check=only(b"\0")),
    endless("a device copied", shell("cat /dev/zero"), check=only(b"\0")),
    # Each is three bytes of text, and base64 beside it.
    endless("bytes that are no text for ever", "import os\nwhile 1: os.write(1, b'\\xff' * 65536)",
           check=only(b"\xff")),
    endless("by many processes", "import os\nfor _ in range(4): os.fork()\nwhile 1: os.write(1, b'z' * 4096)",
           check=full("stdout")),
    endless("nothing but lines", "import os\nwhile 1: os.write(1, b'\\n' * 65536)", check=full("stdout")),
]

FINITE = [
    Attack("one line of 100 MB", "import os\nfor _ in range(100): os.write(1, b'x' * 1_000_000)",
           check=written(100_000_000, 0), timeout=30),
    Attack("both streams full in turn", "import os\ndef put(fd):\n  b = b'o' * 1_000_000\n  while b: b = b[os.write(fd, b):]\n"
           "for _ in range(3): put(1); put(2)", check=written(3_000_000, 3_000_000)),
    Attack("a child that floods after the end", "import os\nif os.fork() == 0:\n  while 1: os.write(1, b'late' * 1000)\n"
           "print('done', flush=True)", check=ends_with_its_main, timeout=60, times=2),
    Attack("splice into the stream", "import os\nr, w = os.pipe(); os.write(w, b'hello')\n"
           "try: os.splice(r, 1, 5); print('GOT')\nexcept OSError as e: print(e.errno)", says="38\n"),
    Attack("output that is never flushed", "import sys, os\nsys.stdout = open(1, 'w', buffering=1 << 20)\n"
           "print('lost'); os._exit(0)", says=""),
    Attack("streams closed and opened anew", "import os\nos.close(1); os.close(2)\n"
           "assert os.open('/dev/null', os.O_WRONLY) == 1\nos.write(1, b'nowhere')", says="", complains=""),
]


@pytest.mark.parametrize("attack", ENDLESS, ids=str)
def test_a_flood_is_bounded_and_ends_at_the_deadline(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", FINITE, ids=str)
def test_much_output_is_counted_and_the_verdict_is_the_programs_own(attack, arena):
    arena.withstand(attack)


def test_single_bytes_cost_the_server_less_than_their_writer(arena):
    """What reads them takes all that is there at once."""
    def used():
        return census.cpu_seconds(arena.server.pid) + census.cpu_seconds(arena.server.front)

    before = used()
    r = arena.withstand(Attack("", "import os\nwhile 1: os.write(1, b'x')", TIMEOUT, re.compile("x+"), timeout=2))
    spent = used() - before
    assert spent * 1000 < r["usage"]["cpu_ms"], (spent, r["usage"])
