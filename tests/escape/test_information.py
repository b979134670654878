"""Threat: learning what is not the program's business, of the host or of other runs. Answer: an environment and
an /etc made from nothing, names and processes of the cell's own, and nothing that was ever another's."""
import ctypes
import glob
import mmap
import os
import re
import socket

import pytest

from corpus import REFUSED, Attack, failed, killed_by
from harness.background import Background
from harness.poll import wait_for
from harness.server import ROOT, START

# Outputs of several programs, one after another in cages that may be used again.
VARIABLES = {"PATH", "HOME", "LANG", "PYTHONUNBUFFERED", "OPENBLAS_NUM_THREADS", "MPLCONFIGDIR", "MPLBACKEND"}
# What Python's own library and common packages read; runtimes/python says so. Host
# facts, no secrets.
SHOWN = {"cpuinfo", "meminfo", "stat", "version", "uptime", "loadavg", "filesystems"}


def names(expected):
    def check(reply):
        assert set(reply.stdout.split()) == expected, reply.stdout
    return check


def at_most(allowed):
    def check(reply):
        assert set(reply.stdout.split()) <= allowed, reply.stdout
    return check


STARTED = [
    Attack("the environment", "import os; print(*os.environ)", check=names(VARIABLES)),
    Attack("the environment, as the kernel has it", "print(*[v.split(b'=')[0].decode() for v in open('/proc/self/environ', 'rb').read().split(b'\\0')[:-1]])",
           check=names(VARIABLES)),
    Attack("the environment of a child", "import subprocess; print(*[l.split('=')[0] for l in subprocess.run(['env'], capture_output=True, "
           "text=True).stdout.splitlines()])",
           check=names(VARIABLES)),
    Attack("the command line", "print(open('/proc/self/cmdline', 'rb').read().split(b'\\0')[-2:], b'glovebox' in open('/proc/self/cmdline', 'rb').read(), "
           "open('/proc/self/comm').read())",
           says="[b'main.py', b''] False python3\n\n"),
    # Above the environment: what the kernel and whoever started it have put on the first stack.
    Attack("the top of its stack", "import re\nfor l in open('/proc/self/maps'):\n  if '[stack]' in l:\n    lo, hi = (int(x, 16) for x in l.split()[0].split('-'))\n"
           "with open('/proc/self/mem', 'rb', 0) as m:\n  m.seek(hi - 8192); b = m.read(8192)\n"
           "print(*sorted({v.split(b'=')[0].decode() for v in re.findall(rb'\\0([A-Z_]{3,}=[ -~]*)', b)} | {'-'}))",
           check=at_most(VARIABLES | {"-"})),
    Attack("its limits and its place", "import os, resource\n"
           "print(os.getcwd(), os.getpid(), os.getppid() in (0, 1), oct(os.umask(0)), os.getsid(0), os.getpgid(0), resource.getrlimit(resource.RLIMIT_NOFILE))",
           says="/workspace 2 True 0o22 2 2 (256, 256)\n"),
    Attack("the traceback of a mistake", "import nonexistent_module", failed(1), "", re.compile("Traceback.*\n  File \"/workspace/main.py\", line 1, in <module>\n"
           "(    .*\n)*ModuleNotFoundError: .*\n")),
    Attack("all its own paths", "import sys, os\nfound = {p for m in list(sys.modules.values()) for p in [getattr(m, '__file__', None) or ''] if p}\n"
           "print(sorted({'/'.join(p.split('/')[:4]) for p in found} - {'/usr/lib/python3.11', '/usr/lib/python3.13', '/workspace/main.py', '/usr/lib/python3', "
           "'main.py'}))", says=re.compile(r"\[.{0,60}\]\n")),
]

IDENTITY = ("/etc/shadow", "/etc/gshadow", "/etc/machine-id", "/etc/hostname", "/etc/resolv.conf", "/etc/fstab", "/etc/mtab", "/etc/crontab", "/etc/sudoers",
       "/etc/ssh/ssh_host_rsa_key", "/etc/issue",
            "/var/log/dpkg.log", "/var/lib/dpkg/status", "/var/lib/dbus/machine-id", "/root/.ssh/id_rsa", "/root/.bashrc", "/root/.bash_history", "/home",
            "/sys/class/dmi/id/product_uuid", "/sys/class/dmi/id/board_serial", "/sys/class/net/eth0/address", "/sys/hypervisor/uuid",
            "/sys/devices/system/cpu/vulnerabilities/meltdown",
            "/proc/sys/kernel/random/boot_id", "/proc/sys/kernel/hostname", "/proc/cmdline", "/proc/1/environ", "/proc/partitions", "/proc/mdstat",
            "/proc/scsi/scsi", "/proc/device-tree", "/run/secrets",
            "/var/run/secrets/kubernetes.io/serviceaccount/token", "/.dockerenv", "/run/.containerenv", "/usr/lib/os-release")

HOST = [
    Attack("secrets and identities", f"for p in {IDENTITY!r}:\n  try: b = open(p, 'rb').read(64)\n  except OSError: continue\n"
           f"  if b and p not in ('/etc/hostname',): print('GOT', p, b)\nprint('end')", says="end\n"),
    Attack("names and users", "import os, pwd, grp, socket\nprint(socket.gethostname(), socket.getfqdn(), os.uname().nodename, os.uname().version != '', "
           "len(pwd.getpwall()) <= 4, len(grp.getgrall()) <= 4)\n"
           "print(open('/etc/hosts').read().split() if os.path.exists('/etc/hosts') else [])\n"
           "import ctypes; b = ctypes.create_string_buffer(65); ctypes.CDLL(None).getdomainname(b, 65); print(b.value)",
           says=re.compile(r"glovebox \S+ glovebox True True True\n\[('127\.0\.0\.1'|'::1'|'127\.0\.1\.1'|'localhost'|'ip6-localhost'|'glovebox'|, )*\]\nb'(\(none\)|)'\n")),
    Attack("what lies in /proc", "import os\nfor n in sorted(os.listdir('/proc')):\n  p = '/proc/' + n\n"
           "  if n.isdigit() or n in ('self', 'thread-self', 'net', 'mounts'): continue\n"
           "  try:\n    full = any(f for _, _, f in os.walk(p)) if os.path.isdir(p) else open(p, 'rb').read(1)\n"
           "  except OSError: continue\n  if full: print(n)", check=at_most(SHOWN)),
    Attack("the kernel's log", "b = ctypes.create_string_buffer(100)\nprint(*[sc(103, t, b, 100) for t in (2, 3, 4, 9, 10)])\n"
           "for p in ('/dev/kmsg', '/proc/kmsg', '/dev/log', '/var/log/kern.log'):\n  try: b = open(p, 'rb').read(1)\n  except OSError: continue\n"
           "  if b: print('GOT', p)", says="EPERM " * 4 + "EPERM\n", calls=True),
    Attack("id maps", "for f in ('uid_map', 'gid_map'):\n  for l in open('/proc/self/' + f): print(*[int(x) > 0 for x in l.split()][1:], l.split()[0])\n"
           "print(open('/proc/self/setgroups').read().strip())",
           says=re.compile(r"(True True \d+\n)+(deny|allow)\n")),
    # Its own view, with the folders of the overlays: no path of the host's.
    Attack("totals", "import os\nprint(os.sysconf('SC_PHYS_PAGES') > 0, os.cpu_count() > 0, os.getloadavg()[0] >= 0, "
           "{os.statvfs(d).f_blocks * os.statvfs(d).f_frsize == 128 << 20 for d in ('/workspace', '/tmp', '/dev/shm')})",
           says="True True True {True}\n"),
    Attack("other cells' groups", "print(open('/proc/self/cgroup').read())", says=re.compile(r"(\d+:[\w,=]*:/\n)+\n")),
]

OTHERS = [
    Attack("by the list and by their numbers", "import os\nprint([p for p in os.listdir('/proc') if p.isdigit()] == [str(os.getpid())], os.getpid() > 1)\n"
           "seen = []\nfor p in range(2, 5000):\n  if p != os.getpid():\n"
           "    for f in (lambda: os.kill(p, 0), lambda: os.getpgid(p), lambda: os.sched_getaffinity(p), lambda: os.stat('/proc/%d' % p), lambda: "
           "os.pidfd_open(p)):\n"
           "      try: f(); seen.append(p)\n      except (ProcessLookupError, FileNotFoundError): pass\n      except OSError: seen.append(p)\nprint(seen)",
           says="True True\n[]\n", timeout=30),
    Attack("by the number of the next process", "import os\np = os.fork()\nif p == 0: os._exit(0)\n"
           "os.waitpid(p, 0); print(p, open('/proc/loadavg').read().split()[4])", says="3 3\n", times=3),
    Attack("by what they have in memory", "import mmap\nm = mmap.mmap(-1, 32 << 20); print(sum(m[i] for i in range(0, 32 << 20, 4096)), m.find(b'secret-'))",
           says="0 -1\n"),
    # The one that there is holds the memory of the warm interpreter (ADR 7).
    Attack("by files without a name", "import os\nprint([fd for fd in range(3, 256) if os.path.exists('/proc/self/fd/%d' % fd)],\n"
           "  sorted({l.split()[5] for l in open('/proc/self/maps') if 'deleted' in l}))", says=re.compile(r"\[\] \[('/memfd:report')?(, )?('/run/#\d+')?\]\n")),
    Attack("by sockets and counters of the network", "print([l for n in ('unix', 'tcp', 'tcp6', 'udp', 'udp6', 'raw', 'packet', "
           "'netlink') for l in open('/proc/net/' + n).read().splitlines()[1:] if n != 'netlink'],\n"
           "  [int(x) for x in open('/proc/net/dev').read().splitlines()[2].split()[1:3]])", says="[] [0, 0]\n", times=2),
    Attack("by a file's residency", "fd = os.open('/usr/bin/env', 0)\nr = (ctypes.c_uint64 * 2)(0, 1 << 20); o = (ctypes.c_uint64 * 5)()\n"
           "print(sc(451, fd, ctypes.byref(r), ctypes.byref(o), 0))", says=re.compile("(EPERM|ENOSYS)\n"), calls=True),
    Attack("by events on shared files", "print(sc(300, 0, 0), sc(301, 0, 1, 2, -100, b'/'), *[sc(72, os.open('/usr/bin/env', 0), c, 0xff) for c in (1026, 1024)])",
           check=lambda r: set(r.stdout.split()) <= set(REFUSED) or pytest.fail(str(r)), calls=True),
]


@pytest.mark.parametrize("attack", STARTED, ids=str)
def test_what_a_program_is_started_with_is_built_from_nothing(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", HOST, ids=str)
def test_the_hosts_secrets_names_and_identities_are_not_there(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", OTHERS, ids=str)
def test_only_the_own_processes_and_files_are_seen(attack, arena):
    arena.withstand(attack)


def test_mounts_do_not_show_the_hosts_paths(arena, tmp_path):
    r = arena.withstand(Attack("", "for n in ('mountinfo', 'mounts', 'mountstats', 'cgroup'):\n  print(open('/proc/self/' + n).read())"))
    assert "/workspace" in r.stdout
    for word in (str(ROOT), "/root/", "/home/", "/var/lib", str(tmp_path.parent), "glovebox.", "build/"):
        assert word not in r.stdout, (word, r.stdout)


def test_the_hosts_own_name_is_in_no_answer(arena):
    r = arena.run("import os, socket\nprint(socket.gethostname(), os.uname(), open('/proc/version').read())")
    assert socket.gethostname() not in r.stdout.replace(os.uname().version, "")


# ---- The run before ----


def test_memory_and_heap_hold_nothing_of_the_previous_run(arena):
    """Nor its files, and nothing that its program was called or said."""
    for _ in range(4):
        arena.run("secret = 'CANARY-of-the-last-run' * 1000\nb = [secret.encode() * 100 for _ in range(5)]\nprint(secret[:60])\n"
                  "open('/dev/shm/' + secret[:20], 'w').write(secret); import os; os.environ['SECRET'] = secret")
    arena.withstand(Attack("", "import gc, mmap\nneedle = 'of-the-' + 'last-run'\nm = mmap.mmap(-1, 64 << 20)\n"
                           "print(sum(m[i] for i in range(0, 64 << 20, 4096)), m.find(needle.encode()))\n"
                           "print([o for o in gc.get_objects() if isinstance(o, (str, bytes)) and needle in str(o)])\n"
                           "print('user_code' in __import__('sys').modules)", says="0 -1\n[]\nFalse\n"))


def test_randomness_differs_from_run_to_run(arena):
    """The seed of hash() is a warm interpreter's: its cells share it (ADR 7)."""
    hashes = ", hash('x')" if START == "cold" else ""
    code = ("import random, uuid, os, tempfile, secrets, ssl, numpy\nprint(random.random(), random.getrandbits(64), uuid.uuid4(), uuid.uuid1(),\n"
            "  os.urandom(8).hex(), next(tempfile._get_candidate_names()), secrets.token_hex(), ssl.RAND_bytes(8).hex(), random.SystemRandom().random(),\n"
            f"  numpy.random.random(), numpy.random.default_rng().random(), tempfile.mkdtemp(){hashes})")
    rows = [arena.run(code, memory_limit_mb=256).stdout.split() for _ in range(4)]
    columns = list(zip(*rows, strict=True))
    assert len(columns) >= 12 and all(len(set(column)) == 4 for column in columns), rows


# ---- The log ----


@pytest.mark.parametrize("name", [b"\x1b[2J\n{\"x\"", b"lvl=err ev=x", b"\xff\xfe\n", b"' \"$(id)"], ids=range(4))
def test_a_hostile_process_name_stays_out_of_the_log(arena, name):
    """invariants.py looks at the log after each attack; the name is told by no answer but the program's."""
    before = len(arena.server.log())
    arena.withstand(Attack("", f"sc(157, 15, {name!r}, 0, 0, 0); os.abort()", killed_by("SIGABRT"), "", calls=True))
    assert name.decode("latin-1") not in arena.server.log()[before:]


# ---- The page cache ----

# Large, in every Python's library, and read by nobody else while these tests run.
(COLD_FILE,) = glob.glob("/usr/lib/python3.1[0-9]/pydoc_data/topics.py")[:1]


def pages_in_memory(path, want=None):
    """How many pages of it the kernel holds, and of how many."""
    with open(path, "rb") as f:
        size = os.fstat(f.fileno()).st_size
        if want is False:
            os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        elif want:
            f.read()
        view = mmap.mmap(f.fileno(), size, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        pages = -(-size // mmap.PAGESIZE)
        told = (ctypes.c_ubyte * pages)()
        at = ctypes.c_void_p(ctypes.addressof(ctypes.c_ubyte.from_buffer(view)))
        assert ctypes.CDLL(None).mincore(at, ctypes.c_size_t(size), told) == 0
        return sum(b & 1 for b in told), pages


EVICTIONS = {
    "advice": "import os\nf = os.open(P, os.O_RDONLY)\nfor length in (0, 1 << 30):\n  os.posix_fadvise(f, 0, length, os.POSIX_FADV_DONTNEED)",
    "advice with bits above": "L.syscall(221, os.open(P, 0), 0, 0, ctypes.c_ulong(0xdead << 32 | 4))",
    "advice on memory": "import mmap\nf = os.open(P, 0)\nfor flags in (mmap.MAP_SHARED, mmap.MAP_PRIVATE):\n  m = mmap.mmap(f, 0, flags, mmap.PROT_READ)\n"
           "  sum(m[i] for i in range(0, len(m), 4096))\n"
                        "  for advice in (4, 8, 20, 21):\n    try: m.madvise(advice)\n    except (OSError, ValueError): pass",
    "reads past the cache": "import mmap\nb = mmap.mmap(-1, 1 << 20)\ntry: f = os.open(P, os.O_DIRECT); os.readv(f, [b])\nexcept OSError: pass",
    "its range": "f = os.open(P, 0)\nL.syscall(277, f, 0, 0, 7); L.syscall(74, f); L.syscall(306, f)",
}


@pytest.mark.parametrize("how", EVICTIONS)
def test_the_hosts_cache_of_shared_files_cannot_be_emptied(arena, how):
    """Or one program makes the next ones' imports wait for the disk, again and again."""
    here, pages = pages_in_memory(COLD_FILE, want=True)
    assert here == pages > 50
    arena.withstand(Attack("", EVICTIONS[how].replace("P", repr(COLD_FILE), 1) + "\nprint('done')", says="done\n", calls=True))
    assert pages_in_memory(COLD_FILE) == (pages, pages)


def test_what_others_have_read_is_not_told(arena):
    here, pages = pages_in_memory(COLD_FILE, want=False)
    assert here < pages / 2, "the host cannot empty its own cache"
    arena.withstand(Attack("", f"import mmap\nf = os.open({COLD_FILE!r}, 0)\n"
           f"m = mmap.mmap(f, 0, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE); n = -(-len(m) // 4096)\nv = (ctypes.c_ubyte * n)()\n"
                           "a = ctypes.c_void_p(ctypes.addressof(ctypes.c_ubyte.from_buffer(m)))\nprint(L.mincore(a, ctypes.c_size_t(len(m)), v), set(v))",
                           says="0 {1}\n", calls=True))


def test_output_of_a_run_beside_it_is_nobody_elses(arena):
    """Two at the same time, each with its own secret."""
    holder = Background(arena.run, "import time\nsecret = 'beside-' + 'me' * 50\nopen('/tmp/' + secret[:20], 'w').write(secret)\n"
           "print(secret, flush=True); time.sleep(60)", timeout_seconds=90)
    wait_for("the holder", arena.server.programs)
    r = arena.withstand(Attack("", "import os\nfor d in ('/tmp', '/workspace', '/dev/shm', '/proc'):\n  print([n for n in os.listdir(d) if not n[0].isdigit()])"))
    arena.server.kill_programs()
    assert "beside" not in r.stdout and holder.result().stdout.startswith("beside-me")
