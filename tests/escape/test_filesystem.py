"""Threat: tampering with files. Answer: a read-only root, fresh bounded tmpfs, noexec."""
import fcntl

import pytest

from attacks import sc
from harness.background import Background
from harness.poll import wait_for


def test_the_root_is_read_only_at_every_level(warm):
    r = warm.run("import os\n"
                 "for p in ('/x', '/usr/x', '/usr/lib/x', '/usr/lib/python3/x', '/etc/passwd', '/etc/x',\n"
                 "          '/bin/sh', '/lib/x', '/dev/x', '/proc/x', '/usr/bin/python3'):\n"
                 "  try: os.open(p, os.O_CREAT | os.O_WRONLY); print('GOT', p)\n  except OSError: pass\n"
                 "print('end')")
    assert r.stdout == "end\n"


def test_shared_inodes_cannot_be_changed_by_metadata(warm):
    r = warm.run("import os\nfor f in (lambda: os.utime('/usr/bin/env'), lambda: os.chmod('/usr/bin/env', 0o777),\n"
                 "  lambda: os.setxattr('/usr/bin/env', 'user.x', b'1'), lambda: os.truncate('/usr/bin/env', 0),\n"
                 "  lambda: os.link('/usr/bin/env', '/workspace/h'), lambda: os.unlink('/usr/bin/env'),\n"
                 "  lambda: os.rename('/workspace', '/w2'), lambda: os.rmdir('/workspace')):\n"
                 "  try: f(); print('GOT')\n  except OSError: pass\nprint('end')")
    assert r.stdout == "end\n"


def test_the_canary_cannot_be_reached_by_its_path_or_through_links(warm, canary):
    r = warm.run(f"import os\np = {str(canary)!r}\n"
                 "for q in (p, '/proc/self/root' + p, '/proc/self/cwd/../../..' + p, '/proc/1/root' + p, '..' + p):\n"
                 "  for how in (os.O_RDONLY, os.O_WRONLY | os.O_CREAT):\n"
                 "    try: os.open(q, how); print('GOT', q)\n    except OSError: pass\n"
                 "os.symlink(p, 'link')\n"
                 "try: print('GOT', open('link').read())\nexcept OSError: pass\nprint('end')")
    assert r.stdout == "end\n"


def test_no_directory_handle_of_the_set_up_is_left_open(warm):
    r = warm.run("import os\n"
                 "print([fd for fd in range(3, 1024) if os.path.exists('/proc/self/fd/%d' % fd)\n"
                 "       and fd not in map(int, os.listdir('/proc/self/fd'))])\n"
                 "open_ones = []\nfor fd in range(3, 1024):\n  try: os.fstat(fd); open_ones.append(fd)\n"
                 "  except OSError: pass\nprint(open_ones)")
    assert r.stdout == "[]\n[]\n"


@pytest.mark.parametrize("folder", ["/workspace", "/tmp", "/dev/shm"])
def test_writable_places_are_bounded_in_bytes(warm, folder):
    r = warm.run(f"import os\nf = os.open({folder!r} + '/big', os.O_CREAT | os.O_WRONLY); n = 0\ntry:\n"
                 "  while 1: n += os.write(f, b'a' * 65536)\nexcept OSError as e: print(e.errno in (27, 28), n >> 20)",
                 memory_limit_mb=200, cpu_limit=1)
    if r.status == "memory_exceeded":
        return  # the files were charged to the run, which is the other bound
    full, mib = r.stdout.split()
    assert full == "True" and int(mib) <= 200


@pytest.mark.parametrize("name, make", [
    ("files", "os.close(os.open('f%d' % n, os.O_CREAT))"),
    ("hard links", "os.link('main.py', 'l%d' % n)"),
    ("directories", "os.mkdir('d%d' % n)"),
    ("symlinks", "os.symlink('x', 's%d' % n)"),
    ("long names", "os.close(os.open('%05d' % n + 'n' * 240, os.O_CREAT))"),
])
def test_the_workspace_is_bounded_in_inodes(warm, name, make):
    r = warm.run(f"import os\nn = 0\ntry:\n  while n < 10 ** 6: {make}; n += 1\n"
                 "except OSError as e: print(e.errno, n <= 4096)", memory_limit_mb=256)
    assert r.stdout == "28 True\n", r


def test_nothing_written_can_be_executed(warm):
    r = warm.run("import os, shutil, subprocess\nfor d in ('/workspace', '/tmp', '/dev/shm'):\n"
                 "  shutil.copy('/bin/true', d + '/t'); os.chmod(d + '/t', 0o755)\n"
                 "  for argv in ([d + '/t'], ['/lib64/ld-linux-x86-64.so.2', d + '/t']):\n"
                 "    try: print(subprocess.run(argv, capture_output=True).returncode == 0)\n"
                 "    except OSError as e: print(e.errno == 13 and False)\n"
                 "try:\n  import ctypes; shutil.copy(ctypes.util.find_library('c') or '/lib/x86_64-linux-gnu/libc.so.6', "
                 "'/tmp/l.so') if hasattr(ctypes, 'util') else shutil.copy('/lib/x86_64-linux-gnu/libc.so.6', '/tmp/l.so')\n"
                 "  ctypes.CDLL('/tmp/l.so'); print('GOT')\nexcept OSError: print('no')")
    assert r.stdout == "False\n" * 6 + "no\n", r


def test_set_user_id_bits_give_nothing(warm):
    r = warm.run("import os, subprocess\nopen('s', 'w').close()\ntry: os.chown('s', 0, 0); print('GOT')\n"
                 "except OSError as e: print(e.errno)\nos.chmod('s', 0o6755)\n"
                 "found = [os.path.join(d, f) for d, _, fs in os.walk('/usr/bin') for f in fs\n"
                 "         if os.lstat(os.path.join(d, f)).st_mode & 0o6000]\n"
                 "for f in found:\n"
                 "  try: subprocess.run([f, '--help'], capture_output=True, timeout=5, stdin=subprocess.DEVNULL)\n"
                 "  except (OSError, subprocess.TimeoutExpired): pass\nprint(os.getresuid())")
    assert r.stdout == "1\n(1000, 1000, 1000)\n"


def test_device_nodes_cannot_be_made_and_dev_is_minimal(warm):
    r = warm.run("import os\nfor ma, mi in ((8, 0), (1, 1), (5, 0), (7, 0), (1, 3)):\n"
                 "  for d in ('/workspace', '/tmp', '/dev/shm'):\n"
                 "    try: os.mknod(d + '/n', 0o60666, os.makedev(ma, mi)); print('GOT')\n    except OSError: pass\n"
                 "print(sorted(os.listdir('/dev')))")
    assert set(eval(r.stdout)) <= {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin",
                                   "stdout", "stderr", "shm", "ptmx", "pts", "mqueue"}


def test_a_sparse_giant_and_odd_names_do_not_break_the_clean_up(warm):
    r = warm.run("import os\ntry: open('s', 'wb').truncate(1 << 40)\nexcept OSError: pass\n"
                 "os.makedirs('a/b/c'); os.mkfifo('p'); os.symlink('/', 'root'); os.symlink('.', 'loop')\n"
                 "open('-rf', 'w').close(); open('new\\nline', 'w').close(); open(b'\\xff\\xfe', 'w').close()\n"
                 "d = '.'\nfor _ in range(200):\n  d += '/' + 'd' * 10; os.mkdir(d)\n"
                 "os.chmod('a', 0); os.chmod('.', 0); print('end')")
    assert r.stdout == "end\n"


def test_mounts_cannot_be_made_or_changed(warm):
    r = warm.run(sc("print(sc(165, b'none', b'/workspace', b'tmpfs', 0, 0), sc(165, b'/', b'/workspace', 0, 4096, 0),\n"
                    " sc(165, 0, b'/', 0, 32 | 4096, 0), sc(166, b'/workspace', 2), sc(155, b'/', b'/'), sc(161, b'/workspace'),\n"
                    " sc(428, -100, b'/', 1), sc(429, 0, 0, 0, 0, 0), sc(430, b'tmpfs', 0), sc(442, -100, b'/', 0, 0, 0))"))
    assert len(r.stdout.split()) == 10 and not set(r.stdout.split()) - {"EPERM", "ENOSYS"}, r.stdout


def test_locks_and_watches_do_not_cross_between_runs(warm):
    """A plain bind of a host directory would share inotify, flock and leases."""
    holder = Background(warm.execute, "import fcntl, time\nf = open('/usr/bin/env', 'rb'); fcntl.flock(f, fcntl.LOCK_EX)\n"
                        "print('held', flush=True); time.sleep(60)", timeout_seconds=90)
    wait_for("the holder", warm.programs)
    r = warm.run("import fcntl, time\nf = open('/usr/bin/env', 'rb')\nfor _ in range(10):\n"
                 "  fcntl.flock(f, fcntl.LOCK_EX | fcntl.LOCK_NB); fcntl.flock(f, fcntl.LOCK_UN); time.sleep(.05)\n"
                 "print('free')")
    warm.kill_programs()
    assert r.stdout == "free\n", r.stderr
    assert holder.result().stdout == "held\n"


def test_the_hosts_own_lock_on_an_interpreter_file_is_not_seen(warm):
    with open("/usr/bin/env", "rb") as f:
        fcntl.flock(f, fcntl.LOCK_EX)
        r = warm.run("import fcntl\nfcntl.flock(open('/usr/bin/env', 'rb'), fcntl.LOCK_EX | fcntl.LOCK_NB)\n"
                     "print('free')")
    assert r.stdout == "free\n", r.stderr


def test_nothing_persists_from_run_to_run(warm):
    code = ("import os, sys\nplaces = ('/workspace', '/tmp', '/dev/shm', '/var/tmp', '/run', '/home')\n"
            "for d in places: assert not os.path.exists(d + '/mark'), d\n"
            "for d in places:\n  try: open(d + '/mark', 'w').close()\n  except OSError: pass\n"
            "print([p for p in sys.path if p != '/workspace' and os.access(p, os.W_OK)])")
    for _ in range(2):
        r = warm.run(code)
        assert (r.stdout, r.stderr) == ("[]\n", "")
