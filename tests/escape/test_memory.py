"""Threat: exhausting the host's memory. Answer: the cgroup's ceiling, swap off."""
import pytest

from attacks import sc
from harness.background import Background

LIMIT = 64

EATERS = {
    "touch everything": "b = []\nwhile 1: b.append(bytearray(b'x' * (1 << 20)))",
    "doubling string": "s = b'a' * 1000\nk = []\nwhile 1: s = s + s; k.append(s)",
    "shared anonymous maps": "import mmap\nm = []\nwhile 1:\n  x = mmap.mmap(-1, 8 << 20)\n"
                             "  x.write(b'z' * (8 << 20)); m.append(x)",
    "many children, each below the limit":
        "import os, time\nfor _ in range(8):\n  if os.fork() == 0:\n"
        "    b = bytearray(b'x' * (16 << 20)); time.sleep(30); os._exit(0)\n"
        "for _ in range(8): os.wait()",
    "memfd hoard": "import os\nk = []\nwhile 1:\n  f = os.memfd_create('m')\n"
                   "  for _ in range(8): os.write(f, b'x' * (1 << 20))\n  k.append(f)",
    "huge pages asked for": "import mmap\nm = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | "
                            "mmap.MAP_ANONYMOUS)\nm.madvise(14)\n"
                            "for i in range(0, 1 << 30, 4096): m[i] = 1",
    "page tables": sc("m = L.mmap; m.restype = ctypes.c_void_p\n"
                      "m.argtypes = [ctypes.c_void_p, ctypes.c_size_t] + [ctypes.c_int] * 3 + [ctypes.c_long]\n"
                      "while 1:\n  r = m(None, 64 << 30, 1, 0x4022, -1, 0)\n"
                      "  if r in (None, 2**64 - 1): break\n"
                      "  for i in range(32768): ctypes.c_char.from_address(r + (i << 21)).value\n"
                      "raise SystemExit(9)"),
    "files in every writable place":
        "import os\nb = b'a' * 65536\nfs = [os.open(d + '/f', os.O_CREAT | os.O_WRONLY)\n"
        "      for d in ('/workspace', '/tmp', '/dev/shm')]\n"
        "while fs:\n  for f in list(fs):\n    try: os.write(f, b)\n    except OSError: fs.remove(f)\n"
        "k = []\nwhile 1: k.append(bytearray(b'x' * (1 << 20)))",
    "pages kept by pipes":
        "import os, fcntl\nk = []; b = []\ntry:\n  while 1:\n    r, w = os.pipe(); k.append((r, w))\n"
        "    os.set_blocking(w, False)\n    try:\n      while 1: os.write(w, b'x' * 65536)\n"
        "    except BlockingIOError: pass\nexcept OSError: pass\n"
        "while 1: b.append(bytearray(b'x' * (1 << 20)))",
}


@pytest.mark.parametrize("name", EATERS)
def test_memory_over_the_limit_ends_the_run_and_nothing_else(warm, healthy, name):
    r = healthy(Background(warm.execute, EATERS[name], timeout_seconds=60,
                           memory_limit_mb=LIMIT, cpu_limit=1))
    if name == "page tables" and r.exit_code == 9:
        return  # address space was refused before the tables filled the limit
    assert (r.status, r.exit_code, r.cause) == ("memory_exceeded", 137, "oom_kill"), r
    assert r.memory_used_mb <= LIMIT


@pytest.mark.parametrize("limit", [16, 32, 64, 200.5])
def test_the_ceiling_is_where_the_request_put_it(warm, limit):
    r = warm.execute("b = []\nwhile 1: b.append(bytearray(b'x' * (1 << 18)))",
                     timeout_seconds=60, memory_limit_mb=limit, cpu_limit=1)
    assert r.status == "memory_exceeded"
    assert limit * 0.8 <= r.memory_used_mb <= limit


def test_the_least_memory_is_a_clean_verdict(warm):
    least = warm.request("GET", "/limits").json()["minima"]["memory_limit_mb"]
    r = warm.execute("b = b'x' * (8 << 20)", timeout_seconds=30, memory_limit_mb=least, cpu_limit=1)
    assert r.status == "memory_exceeded"


def test_an_impossible_allocation_is_a_memoryerror_and_no_kill(warm):
    r = warm.run("bytearray(1 << 46)")
    assert (r.status, r.exit_code) == ("error", 1) and "MemoryError" in r.stderr


def test_reserved_address_space_is_not_memory(warm):
    r = warm.run("import mmap; m = mmap.mmap(-1, 4 << 30, flags=mmap.MAP_PRIVATE | "
                 "mmap.MAP_ANONYMOUS | 0x4000); m[0] = 1; print('fine')")
    assert r.stdout == "fine\n" and r.memory_used_mb < 64


def test_page_cache_of_the_shared_root_is_no_reason_to_be_killed(warm):
    r = warm.execute("import os\nfor r, d, f in os.walk('/usr/lib/python3'):\n  for x in f:\n"
                     "    try: open(os.path.join(r, x), 'rb').read()\n    except OSError: pass\n"
                     "print('read')", timeout_seconds=40, memory_limit_mb=64, cpu_limit=1)
    assert r.status in ("success", "timeout")


def test_a_neighbour_is_not_slowed_to_death_by_a_memory_eater(warm):
    attack = Background(warm.execute, EATERS["touch everything"], timeout_seconds=60, cpu_limit=1)
    r = warm.run("print(sum(range(10 ** 5)))")
    assert r.stdout == "4999950000\n"
    assert attack.result().status == "memory_exceeded"


def test_locked_memory_is_refused(warm):
    r = warm.run(sc("b = ctypes.create_string_buffer(32 << 20)\n"
                    "print(sc(149, ctypes.c_void_p(ctypes.addressof(b)), 32 << 20), sc(151, 3))"))
    assert not set(r.stdout.split()) - {"EPERM", "ENOMEM", "ENOSYS", "EAGAIN"}, r.stdout
