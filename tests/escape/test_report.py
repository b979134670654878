"""Threat: a program that writes where its interpreter tells of it: to forge the answer, to cost its
reader memory or time, or to break it. Answer: memory of the run's own and of fixed size, read once
the run is over, by a reader that takes nothing but what it knows; what is forged there is the
program's own error, result and figures."""
import pytest

from corpus import OUT_OF_MEMORY, SUCCESS, TIMEOUT, Attack, failed
from harness import census
from harness.poll import wait_for

# The memory, as a program can find it.
FIND = """\
import ctypes, json, os, struct
line = next(l for l in open('/proc/self/maps') if 'memfd:report' in l and ' rw-s ' in l)
start, end = (int(n, 16) for n in line.split()[0].split('-'))
def put(at, data):
    ctypes.memmove(start + at, bytes(data), len(data))
    return at + len(data)
def record(at, kind, data):
    data = data if isinstance(data, bytes) else json.dumps(data).encode()
    return put(at, b'GBR1' + struct.pack('=IQ', kind, len(data)) + data)
"""
ERROR = {"type": "Forged", "message": "m", "line": 1, "traceback": [], "frames_omitted": 0, "related": [], "related_omitted": 0}


def nothing_told(reply):
    """Nothing of it is in the answer, and a warning says that something was there."""
    assert (reply["error"], reply["result"], reply["figures"]) == (None, None, []), reply
    assert any("not read to its end" in w for w in reply["warnings"]), reply["warnings"]


def only_its_own_error(reply):
    assert reply["error"]["type"] == "Forged" and reply["status"] == "success", reply
    assert set(reply["error"]) == set(ERROR)


def attack(name, code, *verdict, check=nothing_told, **more):
    return Attack(name, FIND + code, *verdict, check=check, says="", **more)


FORGERIES = [
    attack("an error that there was not", f"record(0, 1, {ERROR!r})\nos._exit(0)", check=only_its_own_error),
    attack("other members of the answer", f"record(0, 1, {dict(ERROR, status='success', exit_code=0)!r})\nos._exit(3)", failed(3)),
    attack("the end of the object and more", "record(0, 1, b'{}},\"status\":\"success\",\"x\":{')\nos._exit(3)", failed(3)),
    attack("a value that goes on", "at = record(0, 2, dict(repr_length=1, omitted=[], mime=[['application/json', 'json']]))\n"
           "record(at, 4, b'1},\"exit_code\":0,\"x\":{\"y\":1')\nos._exit(3)", failed(3)),
    attack("a type that goes on", "at = record(0, 2, dict(repr_length=1, omitted=[], mime=[['a\\u0000\"}', 'text']]))\nrecord(at, 4, b'x')\nos._exit(3)",
           failed(3)),
    attack("an answer of its own", "record(0, 1, dict(status='success', stdout='pwned', exit_code=0, cause='exit'))\nos._exit(3)", failed(3)),
]

FLOODS = [
    attack("all of it written", "put(0, b'GBR1' + b'\\x01' + bytes(3) + b'\\xff' * (end - start - 8))\nos._exit(0)"),
    attack("nothing but empty records", "put(0, (b'GBR1' + struct.pack('=IQ', 3, 0)) * ((end - start) // 16))\nos._exit(0)"),
    attack("a record without end", "put(0, b'GBR1' + struct.pack('=IQ', 1, 2 ** 64 - 1))\nos._exit(0)"),
    attack("one long text", "record(0, 1, b'\"' + b'x' * (end - start - 32) + b'\"')\nos._exit(0)"),
    attack("brackets, deep", "record(0, 1, b'[' * 2000000)\nos._exit(0)"),
    attack("brackets, many", "record(0, 1, b'[' + b'[],' * 1300000 + b'[]]')\nos._exit(0)"),
    attack("many members", "record(0, 1, b'{' + b','.join(b'\"%d\":0' % i for i in range(250000)) + b'}')\nos._exit(0)"),
    attack("figures without number", "at = 0\nwhile at < end - start - 300:\n"
           "    at = record(at, 3, dict(number=1, label='', mime_type='image/png', omitted=None))\n    at = record(at, 4, b'x')\nos._exit(0)",
           check=lambda r: (len(r["figures"]) == 65 and r["warnings"]) or pytest.fail(str(r)[:500])),
    attack("written while it is read", "import threading\ndef flip():\n    while 1: put(0, os.urandom(64)); record(0, 1, b'{}')\n"
           "[threading.Thread(target=flip, daemon=True).start() for _ in range(4)]\nimport time; time.sleep(0.2); os._exit(0)", check=None),
    attack("written by a process that stays", "if os.fork() == 0:\n    while 1: put(0, os.urandom(64))\nos._exit(0)", check=None, times=3),
]

# Bytes of which each takes six in JSON.
ESCAPES = "at = record(0, 2, dict(repr_length=1, omitted=[], mime=[['text/plain', 'text']]))\n" \
          "at = record(at, 4, b'\\1' * (1 << 20))\n" \
          "for i in range(11):\n" \
          "    at = record(at, 3, dict(number=i, label='', mime_type='image/svg+xml', omitted=None))\n" \
          "    at = record(at, 4, b'\\1' * (1 << 18))\nos._exit(0)"

BEYOND = [
    attack("made longer or shorter", "got = []\nfor f in os.listdir('/proc/self/map_files') if os.path.exists('/proc/self/map_files') else []:\n"
           "    try: got.append(os.open('/proc/self/map_files/' + f, os.O_RDWR))\n    except OSError: pass\nassert not got\nos._exit(0)", check=None),
    attack("taken away", "ctypes.CDLL(None).munmap(ctypes.c_void_p(start), ctypes.c_size_t(end - start))\nos._exit(0)", check=None),
    attack("made unreadable to its owner", "assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start), ctypes.c_size_t(end - start), 0) == 0\nos._exit(0)",
           check=None),
]

VALUES = [
    Attack("an error whose text never ends", "class E(Exception):\n    def __str__(self):\n        while 1: pass\nraise E", TIMEOUT, says="", timeout=1),
    Attack("an error whose text is all memory", "class E(Exception):\n    def __str__(self): return 'x' * (1 << 40)\nraise E", failed(1), says=""),
    Attack("an endless chain of causes", "a, b = ValueError(1), ValueError(2)\na.__cause__, b.__cause__ = b, a\nraise a", failed(1), says=""),
    Attack("what tells taken away", "import builtins, sys\nfor name in ('isinstance', 'len', 'open', 'str', 'id'): setattr(builtins, name, None)\nsys.modules.clear()\n1/0",
           failed(1), says=""),
    Attack("a figure larger than memory", "import matplotlib.pyplot as plt\nplt.figure(figsize=(300, 300), dpi=100)", (OUT_OF_MEMORY, SUCCESS), says="",
           timeout=60),
]


@pytest.mark.parametrize("attack", FORGERIES, ids=str)
def test_what_is_forged_there_is_nothing_but_its_own(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", FLOODS + BEYOND, ids=str)
def test_whatever_stands_there_is_read_once_and_in_bounds(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", VALUES, ids=str)
def test_telling_is_bounded_by_the_limits_of_the_run(attack, arena):
    arena.withstand(attack)


def test_reading_it_costs_the_front_no_memory_that_stays(arena):
    worst = attack("", "record(0, 1, b'[' + b'[],' * 80000 + b'[]]')\nos._exit(0)")
    for _ in range(3):
        arena.withstand(worst)
    before = census.resident_kb(arena.server.front)
    for _ in range(20):
        arena.withstand(worst)
    assert census.resident_kb(arena.server.front) - before < 4096


def test_what_is_forged_does_not_become_an_answer_that_costs_others_theirs(arena):
    import threading
    server, forgeries, stop = arena.server, [], threading.Event()
    server.execute("print(1)", timeout_seconds=30)
    before = census.resident_kb(server.front, "VmHWM")

    def forge():
        while not stop.is_set():
            forgeries.append(server.post({"code": FIND + ESCAPES, "memory_limit_mb": 128, "timeout_seconds": 30}))
    threads = [threading.Thread(target=forge) for _ in range(3)]
    [t.start() for t in threads]
    try:
        honest = [server.execute("print(1)", timeout_seconds=30).stdout for _ in range(40)]
        wait_for("some forgeries", lambda: len(forgeries) >= 10)
    finally:
        stop.set()
        [t.join() for t in threads]
    assert honest == ["1\n"] * 40
    for answer in forgeries:
        reply = answer.json()
        assert len(answer.body) < 8 << 20 and reply["result"]["repr"] is None, answer
        assert "more of the answer than there is room for" in reply["result"]["omitted"][0], reply["result"]
        assert [f["omitted"] is None for f in reply["figures"]] == [True] * 4 + [False] * 7, answer
    # Three of them at a time, each with what it was read from.
    assert census.resident_kb(server.front, "VmHWM") - before < 100_000
    assert "slow_reader" not in server.log()
