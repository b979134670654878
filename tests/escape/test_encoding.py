"""Threat: output that breaks its readers: the JSON around it, a decoder, a terminal, a log. Answer: bytes counted by
length, one strict decoder, an encoder that escapes; the exact bytes beside the text where they are no text."""
import random

import pytest

from corpus import Attack


def text(name, value):
    """It is UTF-8: it comes back as it was printed, on both streams, and no base64 beside it."""
    return Attack(name, f"import os\nb = {value!r}.encode()\nfor fd in (1, 2):\n  k = b\n  while k: k = k[os.write(fd, k):]",
                  says=value, complains=value, check=lambda r: exact(value.encode())(r))


def exact(raw):
    def check(reply):
        for stream in ("stdout", "stderr"):
            out = reply["output"][stream]
            assert reply.raw(stream) == raw and out["bytes"] == len(raw), out
            assert ("base64" in out) == (raw.decode("utf-8", "replace").encode() != raw), out
    return check


def binary(name, value):
    """It is no UTF-8: each maximal piece that cannot be is one U+FFFD, as Python has it, and the bytes lie beside it."""
    shown = value.decode("utf-8", "replace")
    return Attack(name, f"import os\nb = {value!r}\nfor fd in (1, 2):\n  k = b\n  while k: k = k[os.write(fd, k):]", says=shown, complains=shown, check=exact(value))


TEXTS = [
    text("NULs", "a\0b\0\0"),
    text("nothing but a NUL", "\0"),
    text("all control characters", "".join(map(chr, range(32))) + "\x7f" + "".join(map(chr, range(0x80, 0xa0)))),
    text("commands for a terminal", "\x1b[2J\x1b]0;pwn\x07\x1bP+q544e\x1b\\\x1b[5n\x9b31m\r\n\x08\x1b]52;c;cHdu\x07"),
    text("marks that turn or hide text", "\ufeff\u202a\u202e\u2066\u2069\u200b\u200d\u2028\u2029\u0085\u00ad\U000e0041"),
    text("the end of a string", "\"}]}\\\\\\\"\\u0022\\"),
    text("the end of a page", "</script><!--<script>&lt;\x00]]>"),
    text("what JavaScript takes for lines", "a\u2028b\u2029c"),
    text("no characters", "\ufffe\uffff\U0001fffe\U0010ffff\ufdd0"),
    text("the replacement itself", "\ufffd\ufffd"),
    text("beyond the first plane", "\U00010000\U0001f600\U0001f1e9\U0001f1ea\U0010fffd"),
    text("marks upon marks", "Z" + "\u0336\u0489\u20e3" * 3000),
    text("a long line without a blank", "\u4e16" * 300_000),
    text("JSON as it would be escaped twice", "{\"a\": \"\\\\ud800\", \"b\": \"\\\\u0000\"}"),
    text("lines of every kind", "a\rb\nc\r\nd\x0be\x0cf\x1cg\x85h\n\n"),
    text("format strings", "%s%n%x {0.__class__} ${PATH} `id` $(id) %(x)s"),
]

BINARIES = [
    binary("every byte", bytes(range(256))),
    binary("every byte, backwards and twice", bytes(range(256))[::-1] * 2),
    binary("surrogates", b"\xed\xa0\x80|\xed\xbf\xbf|\xed\xa0\xbd\xed\xb8\x80"),
    binary("longer than it must be", b"\xc0\xaf\xe0\x80\xaf\xf0\x80\x80\xaf\xc1\xbf\xc0\x80\xf8\x88\x80\x80\x80\xfc\x84\x80\x80\x80\x80"),
    binary("beyond the last plane", b"\xf4\x90\x80\x80\xf5\x80\x80\x80\xff\xfe"),
    binary("ends that never come", b"\xe2\x82|\xf0\x9f\x98|\xc3|\xf0\x9f|\xe2"),
    binary("ends without a start", b"\x80\xbf\x80a\xbf\xc3\xa9\x80"),
    binary("a cut at the very end", "cut \u20ac".encode()[:-1]),
    binary("UTF-16, both ways", "\ufeffhi\u20ac".encode("utf-16-le") + "\ufeffhi\u20ac".encode("utf-16-be")),
    binary("Latin-1", "na\u00efve caf\u00e9 \u00a3".encode("latin-1")),
    binary("one bad byte in much text", b"x" * 200_000 + b"\xff" + "\u20ac".encode() * 1000),
    binary("an archive", bytes.fromhex("1f8b08000000000000034b4c4a06004241c23503000000")),
    # The same bytes in every run of the tests, and so the same verdict.
    *[binary(f"chance {seed}", random.Random(seed).randbytes(5000)) for seed in range(4)],
    binary("chance of few bytes", bytes(random.Random(9).choices(b"\x00a\x80\xbf\xc3\xe2\x82\xac\xed\xa0\xf0\x9f\xf4\x90\xff", k=20_000))),
]

PYTHONS = [
    Attack("its encoding changed", "import sys\nsys.stdout.reconfigure(encoding='utf-16'); print('hi', flush=True); sys.stdout.buffer.write(b'\\x80')",
           says="h\0i\0\n\0\ufffd"),
    Attack("lone surrogates printed", "import sys\nsys.stdout.reconfigure(errors='surrogatepass'); print('\\ud800')", says="\ufffd" * 3 + "\n"),
    Attack("lone surrogates refused", "import sys\nfor f in (sys.stdout, sys.stderr):\n  try: print('\\ud800', file=f)\n"
           "  except UnicodeEncodeError: f.write('no\\n')", says="no\n"),
    Attack("both streams in one character", "import os\nb = '\u20ac'.encode()\nfor x in b:\n  for fd in (1, 2): os.write(fd, bytes([x]))", says="\u20ac",
           complains="\u20ac"),
    Attack("one character by two processes", "import os\nos.write(1, '\u20ac'.encode()[:1])\nif os.fork() == 0: os.write(1, '\u20ac'.encode()[1:]); os._exit(0)\n"
           "os.wait()", says="\u20ac"),
]


@pytest.mark.parametrize("attack", TEXTS, ids=str)
def test_text_comes_back_as_it_was_printed(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", BINARIES, ids=str)
def test_what_is_no_text_is_replaced_in_it_and_exact_beside_it(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", PYTHONS, ids=str)
def test_streams_are_bytes_whatever_the_program_makes_of_them(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("before", range(4))
def test_no_cut_makes_a_character_of_two_halves(arena, before):
    """Over the limit on a stream that is text throughout: what is kept is text, wherever the cut falls."""
    r = arena.withstand(Attack("", f"import os\nb = b'x' * {before} + '\u20ac\U0001f600\u00e9'.encode() * 200_000\nwhile b: b = b[os.write(1, b):]", memory=256,
           timeout=30))
    assert r.dropped("stdout") > 0 and "\ufffd" not in r.stdout and "base64" not in r["output"]["stdout"]
