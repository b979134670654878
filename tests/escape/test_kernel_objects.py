"""Threat: using up what the kernel counts for a user, for a process or for the whole host. Answer: every
cell has users of its own, few descriptors and signals, a filter in front of the rest, and loopback's
buffers have a ceiling."""
import ctypes
import errno
import os
import re
import resource
import time

import pytest

from corpus import OUT_OF_MEMORY, PRELUDE, SUCCESS, Attack, all_refused, killed_by
from harness import census
from harness.background import Background
from harness.poll import wait_for

NOFILE, SIGPENDING = 256, 256

COUNTED = [
    Attack("descriptors", "import os\nn = 0\ntry:\n  while 1: os.open('/dev/null', 0); n += 1\nexcept OSError as e: print(n, e.errno)",
           says=f"{NOFILE - 3} 24\n"),
    Attack("descriptors of many processes", "import os, time\nfor _ in range(31):\n  if os.fork() == 0: break\n"
           "n = 0\ntry:\n  while 1: os.open('/dev/null', 0); n += 1\nexcept OSError: os.write(1, b'%d\\n' % n)\ntime.sleep(.3)",
           says=re.compile(r"(253\n){1,32}")),
    Attack("pipes, filled", "import os\nk = []; n = 0\ntry:\n  while 1:\n    r, w = os.pipe(); k.append(r); os.set_blocking(w, False)\n"
           "    try:\n      while 1: n += os.write(w, b'x' * 65536)\n    except BlockingIOError: pass\n"
           "except OSError as e: print(len(k), n >> 10, e.errno)", says=re.compile(r"126 \d+ 24\n"),
           check=lambda r: r.memory_used_mb > 8 or pytest.fail(f"uncounted: {r}")),
    Attack("pipes, made larger", "import os, fcntl\nr, w = os.pipe()\nfor fd in (r, w, 1, 2):\n"
           "  try: fcntl.fcntl(fd, 1031, 1 << 20); print('GOT')\n  except PermissionError: print('no')", says="no\n" * 4),
    Attack("descriptors on their way", "import socket\nk = []; n = 0\ntry:\n  while 1:\n    c, d = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)\n"
           "    c.setblocking(False); k.append((c, d))\n    try:\n      while 1: socket.send_fds(c, [b'x'], [c.fileno()] * 200); n += 200\n"
           "    except BlockingIOError: pass\nexcept OSError as e: print(n <= 600, e.errno)", says="True 109\n"),
    Attack("timers", "t = ctypes.c_int(); n = 0\nwhile n < 10 ** 6 and L.syscall(222, 1, None, ctypes.byref(t)) == 0: n += 1\n"
           "print(n, errno.errorcode[ctypes.get_errno()])", calls=True, says=f"{SIGPENDING} EAGAIN\n"),
    Attack("queued signals", "import signal\nsignal.pthread_sigmask(signal.SIG_BLOCK, [40]); n = 0\n"
           "while n < 10 ** 6 and L.sigqueue(os.getpid(), 40, 0) == 0: n += 1\nprint(n, errno.errorcode[ctypes.get_errno()])",
           calls=True, says=f"{SIGPENDING} EAGAIN\n"),
    Attack("epoll in epoll", "import select\ne = [select.epoll() for _ in range(200)]\ntry:\n"
           "  for i in range(199): e[i].register(e[i + 1].fileno())\nexcept OSError as x: print(i < 10, x.errno)", says="True 40\n"),
    Attack("watches", "fds = [L.inotify_init1(0) for _ in range(100)]\nfor i in range(400): os.close(os.open('f%d' % i, os.O_CREAT))\n"
           "n = 0\nfor f in fds:\n  for i in range(400):\n    if L.inotify_add_watch(f, b'f%d' % i, 0xfff) < 0: break\n    n += 1\nprint(n)",
           says=re.compile(r"\d{4,}\n"), calls=True, timeout=30,
           check=lambda r: r.memory_used_mb * 2**20 > 80 * int(r.stdout) or pytest.fail(f"uncounted: {r}")),
    Attack("events that nobody reads", "fds = [L.inotify_init1(0) for _ in range(100)]\nfor f in fds: L.inotify_add_watch(f, b'.', 0xfff)\n"
           "while 1: n = 'n' * 200; os.close(os.open(n, os.O_CREAT)); os.unlink(n)", OUT_OF_MEMORY, calls=True, memory=64, timeout=60),
    Attack("userfaultfd", "print(sc(323, 0), sc(323, 1))\ntry: print('GOT', os.open('/dev/userfaultfd', 2))\nexcept OSError: pass", check=all_refused, calls=True),
    Attack("asynchronous input and output", "c = ctypes.c_ulong()\nprint(sc(206, 65536, ctypes.byref(c)), sc(425, 4096, ctypes.create_string_buffer(120)))",
           check=all_refused, calls=True),
    Attack("terminals", "import os\ntry: print('GOT', os.openpty())\nexcept OSError: print('no')", says="no\n"),
]

RAISE = ("import resource as R\nfor n in ('NOFILE', 'NPROC', 'FSIZE', 'CORE', 'MEMLOCK', 'SIGPENDING', 'MSGQUEUE', 'NICE', 'RTPRIO', 'STACK'):\n"
         "  k = getattr(R, 'RLIMIT_' + n, None)\n  if k is None: continue\n  s, h = R.getrlimit(k)\n"
         "  for to in ((-1, -1), (s, h + 1)):\n    try: {how}; print('GOT', n)\n    except (ValueError, OSError): pass\n"
         "  if R.getrlimit(k) != (s, h): print('CHANGED', n)\nprint('end')")

RAISED = [
    Attack("by itself", RAISE.format(how="R.setrlimit(k, to)"), says="end\n"),
    Attack("by a call for any process", RAISE.format(how="R.prlimit(0, k, to)"), says="end\n"),
    Attack("of another process", "import resource as R, os\nfor p in (1, 4):\n"
           "  try: print('GOT', R.prlimit(p, R.RLIMIT_NOFILE, (1, 1)))\n  except OSError: pass\nprint('end')", says="end\n"),
    # 0 would start a core_pattern that is a pipe; 1 does not.
    Attack("the core limit, lowered", "import resource as R\nfor f in (R.setrlimit, lambda k, v: R.prlimit(0, k, v)):\n"
           "  try: f(R.RLIMIT_CORE, (0, 0)); print('GOT')\n  except (ValueError, OSError): print('no')\nimport os; os.abort()",
           killed_by("SIGABRT"), "no\nno\n"),
]


@pytest.mark.parametrize("attack", COUNTED, ids=str)
def test_what_the_kernel_counts_is_bounded_for_each_run(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", RAISED, ids=str)
def test_limits_cannot_be_raised(attack, arena):
    arena.withstand(attack)


def test_a_neighbour_gets_whole_pipes_beside_those_who_fill_theirs(arena):
    """A user's pipes become a page each once they hold 64 MiB in all."""
    hoard = COUNTED[2].code + "\nimport time; time.sleep(.5)"
    arena.withstand(Attack("", hoard, memory=200, at_once=3),
                    ("import os\nr, w = os.pipe(); os.set_blocking(w, False); print(os.write(w, b'x' * 100_000))", "65536\n"))


# ---- inotify ----

# As many instances as there are for it.
WATCHERS = PRELUDE + ("n = 0\nwhile L.inotify_init1(0) >= 0: n += 1\n"
                      "print(errno.errorcode[ctypes.get_errno()], n, flush=True)\n")


@pytest.fixture
def many_files():
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, before)


def watchers_of_the_host():
    """How many inotify instances this process, and so the host's root, can still have."""
    libc, fds = ctypes.CDLL(None, use_errno=True), []
    try:
        while (fd := libc.inotify_init1(0)) >= 0:
            fds.append(fd)
        assert ctypes.get_errno() == errno.EMFILE
        return len(fds)
    finally:
        for fd in fds:
            os.close(fd)


def test_inotify_instances_of_one_cell_are_nobody_elses(arena, many_files):
    server = arena.server
    before = watchers_of_the_host()
    holder = Background(arena.run, WATCHERS + "time.sleep(60)", timeout_seconds=90)
    (pid,) = wait_for("the holder", server.programs)
    wait_for("it to hold all it can get", lambda: is_asleep(pid) and census.descriptors(pid) > 100)
    during, other = watchers_of_the_host(), arena.run(WATCHERS)
    server.kill_programs()
    held = holder.result()
    # Others on this host may come and go: a holder's hundred would be seen.
    assert abs(during - before) < 50
    assert other.stdout.split()[0] == "EMFILE" and other.stdout == held.stdout
    assert int(held.stdout.split()[1]) >= 100


def is_asleep(pid):
    with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
        return "nanosleep" in f.read()


# ---- Loopback ----


def pages_in_buffers(name):
    """Pages in the buffers of this protocol, of all network namespaces of this host."""
    with open("/proc/net/sockstat", encoding="ascii") as f:
        (line,) = [x.split() for x in f if x.startswith(name + ":")]
    return int(line[line.index("mem") + 1])


FLOODS = {
    # Every connection that descriptors allow, and as much on its way in each as it takes.
    "TCP": """\
import os, socket, time
s = socket.create_server(('127.0.0.1', 0), backlog=128)
pairs = []
try:
    while 1:
        c = socket.create_connection(s.getsockname())
        c.setblocking(False)
        c.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 30)
        pairs.append((c, s.accept()[0]))
except OSError: pass
end = time.monotonic() + 1.5
while time.monotonic() < end:
    for c, _ in pairs:
        try: c.send(bytes(1 << 20))
        except OSError: pass
print(len(pairs) > 50)
""",
    "UDP": """\
import os, socket, time
for _ in range(7):
    if os.fork() == 0: break
main, k = os.getpid() == 2, []
try:
    while 1:
        s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        s.bind(('127.0.0.1', 0))
        s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 30)
        k.append(s)
        for _ in range(10): k[0].sendto(bytes(60_000), socket.MSG_DONTWAIT, s.getsockname())
except OSError: pass
time.sleep(.3)
if main: print(len(k) > 50)
""",
}


STANDING = ("import socket\nls = [socket.create_server(({host!r}, 0), family=socket.{family}, backlog=4096) for _ in range(20)]\n"
            "while 1:\n  for l in ls:\n    c = socket.socket(socket.{family}); c.setblocking(False); c.connect_ex(l.getsockname()); c.close()")

# The kernel makes their sockets where it knows of no process, and charges them to nobody.
CONNECTIONS = [
    Attack("IPv4", STANDING.format(host="127.0.0.1", family="AF_INET"), OUT_OF_MEMORY, memory=32, timeout=60),
    Attack("IPv6", STANDING.format(host="::1", family="AF_INET6"), OUT_OF_MEMORY, memory=32, timeout=60),
    Attack("by many processes", "import os\nfor _ in range(3): os.fork()\n" + STANDING.format(host="127.0.0.1", family="AF_INET"),
           OUT_OF_MEMORY, memory=64, timeout=60),
    Attack("Unix", "import socket\nls = [socket.socket(socket.AF_UNIX) for _ in range(20)]\n"
           "for i, l in enumerate(ls): l.bind('\\0%d' % i); l.listen(4096)\nwhile 1:\n  for i in range(20):\n    c = socket.socket(socket.AF_UNIX); c.setblocking(False)\n"
           "    try: c.connect('\\0%d' % i)\n    except BlockingIOError: pass\n    c.close()", OUT_OF_MEMORY, memory=32, timeout=60),
]


@pytest.mark.parametrize("attack", CONNECTIONS, ids=str)
def test_connections_that_nobody_accepts_count_as_memory(attack, arena):
    arena.withstand(attack)


# The kernel counts up to a MiB apart on each CPU, in either direction (SK_MEMORY_PCPU_RESERVE).
UNCERTAIN_PAGES = 2 * (1 << 20) // resource.getpagesize() * os.cpu_count()


@pytest.mark.parametrize("name", FLOODS)
def test_what_is_on_its_way_over_loopback_is_bounded(arena, name):
    """It is not in memory_used_mb of control groups v1, but it is the host's memory."""
    before, limit = pages_in_buffers(name), 64 << 20
    attack = Background(arena.run, FLOODS[name], timeout_seconds=20, memory_limit_mb=limit >> 20)
    most = 0
    while attack.is_alive():
        most = max(most, pages_in_buffers(name) - before)
        attack.join(0.05)
    r = attack.result()
    assert r.status == "memory_exceeded" or r.stdout == "True\n", r
    assert most * resource.getpagesize() <= limit, f"{most} pages"
    wait_for("the buffers to go", lambda: pages_in_buffers(name) - before < UNCERTAIN_PAGES)


# ---- Waiting ----


@pytest.mark.parametrize("code", [
    "time.sleep(60)",
    "os.close(1); os.close(2); time.sleep(60)",
    "[os.dup2(os.open('/dev/null', os.O_RDWR), f) for f in (1, 2)]; time.sleep(60)",
    "os.fork() or time.sleep(60); os.close(0); time.sleep(60)",
], ids=["sleeps", "closes its streams", "replaces its streams", "has a child"])
def test_a_program_that_waits_costs_the_server_no_cpu(arena, code):
    """Whatever it does to its pipes: an event that nobody consumes would wake the server for ever."""
    server = arena.server
    job = Background(arena.run, f"import os, time\n{code}", timeout_seconds=60)
    wait_for("it to wait", lambda: server.programs() and all(map(is_asleep, server.programs())))
    before = census.cpu_seconds(server.pid), census.cpu_seconds(server.front)
    seen = time.monotonic()
    wait_for("two seconds", lambda: time.monotonic() - seen > 2, pause_s=0.5)
    used = census.cpu_seconds(server.pid) - before[0], census.cpu_seconds(server.front) - before[1]
    server.kill_programs()
    job.result()
    assert max(used) < 0.3, f"supervisor, front: {used}"
