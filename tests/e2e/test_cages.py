"""A cage that served a program may serve another: only if nothing in it differs from a new one."""
import json
import os
import re
import signal
from pathlib import Path

import pytest

from harness import census
from harness.background import Background
from harness.life import need_program
from harness.poll import wait_for
from harness.server import Server

# Everything that a program can look at in its cage. What is the whole host's, or has a new number
# in every cage, is left out.
LOOK = r"""
import json, os, re, resource, socket, time

START = time.time()

HOSTS = ("softnet_stat", "stat", "protocols", "sockstat", "sockstat6", "netfilter")

def files(top):
    return sorted((p, s.st_ino, s.st_mode, s.st_uid, s.st_gid, s.st_size, s.st_nlink, os.listxattr(p))
                  for d, ds, fs in os.walk(top) for p in [d] + [os.path.join(d, f) for f in fs]
                  for s in [os.lstat(p)])

def mounts():
    # Without the number of the mount, of its parent and of its device, and the host's ids.
    return [re.sub(r"^\d+ \d+ \d+:\d+ |,[ug]id=\d+", "", line) for line in open("/proc/self/mountinfo")]

def network():
    seen = {}
    for name in sorted(os.listdir("/proc/net")):
        if name in HOSTS:
            continue
        try:
            with open("/proc/net/" + name) as file:
                seen[name] = file.read()
        except OSError as e:
            seen[name] = e.errno
    # Where the kernel's own sockets lie, and their numbers: others in every cage.
    seen["netlink"] = [line.split()[1:-1] for line in seen["netlink"].splitlines()]
    return seen

def sockets():
    return re.findall(r"used \d+|tw \d+|inuse \d+", open("/proc/net/sockstat").read())

def numbers_of_directories():
    # As an overlay gives them: some of all that there are, far from each other.
    top = "/usr/lib/python3.11" if os.path.isdir("/usr/lib/python3.11") else os.path.dirname(os.__file__)
    names = sorted(n for n in os.listdir(top) if os.path.isdir(os.path.join(top, n)))
    return [(n, os.stat(os.path.join(top, n)).st_ino) for n in names[::-1]]

def times_of_proc():
    # When somebody looked at them first: not now, and all at once. (Others are covered.)
    times = [os.lstat("/proc/" + n).st_mtime
             for n in ("cpuinfo", "meminfo", "stat", "uptime", "loadavg", "version", "filesystems", "mounts", "net")]
    return len(times), max(times) < START, max(times) - min(times) < 0.5

def child():
    pid = os.fork()
    if pid == 0:
        os._exit(0)
    os.waitpid(pid, 0)
    return pid

def free_port(port):
    with socket.socket() as s:
        s.bind(("127.0.0.1", port))
        return s.getsockname()

def first_file(path="/tmp/first"):
    with open(path, "w") as file:
        return os.fstat(file.fileno()).st_ino

seen = {
    "last number": open("/proc/loadavg").read().split()[4],
    "numbers": [os.getpid(), os.getppid(), os.getsid(0), os.getpgid(0)],
    "processes": sorted(p for p in os.listdir("/proc") if p.isdigit()),
    "files": [files(top) for top in ("/workspace", "/tmp", "/dev/shm")],
    "mounts": mounts(),
    "network": network(),
    "sockets": sockets(),
    "limits": [resource.getrlimit(i) for i in range(16)],
    "status": [l for l in open("/proc/self/status") if re.match(r"(Cap|Sec|NoNew|Sig|Shd|NS|Uid|Gid|Groups|Umask)", l)],
    "space": [(s.f_blocks, s.f_bfree, s.f_files, s.f_ffree) for s in map(os.statvfs, ("/workspace", "/tmp", "/dev/shm"))],
    "groups": open("/proc/self/cgroup").read(),
    "host name": os.uname().nodename,
    "free port": free_port(5001),
    "times of tmp": [0.9 < s.st_ctime - s.st_mtime < 1.1 for s in map(os.stat, ("/tmp", "/dev/shm"))],
    "first file": first_file(),
    "first in shm": first_file("/dev/shm/first"),
    "children": [child(), child()],
    "numbers of directories": numbers_of_directories(),
    "times of proc": times_of_proc(),
}
print(json.dumps({"cage": os.readlink("/proc/self/ns/pid"), "seen": seen}))
"""

# What leaves nothing: the next program gets the cage.
LEAVES_NOTHING = {
    "nothing": "",
    "children": "for i in range(12):\n    pid = os.fork()\n    pid or os._exit(0)\n    os.waitpid(pid, 0)\n",
    "orphans": """
import time
r, w = os.pipe()
if os.fork() == 0:
    for i in range(5):
        if os.fork() == 0:
            os.close(r)
            os._exit(0)
    os._exit(0)
os.wait()
os.close(w)
os.read(r, 1)
while any(p.isdigit() and int(p) > 2 for p in os.listdir('/proc')):
    time.sleep(0.001)
""",
    "threads": "import threading\nfor i in range(8):\n    t = threading.Thread(target=print)\n    t.start()\n    t.join()\n",
    "files": """
for top in '/workspace', '/tmp', '/dev/shm':
    os.makedirs(top + '/a/b')
    open(top + '/a/b/c', 'w').write('secret')
    os.utime(top + '/a', (0, 0))
os.chmod('/workspace', 0o711)
open('/workspace/held', 'w').write('x' * 1000)
""",
    "names in tmp": "import tempfile\nfor i in range(3):\n    tempfile.TemporaryFile().write(b'x')\nos.mkdir('/tmp/a')\nos.rmdir('/tmp/a')\n",
    "names in shm": "open('/dev/shm/a', 'w').close()\nos.unlink('/dev/shm/a')\n",
    "a look at tmp": "os.listdir('/tmp')\n",
    "times of tmp": """
was = os.stat('/tmp')
open('/tmp/a', 'w').close()
os.unlink('/tmp/a')
try:
    os.utime('/tmp', ns=(was.st_atime_ns, was.st_mtime_ns))
    raise SystemExit('Traceback')
except PermissionError:
    pass
for f in lambda: os.chmod('/tmp', 0o777), lambda: os.setxattr('/tmp', 'user.a', b'1'):
    try:
        f()
        raise SystemExit('Traceback')
    except PermissionError:
        pass
""",
    "a file without a name": """
for flags in 0o20200002, 0o20000002, 0o20200001:
    try:
        os.open('/tmp', flags)
        raise SystemExit('Traceback')
    except OSError:
        pass
""",
    "another size": "",
    "locks": """
import fcntl
files = [open(p) for p in ('/usr/bin/env', '/etc/passwd')]
for f in files:
    fcntl.flock(f, fcntl.LOCK_SH)
""",
    "sockets": """
import socket
u = socket.socket(socket.AF_UNIX)
u.bind('\\0name')
u.listen()
s = socket.socket()
s.bind(('127.0.0.1', 5001))
s.listen()
d = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
d.bind(('127.0.0.1', 5001))
""",
    "groups that cannot be joined": """
import socket
for family, level, option, size in (2, 0, 35, 12), (2, 0, 42, 136), (10, 41, 20, 20), (10, 41, 42, 136), (10, 41, 27, 20):
    with socket.socket(family, socket.SOCK_DGRAM) as s:
        try:
            s.setsockopt(level, option, bytes(size))
            print('joined', level, option)
        except OSError as e:
            assert e.errno == 19, e
""",
    "a look around": """
top = os.path.dirname(os.__file__)
for name in sorted(os.listdir(top), reverse=True):
    os.stat(os.path.join(top, name))
for name in os.listdir('/proc'):
    try:
        open('/proc/' + name).read()
    except OSError:
        pass
""",
    "failure": "open('/tmp/x', 'w').write('x')\nos._exit(3)\n",
    "signal": "os.kill(os.getpid(), 15)\n",
}

# What leaves something that cannot be taken back, or that had to be ended.
LEAVES_SOMETHING = {
    "a route": "import socket\nsocket.socket(socket.AF_INET6, socket.SOCK_DGRAM).connect(('::1', 7))\n",
    "a counter": """
import socket
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).connect(('192.0.2.1', 7))
except OSError:
    pass
""",
    "a packet": "import socket\nsocket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', 7))\n",
    "a connection": """
import socket
s = socket.create_server(('127.0.0.1', 5001))
c = socket.create_connection(('127.0.0.1', 5001))
a, _ = s.accept()
a.close()
c.close()
""",
    "a flow label": """
import socket, struct
s = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
s.setsockopt(socket.IPPROTO_IPV6, 32, socket.inet_pton(socket.AF_INET6, '::1') + struct.pack('!I', 0)
             + struct.pack('BBHHHI', 0, 1, 1, 6, 6, 0))
""",
    "much": "open('/tmp/x', 'wb').write(bytes(1 << 20))\n",
    "a process": "import time\nos.fork() or time.sleep(100)\n",
}


@pytest.fixture(scope="module")
def servers():
    """Servers that live as long as the tests of this module."""
    need_program()
    made = []

    def start(*flags):
        s = Server(*flags)
        made.append(s)
        return s.start()

    yield start
    for s in made:
        s.stop()


@pytest.fixture(scope="module")
def two_cages(servers):
    return servers("--cold=false", "--pool-size", "2")


@pytest.fixture(scope="module")
def as_new(servers):
    """What a program sees in a new cage."""
    s = servers("--cold=false", "--pool-size", "2", "--cage-runs", "1")
    looks = [look(s)["seen"] for _ in range(4)]
    assert all(l == looks[0] for l in looks)
    return looks[0]


def cages(server):
    """The host's pids of the processes 1 of all ready cells, by their pid namespaces."""
    server.rest()
    return {os.readlink(f"/proc/{pid}/ns/pid"): pid for pid in census.cell_inits(server.uid_base, server.pid)}


def run(server, program, **fields):
    """Run it in one of the ready cells; return the pid of its process 1, and the reply."""
    ready = cages(server)
    r = server.run("import os; print(os.readlink('/proc/self/ns/pid'))\n" + program, **fields)
    return ready[r.stdout.split("\n", maxsplit=1)[0]], r


def look(server):
    server.rest()
    r = server.run(LOOK)
    assert r.status == "success", (r.stdout, r.stderr)
    return json.loads(r.stdout)


def look_in(server, init):
    """Look at it from the cage of this process 1: one of the next."""
    cage = os.readlink(f"/proc/{init}/ns/pid")
    for _ in range(4):
        seen = look(server)
        if seen["cage"] == cage:
            return seen["seen"]
    raise AssertionError("no program came into that cage")


@pytest.mark.parametrize("name", LEAVES_NOTHING)
def test_a_program_in_a_used_cage_sees_what_it_sees_in_a_new_one(two_cages, as_new, name):
    init, r = run(two_cages, LEAVES_NOTHING[name], memory_limit_mb=256 if name == "another size" else 128)
    assert "Traceback" not in r.stderr and "joined" not in r.stdout
    assert init in cages(two_cages).values(), "the cage was not kept"
    assert look_in(two_cages, init) == as_new


@pytest.mark.parametrize("name", LEAVES_SOMETHING)
def test_a_cage_in_which_something_is_left_is_not_used_again(two_cages, as_new, name):
    init, _ = run(two_cages, LEAVES_SOMETHING[name])
    assert init not in cages(two_cages).values()
    for _ in range(2):
        assert look(two_cages)["seen"] == as_new


def test_a_program_that_is_ended_leaves_no_cage(two_cages):
    ready = cages(two_cages)
    assert two_cages.run("while True: pass", timeout_seconds=0.3).status == "timeout"
    assert len(set(ready.values()) & set(cages(two_cages).values())) == 1


@pytest.mark.parametrize("most", [1, 3])
def test_a_cage_serves_no_more_programs_than_it_may(servers, most):
    s = servers("--cold=false", "--pool-size", "2", "--cage-runs", str(most))
    used = [run(s, "")[0] for _ in range(4 * most)]
    assert {used.count(init) for init in used} == {most}, used


def test_a_used_cage_serves_a_program_that_starts_cold(servers):
    """A cage does not care how its next program is started."""
    s = servers("--cold=true", "--pool-size", "2")
    init, _ = run(s, LEAVES_NOTHING["children"])
    seen = look_in(s, init)
    assert seen["numbers"][0] == 2 and seen["children"] == [3, 4]


def test_the_limits_and_the_use_of_a_run_do_not_stay_in_its_cage(two_cages):
    small = [two_cages.run("print('hello')").memory_used_mb for _ in range(4)]
    init, r = run(two_cages, "x = bytearray(b'1') * (200 << 20)")
    assert r.status == "memory_exceeded" and init not in cages(two_cages).values()
    init, r = run(two_cages, "x = bytearray(b'1') * (30 << 20)")
    assert r.memory_used_mb > 25 and init in cages(two_cages).values()
    again = [two_cages.run("print('hello')").memory_used_mb for _ in range(4)]
    assert max(again) < max(small) + 1, (small, again)


TASKS = """
import os, signal
children = []
while len(children) < {n} - 1:
    try:
        children.append(os.fork())
    except BlockingIOError:
        break
    if children[-1] == 0:
        signal.pause()
for pid in children:
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""


@pytest.mark.parametrize("tasks, most, counted, refused", [(1, 32, 1, 0), (4, 32, 4, 0), (5, 3, 3, 1)])
def test_tasks_of_one_program_do_not_count_for_the_next_in_its_cage(two_cages, tasks, most, counted, refused):
    """Also where its group stays, as it does after a single task: v1's cannot forget a peak."""
    init, r = run(two_cages, TASKS.format(n=tasks), pids_limit=most)
    assert r.status == "success" and r.usage["pids_peak"] in (counted, None), r.usage
    assert sum(d["count"] for d in r.denials if d["layer"] == "pids") == refused, r.denials
    for _ in range(4):
        again, r = run(two_cages, "")
        assert r.usage["pids_peak"] in (1, None) and r.denials == []
        if again == init:
            return
    raise AssertionError("no program came into that cage")


# What a request that asks for nothing gets (docs/api.md).
USUAL = {"memory_limit_mb": 64, "cpu_limit": 0.5, "pids_limit": 32}
OTHERS = [{"memory_limit_mb": 100}, {"cpu_limit": 1}, {"pids_limit": 7},
          {"memory_limit_mb": 200, "cpu_limit": 0.8, "pids_limit": 60},
          {"memory_limit_mb": 40, "cpu_limit": 0.25, "pids_limit": 3}]
# Limits of memory in both versions of control groups, and the part of memory_limit_mb that each
# is to be. What the process held before the program began is added to it.
MEMORY_FILES = {"memory.max": 1, "memory.limit_in_bytes": 1, "memory.memsw.limit_in_bytes": 1,
                "memory.kmem.tcp.limit_in_bytes": 4}
BEFORE_MB = 4

ENDS_BY_A_SIGNAL = """
import os, signal
print(os.readlink("/proc/self/ns/pid"))
def end(*_):
    raise SystemExit
signal.signal(signal.SIGUSR1, end)
while True:
    signal.pause()
"""


def main_of(server, init):
    """The host's pid of process 2 of a ready cell."""
    cage = os.readlink(f"/proc/{init}/ns/pid")
    (pid,) = [pid for pid in census.processes(server.uid_base, server.pid)
              if pid != init and os.readlink(f"/proc/{pid}/ns/pid") == cage]
    return pid


def waiting_program(server):
    """A program that has a handler for SIGUSR1."""
    for pid in server.programs():
        caught = re.search(r"SigCgt:\s*(\w+)", Path(f"/proc/{pid}/status").read_text())
        if int(caught[1], 16) & 1 << signal.SIGUSR1 - 1:
            return pid
    return None


def must_be_in_force(server, pid, limits):
    """Hold the control files of this process's leaf, as the host sees them, against `limits`."""
    leaf = re.search(r"/(c\d+)$", Path(f"/proc/{pid}/cgroup").read_text(), re.M)[1]
    said = {}
    for path in (Path(group, leaf, name) for group in server.groups
                 for name in (*MEMORY_FILES, "cpu.max", "cpu.cfs_quota_us", "cpu.cfs_period_us", "pids.max")):
        if path.exists():
            said[path.name] = [int(word) if word.isdigit() else word for word in path.read_text().split()]
    memory = {name: said[name][0] * part / 2**20 - limits["memory_limit_mb"]
              for name, part in MEMORY_FILES.items() if name in said}
    # The sockets' own limit is a quarter, in whole MiB.
    most = {"memory.kmem.tcp.limit_in_bytes": BEFORE_MB + 4}
    assert memory and all(0 <= more < most.get(name, BEFORE_MB) for name, more in memory.items()), (limits, said)
    quota, period = said.get("cpu.max") or said["cpu.cfs_quota_us"] + said["cpu.cfs_period_us"]
    assert quota / period == limits["cpu_limit"], (limits, said)
    assert said["pids.max"] == [limits["pids_limit"]], (limits, said)


@pytest.mark.parametrize("asked", OTHERS, ids=lambda asked: " ".join(asked))
def test_the_next_programs_leaf_has_the_usual_limits_whatever_the_one_before_had(two_cages, asked):
    ready = cages(two_cages)
    job = Background(two_cages.execute, ENDS_BY_A_SIGNAL, timeout_seconds=30, **asked)
    program = wait_for("the program to wait", lambda: waiting_program(two_cages))
    try:
        must_be_in_force(two_cages, program, {**USUAL, **asked})
    finally:
        os.kill(program, signal.SIGUSR1)
    init = ready[job.result().stdout.strip()]
    assert init in cages(two_cages).values(), "the cage was not kept"
    must_be_in_force(two_cages, main_of(two_cages, init), USUAL)
