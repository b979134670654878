"""Threat: memory that outlives its run, or that the limit does not see. Answer: namespaces of the cell's
own, a filter in front of what needs none of it, and the control group for the rest."""
import pytest

from corpus import OUT_OF_MEMORY, SUCCESS, TIMEOUT, Attack, all_refused, failed, killed_by
from harness.background import Background
from harness.poll import wait_for

LEAVE = [
    Attack("System V segments, queues and sets", "print(sc(29, 0x47, 8 << 20, 0o1666), sc(68, 0x48, 0o1666), sc(64, 0x49, 250, 0o1600))\n"
           "print(sc(29, 0x47, 4096, 0), sc(68, 0x48, 0), sc(64, 0x49, 1, 0))", calls=True, check=all_refused, times=2),
    Attack("POSIX queues", "print(*[sc(240, b'q%d' % n, 0o102, 0o600, None) for n in range(5)])\n"
           "print(os.path.exists('/dev/mqueue/q0'))", calls=True, says="ENOSYS " * 4 + "ENOSYS\nFalse\n", times=2),
    Attack("keys", "print(*[sc(248, b'user', b'k', b'secret', 6, r) for r in (-1, -2, -3, -4, -5)], sc(249, b'user', b'k', 0, -3),\n"
           "  sc(250, 1, b'shared'), sc(250, 0, -4, 1), sc(250, 0, -3, 1), sc(250, 11, -3, 0, 0))", calls=True, check=all_refused, times=2),
    Attack("files in shared memory", "import os\nassert os.listdir('/dev/shm') == []\nfrom multiprocessing import shared_memory as s\n"
           "open('/dev/shm/psm_left', 'wb').write(b'x' * (8 << 20)); print('made')", says="made\n", times=3),
    Attack("semaphores", "import multiprocessing as m, os\nk = [m.Semaphore(1) for _ in range(50)]; m.Lock(); print(os.listdir('/dev/shm'))",
           (SUCCESS, failed(1)), times=2),
]

BEYOND = [
    Attack("memory files", "import os\nk = []\nwhile 1:\n  f = os.memfd_create('m')\n"
           "  for _ in range(8): os.write(f, b'x' * (1 << 20))\n  k.append(f)", OUT_OF_MEMORY, memory=64, timeout=60),
    Attack("one memory file over the file size limit", "import os\nf = os.memfd_create('m')\nwhile 1: os.write(f, b'x' * (8 << 20))",
           (OUT_OF_MEMORY, failed(1), killed_by("SIGXFSZ")), memory=64, timeout=60),
    Attack("memory files that were passed away", "import os, socket\na, b = socket.socketpair()\nwhile 1:\n  f = os.memfd_create('m'); os.write(f, b'x' * (4 << 20))\n"
           "  socket.send_fds(a, [b'x'], [f]); os.close(f)", OUT_OF_MEMORY, memory=64, timeout=60),
    Attack("secret memory", "print(sc(447, 0))", calls=True, check=all_refused),
    Attack("huge pages of the host's pool", "import mmap\nfor f in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):\n  for size in (0, 21 << 26, 30 << 26):\n"
           "    try: m = mmap.mmap(-1, 1 << 30, flags=f | mmap.MAP_ANONYMOUS | 0x40000 | size); m[0] = 1; print('GOT')\n"
           "    except OSError as e: print(e.errno)", says="12\n" * 6),
    Attack("memory files of huge pages", "import os\nfor f in (0x4, 0x4 | 21 << 26):\n  try: os.memfd_create('m', f); print('GOT')\n  except OSError as e: print(e.errno)",
           says="22\n" * 2),
    Attack("pages that are merged with others'", "import mmap\nm = mmap.mmap(-1, 1 << 20)\ntry: m.madvise(12); print('GOT')\nexcept OSError as e: print(e.errno)\n"
           "import ctypes; print(ctypes.CDLL(None).prctl(67, 1, 0, 0, 0))", says="22\n-1\n"),
    Attack("the page cache of the shared root", "import os\nfor r, d, f in os.walk('/usr'):\n  for x in f:\n"
           "    try: open(os.path.join(r, x), 'rb').read(1 << 24)\n    except OSError: pass\nprint('read')",
           (SUCCESS, TIMEOUT), memory=64, timeout=2),
]


@pytest.mark.parametrize("attack", LEAVE, ids=str)
def test_nothing_in_memory_outlives_its_run(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", BEYOND, ids=str)
def test_no_memory_is_beyond_the_limit(attack, arena):
    arena.withstand(attack)


# ---- Locks on parts of files ----


def lock_kib():
    """Of the kernel's memory, in records of locks, on this whole host."""
    with open("/proc/slabinfo", encoding="ascii") as f:
        for line in f:
            words = line.split()
            if words[0] == "file_lock_cache":
                return int(words[1]) * int(words[3]) >> 10
    raise AssertionError("the kernel does not say what its locks hold")


LOCKS = """\
import fcntl, os, struct
files = [os.open("l%d" % i, os.O_CREAT | os.O_RDWR) for i in range(200)]
at = 1 << 40
while 1:
    for f in files:
        at -= 2
        fcntl.fcntl(f, fcntl.F_SETLK, struct.pack("hhqqi4x", fcntl.F_WRLCK, 0, at, 1, 0))
"""


def test_locks_on_parts_of_files_go_with_their_run(arena):
    """The kernel charges them to nobody (SECURITY.md): CPU and time are what bounds them."""
    before = lock_kib()
    attack = Background(arena.run, LOCKS, timeout_seconds=1, cpu_limit=0.5)
    arena.beside(attack)
    assert attack.result().status == "timeout"
    wait_for("the locks to go", lambda: lock_kib() - before < 512)
