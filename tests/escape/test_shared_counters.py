"""Threat: using up what the kernel counts for a user, or for the whole host. Answer: every cell
has users of its own, and loopback's buffers a ceiling."""
import ctypes
import errno
import os
import resource
import time

import pytest

from attacks import sc
from harness import census
from harness.background import Background
from harness.poll import wait_for

# As many inotify instances as there are for it.
WATCHERS = sc("n = 0\nwhile L.inotify_init1(0) >= 0: n += 1\n"
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


def test_inotify_instances_of_one_cell_are_nobody_elses(warm, many_files):
    before = watchers_of_the_host()
    holder = Background(warm.execute, WATCHERS + "time.sleep(60)", timeout_seconds=90, cpu_limit=1)
    (pid,) = wait_for("the holder", warm.programs)
    wait_for("it to hold all it can get", lambda: is_asleep(pid) and census.descriptors(pid) > 100)
    during, other = watchers_of_the_host(), warm.run(WATCHERS)
    warm.kill_programs()
    held = holder.result()
    # Others on this host may come and go: a holder's hundred would be seen.
    assert abs(during - before) < 50
    assert other.stdout.split()[0] == "EMFILE" and other.stdout == held.stdout
    assert int(held.stdout.split()[1]) >= 100


def is_asleep(pid):
    with open(f"/proc/{pid}/wchan", encoding="ascii") as f:
        return "nanosleep" in f.read()


def tcp_pages():
    """Pages in TCP buffers, of all network namespaces of this host."""
    with open("/proc/net/sockstat", encoding="ascii") as f:
        (line,) = [x.split() for x in f if x.startswith("TCP:")]
    return int(line[line.index("mem") + 1])


# Every connection that descriptors allow, and as much on its way in each as it takes.
FLOOD = """\
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
end = time.monotonic() + 3
while time.monotonic() < end:
    for c, _ in pairs:
        try: c.send(bytes(1 << 20))
        except OSError: pass
print(len(pairs) > 50)
"""


# The kernel counts up to a MiB apart on each CPU, in either direction (SK_MEMORY_PCPU_RESERVE).
UNCERTAIN_PAGES = 2 * (1 << 20) // resource.getpagesize() * os.cpu_count()


def test_what_is_on_its_way_over_loopback_is_bounded(warm):
    """It is not in memory_used_mb of control groups v1, but it is the host's memory."""
    before, limit = tcp_pages(), 64 << 20
    attack = Background(warm.execute, FLOOD, timeout_seconds=20, memory_limit_mb=limit >> 20, cpu_limit=1)
    most = 0
    while attack.is_alive():
        most = max(most, tcp_pages() - before)
        attack.join(0.05)
    r = attack.result()
    assert r.status == "memory_exceeded" or r.stdout == "True\n", r
    assert most * resource.getpagesize() <= limit, f"{most} pages"
    wait_for("the buffers to go", lambda: tcp_pages() - before < UNCERTAIN_PAGES)


@pytest.mark.parametrize("code", [
    "time.sleep(60)",
    "os.close(1); os.close(2); time.sleep(60)",
    "[os.dup2(os.open('/dev/null', os.O_RDWR), f) for f in (1, 2)]; time.sleep(60)",
    "os.fork() or time.sleep(60); os.close(0); time.sleep(60)",
], ids=["sleeps", "closes its streams", "replaces its streams", "has a child"])
def test_a_program_that_waits_costs_the_server_no_cpu(warm, code):
    """Whatever it does to its pipes: an event that nobody consumes would wake the server for ever."""
    job = Background(warm.execute, f"import os, time\n{code}", timeout_seconds=60)
    wait_for("it to wait", lambda: warm.programs() and all(map(is_asleep, warm.programs())))
    before = census.cpu_seconds(warm.pid), census.cpu_seconds(warm.front)
    seen = time.monotonic()
    wait_for("two seconds", lambda: time.monotonic() - seen > 2, pause_s=0.5)
    used = census.cpu_seconds(warm.pid) - before[0], census.cpu_seconds(warm.front) - before[1]
    warm.kill_programs()
    job.result()
    assert max(used) < 0.3, f"supervisor, front: {used}"
