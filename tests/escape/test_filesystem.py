"""Threat: tampering with files that others use. Answer: a root that is read-only at every level, made of inodes
of the cage's own; what can be written is a fresh tmpfs, noexec, nosuid, nodev."""
import fcntl
import itertools
import os
import time

import pytest

from corpus import Attack, shell
from harness.background import Background
from harness.poll import wait_for

TREES = ("/", "/usr", "/usr/bin", "/usr/lib", "/usr/lib/python3", "/usr/lib/python3/dist-packages", "/etc", "/lib", "/lib64", "/bin", "/sbin", "/dev", "/proc",
       "/proc/self",
         "/var", "/run", "/home", "/root", "/usr/share", "/usr/local/lib")
# What is done to a file that is there, and refused; `f` is its path.
CHANGES = """\
import os
def names():
  for p in {paths!r}:
    if os.path.lexists(p): yield p
for f in names():
  for n, g in enumerate((lambda: os.open(f, os.O_WRONLY), lambda: os.open(f, os.O_RDWR | os.O_APPEND), lambda: os.truncate(f, 0), lambda: os.unlink(f), lambda: os.rename(f, f + '2'),
            lambda: os.rename(f, '/workspace/got'), lambda: os.link(f, f + '2'), lambda: os.link(f, '/workspace/linked'), lambda: os.chmod(f, 0o777), lambda: os.chown(f, 1000, 1000),
            lambda: os.utime(f), lambda: os.utime(f, (0, 0)), lambda: os.setxattr(f, 'user.x', b'1'), lambda: os.removexattr(f, 'user.x'), lambda: os.replace('/workspace/main.py', f))):
    try: g(); print('GOT', n, f)
    except OSError: pass
print('end')"""
FILES = ("/usr/bin/env", "/usr/bin/python3", "/bin/sh", "/etc/passwd", "/etc/group", "/etc/hosts", "/etc/nsswitch.conf", "/etc/ld.so.cache",
       "/lib64/ld-linux-x86-64.so.2", "/usr/lib/python3.11/os.py",
         "/usr/lib/x86_64-linux-gnu/libc.so.6", "/usr/lib/python3/dist-packages", "/usr/lib/python3.11/__pycache__", "/usr/share/zoneinfo", "/bin", "/lib")

ROOT = [
    Attack("files made", f"import os\nfor d in {TREES!r}:\n  for f in (lambda p: os.open(p, os.O_CREAT | os.O_WRONLY), os.mkdir, os.mkfifo, lambda p: "
           f"os.symlink('x', p), lambda p: os.link('/workspace/main.py', p),\n"
           "            lambda p: os.rename('/workspace/main.py', p), lambda p: os.mknod(p, 0o100644)):\n    try: f(d.rstrip('/') + '/gbx'); print('GOT', d)\n"
           "    except OSError: pass\nprint(os.path.exists('/workspace/main.py'))", says="True\n"),
    Attack("files changed", CHANGES.format(paths=FILES), says="end\n"),
    # All of them, not a sample: a mount point that was forgotten would have a writable corner.
    Attack("anything that says it can be written", "import os\nfor d, ds, fs in os.walk('/'):\n  if d.startswith('/proc/'): ds.clear(); continue\n"
           "  if d in ('/workspace', '/tmp', '/dev/shm'): ds.clear(); continue\n"
           "  for p in [d] + [os.path.join(d, f) for f in fs]:\n"
           "    if not os.path.islink(p) and os.access(p, os.W_OK) and not p.startswith(('/dev/', '/proc')): print('GOT', p)\nprint('end')", says="end\n",
           timeout=60),
    Attack("by a shell", shell("for f in /usr/bin/env /etc/passwd /bin/sh /usr/lib/python3/x /x; do { echo x > $f; } 2>/dev/null && echo GOT $f; "
           "rm -rf $f 2>/dev/null && ! test -e $f && echo GONE $f; done | grep -v 'GONE.*/x$'; echo end"), says="end\n"),
    Attack("by descriptors of directories", "import os\nfor d in ('/', '/usr/bin', '/etc', '/usr/lib'):\n  f = os.open(d, os.O_RDONLY | os.O_DIRECTORY)\n"
           "  for g in (lambda: os.open('x', os.O_CREAT | os.O_WRONLY, dir_fd=f), lambda: os.mkdir('x', dir_fd=f),\n"
           "      lambda: os.fchmod(f, 0o777), lambda: os.fchown(f, 1000, 1000), lambda: os.utime(f), lambda: os.rename('main.py', 'x', dst_dir_fd=f)):\n"
           "    try: g(); print('GOT', d)\n    except OSError: pass\nprint('end')", says="end\n"),
    Attack("through a mapping", "import mmap, os\nf = os.open('/usr/bin/env', os.O_RDONLY)\nfor flags in (mmap.MAP_SHARED,):\n"
           "  try: mmap.mmap(f, 4096, flags, mmap.PROT_READ | mmap.PROT_WRITE); print('GOT')\n  except OSError as e: print(e.errno)\n"
           "m = mmap.mmap(f, 4096, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE); was = m[:4]; m[:4] = b'PWND'\nprint(os.pread(f, 4, 0) == was)", says="13\n"
           "True\n"),
    # The writes to the page cache of CVE-2022-0847 need a page of a file in a pipe.
    Attack("through a pipe", "f = os.open('/usr/bin/env', 0); r, w = os.pipe()\nprint(sc(275, f, 0, w, 0, 1, 0), sc(276, r, w, 1, 0), sc(278, w, 0, 0, 0))",
           says="ENOSYS ENOSYS ENOSYS\n", calls=True),
    # Which may go past the rights of its mappings, and so is read-only as all of /proc is.
    Attack("through its own memory file", "import os\nfor p in ('/proc/self/mem', '/proc/thread-self/mem', '/proc/%d/mem' % os.getpid()):\n"
           "  for way in (os.O_RDWR, os.O_WRONLY):\n"
           "    try: os.open(p, way); print('GOT', p)\n    except OSError as e: print(e.errno)", says="30\n" * 6),
    Attack("attributes and flags of files", "print(*[sc(16, os.open(p, 0), c, ctypes.create_string_buffer(28)) for p in ('/usr/bin/env', '/', "
           "'main.py') for c in (0x40086602, 0x401c5820, 0x6681, 0xC0185879, 0x5877)])",
           says="ENOTTY " * 14 + "ENOTTY\n", calls=True),
]

OWN_MOUNT = [
    Attack("moved away", "import os\nos.chdir('/')\nfor d in ('/workspace', '/tmp', '/dev/shm', '/proc', '/dev'):\n"
           "  for f in (lambda: os.rename(d, d + '2'), lambda: os.rmdir(d), lambda: os.unlink(d), lambda: os.symlink('/etc', d + '2')):\n"
           "    try: f(); print('GOT', d)\n    except OSError: pass\nprint('end')", says="end\n", times=2),
    Attack("shut", "import os\nos.chmod('/workspace', 0)\ntry: os.listdir('/workspace')\nexcept PermissionError: print('shut')", says="shut\n", times=2),
    Attack("places that are root's", "import os\nfor d in ('/tmp', '/dev/shm'):\n"
           "  for f in (lambda: os.chmod(d, 0), lambda: os.chown(d, 1000, 1000), lambda: os.utime(d, (0, 0)), lambda: os.setxattr(d, 'user.x', b'1'), lambda: "
           "os.rmdir(d)):\n"
           "    try: f(); print('GOT', d)\n    except OSError: pass\nprint('end')", says="end\n", times=2),
    Attack("what a program could be made to import", "import os, sys\n"
           "print([p for p in sys.path if p and p != '/workspace' and os.access(p, os.W_OK)], sys.path[0], sys.flags.no_user_site, "
           "sys.dont_write_bytecode or os.access('/usr/lib/python3.11/__pycache__', os.W_OK))\n"
           "import site\nprint(os.path.exists(site.getusersitepackages()))", says="[] /workspace 0 False\nFalse\n"),
    # Each is in effect for programs that this one starts, and for none that comes later (the probe looks).
    Attack("files that interpreters read when they start", "import os\n"
           "for n in ('.python_history', '.pythonrc', 'sitecustomize.py', 'usercustomize.py', 'os.py', '.profile', '.bashrc', "
           "'.local/lib/python3.11/site-packages/evil.pth', 'pyvenv.cfg',\n"
           "  'json.py', 're.py', 'encodings/__init__.py', 'threading.py'):\n  for d in ('/workspace/', '/tmp/', '/dev/shm/'):\n"
           "    os.makedirs(os.path.dirname(d + n), exist_ok=True)\n    open(d + n, 'w').write('print(\"GOT\")\\nimport os\\nos._exit(9)\\n')\nprint('end')",
           says="end\n", times=3),
    Attack("what it left, looked for", "import os\nplaces = ('/workspace', '/tmp', '/dev/shm', '/var/tmp', '/run', '/home', '/root', '/var', '/run/lock')\n"
           "assert os.path.realpath('/var/tmp') == '/tmp'\nfor d in places: assert not os.path.exists(d + '/mark'), d\n"
           "for d in places:\n  try: open(d + '/mark', 'w').close()\n  except OSError: pass\nprint([d for d in places if os.path.exists(d + '/mark')])",
           says="['/workspace', '/tmp', '/dev/shm', '/var/tmp']\n", times=4),
]


@pytest.mark.parametrize("attack", ROOT, ids=str)
def test_the_root_is_read_only_at_every_level(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", OWN_MOUNT, ids=str)
def test_what_can_be_written_is_one_runs_alone_and_stays_where_it_is(attack, arena):
    arena.withstand(attack)


def test_the_canary_cannot_be_reached_by_its_path_or_through_links(arena, canary):
    arena.withstand(Attack("", f"import os\np = {str(canary)!r}\n"
                           "for q in (p, '/proc/self/root' + p, '/proc/self/cwd/../../..' + p, '/proc/1/root' + p, '..' + p, '/workspace/../../../..' + p, "
                           "'/proc/thread-self/root/..' + p):\n"
                           "  for how in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT, os.O_PATH):\n"
                           "    try: os.open(q, how); print('GOT', q)\n    except OSError: pass\n"
                           "os.symlink(p, 'link'); os.symlink('/proc/1/root', 'root'); os.symlink('../' * 40 + p[1:], 'up')\n"
                           "for q in ('link', 'root' + p, 'up'):\n  try: print('GOT', open(q).read())\n  except OSError: pass\nprint('end')", says="end\n"))


# ---- Inodes of the cage's own ----


def test_locks_and_watches_do_not_cross_between_runs(arena):
    """A plain bind of a host directory would share inotify, flock and leases."""
    holder = Background(arena.run, "import fcntl, time\nf = open('/usr/bin/env', 'rb'); fcntl.flock(f, fcntl.LOCK_EX)\n"
                        "fcntl.lockf(f, fcntl.LOCK_SH)\nprint('held', flush=True); time.sleep(60)", timeout_seconds=90)
    wait_for("the holder", arena.server.programs)
    arena.withstand(Attack("", "import fcntl, time\nf = open('/usr/bin/env', 'rb')\nfor _ in range(10):\n"
                           "  fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(f, fcntl.LOCK_UN); time.sleep(.05)\n"
                           "print('free')", says="free\n"))
    arena.server.kill_programs()
    assert holder.result().stdout == "held\n"


def test_the_hosts_own_lock_on_an_interpreter_file_is_not_seen(arena):
    with open("/usr/bin/env", "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        arena.withstand(Attack("", "import fcntl\nfcntl.flock(open('/usr/bin/env', 'rb'), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
                               "print('free')", says="free\n"))


def test_a_look_at_the_hosts_file_is_not_seen_by_a_watch(arena):
    """Nor does a program's look wake a watcher of the host's."""
    watcher = Background(arena.run, "import ctypes, os, select\nl = ctypes.CDLL(None); i = l.inotify_init1(0)\n"
                         "assert l.inotify_add_watch(i, b'/usr/bin/env', 0xfff) >= 0\nprint('on', flush=True)\nprint(select.select([i], [], [], 2)[0])",
                         timeout_seconds=30)
    wait_for("the watcher", arena.server.programs)
    job = Background(arena.run, "open('/usr/bin/env', 'rb').read(); print('read')")
    while watcher.is_alive():
        with open("/usr/bin/env", "rb") as f:
            f.read(9)
        watcher.join(0.05)
    assert job.result().stdout == "read\n"
    assert watcher.result().stdout == "on\n[]\n"


def seldom_read():
    """Files of the view that a look through the host's own mount would change: relatime has let a day go by."""
    for folder, _, names in os.walk("/usr/share/zoneinfo"):
        for path in sorted(os.path.join(folder, n) for n in names):
            now = os.lstat(path)
            if os.path.isfile(path) and not os.path.islink(path) and (time.time() - now.st_atime > 90_000 or now.st_atime <= now.st_mtime):
                yield path


def test_reading_leaves_no_trace_on_the_hosts_inodes(arena):
    """Where the host's own mount keeps times of access: without them there is nothing to see."""
    read = list(itertools.islice(seldom_read(), 5))
    assert len(read) == 5
    before = [os.stat(p) for p in read]
    arena.withstand(Attack("", f"import mmap, os\nfor p in {read!r}:\n"
                           "  f = os.open(p, os.O_RDONLY); print(len(os.read(f, 99999)) > 9); mmap.mmap(f, 0, prot=1)[:9]; os.stat(p); "
                           "os.listdir(os.path.dirname(p))\n"
                           "  try: os.open(p, os.O_NOATIME); print('GOT')\n  except OSError: pass", says="True\n" * 5))
    assert [os.stat(p) for p in read] == before
