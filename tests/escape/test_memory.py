"""Threat: exhausting the host's memory. Answer: the cgroup's ceiling, swap off."""
import re

import pytest

from corpus import OUT_OF_MEMORY, SUCCESS, Attack, failed, killed_by

LIMIT = 64
MAP = ("m = L.mmap; m.restype = ctypes.c_void_p\n"
       "m.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n")


def near_the_limit(reply):
    """The peak is told, close to the limit; Reply.check() has that it is not above."""
    assert reply.memory_used_mb > 0.5 * LIMIT or reply["usage"]["oom_kills"] == 0, reply


def eater(name, code, **more):
    return Attack(name, code, **{"verdict": OUT_OF_MEMORY, "memory": LIMIT, "timeout": 60, **more})


EATERS = [
    eater("touches everything", "b = []\nwhile 1: b.append(bytearray(b'x' * (1 << 20)))", check=near_the_limit),
    eater("doubles a string", "s = b'a' * 1000\nk = []\nwhile 1: s = s + s; k.append(s)"),
    eater("doubles one string only", "s = 'a'\nwhile 1: s += s"),
    eater("shared anonymous maps", "import mmap\nm = []\nwhile 1:\n  x = mmap.mmap(-1, 8 << 20)\n"
          "  x.write(b'z' * (8 << 20)); m.append(x)"),
    eater("many children, each below the limit",
          "import os, time\nfor _ in range(8):\n  if os.fork() == 0:\n"
          "    b = bytearray(b'x' * (16 << 20)); time.sleep(30); os._exit(0)\nfor _ in range(8): os.wait()"),
    eater("asks for huge pages, touches every page",
          "import mmap\nm = mmap.mmap(-1, 1 << 28, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nm.madvise(14)\n"
          "for i in range(0, 1 << 28, 4096): m[i] = 1"),
    # 2 MiB each, or 256 in all, where the host gives them; else next to nothing.
    eater("asks for huge pages, touches each once",
          "import mmap\nm = mmap.mmap(-1, 1 << 28, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)\nm.madvise(14)\n"
          "for i in range(0, 1 << 28, 2 << 20): m[i] = 1", verdict=(OUT_OF_MEMORY, SUCCESS)),
    # A page of table for 2 MiB touched. Where address space is refused first it exits with 9.
    eater("page tables", MAP + "while 1:\n  r = m(None, 64 << 30, 1, 0x4022, -1, 0)\n"
          "  if r in (None, 2 ** 64 - 1): break\n  for i in range(32768): ctypes.c_char.from_address(r + (i << 21)).value\n"
          "raise SystemExit(9)", calls=True, verdict=(OUT_OF_MEMORY, failed(9))),
    eater("files in every writable place",
          "import os\nb = b'a' * 65536\nfs = [os.open(d + '/f', os.O_CREAT | os.O_WRONLY)\n"
          "      for d in ('/workspace', '/tmp', '/dev/shm')]\n"
          "while fs:\n  for f in list(fs):\n    try: os.write(f, b)\n    except OSError: fs.remove(f)\n"
          "k = []\nwhile 1: k.append(bytearray(b'x' * (1 << 20)))"),
    eater("pages kept by pipes",
          "import os, fcntl\nk = []; b = []\ntry:\n  while 1:\n    r, w = os.pipe(); k.append((r, w))\n"
          "    os.set_blocking(w, False)\n    try:\n      while 1: os.write(w, b'x' * 65536)\n"
          "    except BlockingIOError: pass\nexcept OSError: pass\n"
          "while 1: b.append(bytearray(b'x' * (1 << 20)))"),
    eater("a child that eats while its parent waits",
          "import os\nif os.fork() == 0:\n  b = []\n  while 1: b.append(bytearray(b'x' * (1 << 20)))\nos.wait(); print('alive')"),
]

# No attack on the limit, and so no reason to be killed for it.
WITHIN = [
    Attack("one impossible allocation", "bytearray(1 << 46)", failed(1), "", re.compile(r"(?s).*MemoryError\n"),
           check=lambda r: r.memory_used_mb < 64 or pytest.fail(str(r))),
    Attack("reserved address space",
           "import mmap; m = mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000)\n"
           "m[0] = 1; print('fine')", says="fine\n", check=lambda r: r.memory_used_mb < 64 or pytest.fail(str(r))),
    Attack("a flood of mappings", MAP + "n = 0\nwhile m(None, 4096, 1 + (n & 1) * 2, 0x22, -1, 0) not in (None, 2 ** 64 - 1):\n"
           "  n += 1\nprint(60_000 < n < 70_000)", calls=True, says="True\n", timeout=30),
    Attack("locked memory", "b = ctypes.create_string_buffer(32 << 20)\n"
           "print(sc(149, ctypes.c_void_p(ctypes.addressof(b)), 32 << 20), sc(151, 3))", calls=True,
           says=re.compile(r"(EPERM|ENOMEM|EAGAIN) EPERM\n")),
    Attack("recursion on a huge stack",
           "import sys, threading\nsys.setrecursionlimit(10 ** 9); threading.stack_size(1 << 29)\ndef f(): f()\n"
           "t = threading.Thread(target=f); t.start(); t.join()",
           (OUT_OF_MEMORY, killed_by("SIGSEGV"), failed(1)), timeout=30),
]


@pytest.mark.parametrize("attack", EATERS, ids=str)
def test_memory_over_the_limit_ends_the_run_and_nothing_else(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", WITHIN, ids=str)
def test_what_is_no_memory_is_not_counted_as_such(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("limit", [16, 32, 64, 200.5])
def test_the_ceiling_is_where_the_request_put_it(arena, limit):
    r = arena.withstand(eater("", "b = []\nwhile 1: b.append(bytearray(b'x' * (1 << 18)))", memory=limit))
    assert limit * 0.8 <= r.memory_used_mb <= limit


def test_the_least_memory_is_a_clean_verdict(arena):
    least = arena.server.request("GET", "/limits").json()["minima"]["memory_limit_mb"]
    arena.withstand(eater("", "b = b'x' * (8 << 20)", memory=least))


def test_memory_of_a_run_that_is_over_counts_for_nobody(arena):
    arena.withstand(eater("", EATERS[0].code, memory=200))
    for _ in range(3):
        assert arena.run("print(1)").memory_used_mb < 16


def test_a_neighbour_is_not_slowed_to_death_by_a_memory_eater(arena):
    """Several at once: the neighbour of withstand() has no more than its share of what is left."""
    arena.withstand(eater("", EATERS[0].code, at_once=3))
