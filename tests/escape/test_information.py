"""Threat: learning what is not the program's business, from the host or other runs."""
import socket

from attacks import sc
from harness.server import ROOT, START


def test_the_environment_is_built_from_nothing(warm):
    r = warm.run("import os; print(sorted(os.environ)); print(open('/proc/self/environ', 'rb').read())")
    names = eval(r.stdout.splitlines()[0])
    assert set(names) <= {"PATH", "HOME", "LANG", "LC_ALL", "TZ", "USER", "LOGNAME", "PWD", "TMPDIR", "SHELL",
                          "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE", "PYTHONIOENCODING",
                          "MPLCONFIGDIR", "XDG_CACHE_HOME", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"}, names


def test_host_secrets_and_identities_are_not_there(warm):
    r = warm.run("for p in ('/etc/shadow', '/etc/machine-id', '/proc/sys/kernel/random/boot_id', '/root/.ssh/id_rsa',\n"
                 "  '/root/.bashrc', '/sys/class/dmi/id/product_uuid', '/etc/ssh/ssh_host_rsa_key', '/var/log/dpkg.log',\n"
                 "  '/etc/resolv.conf', '/proc/cmdline', '/proc/kcore', '/dev/mem', '/dev/kmsg', '/proc/kallsyms',\n"
                 "  '/proc/keys', '/proc/iomem', '/proc/timer_list', '/proc/sched_debug', '/proc/config.gz'):\n"
                 "  try: b = open(p, 'rb').read(64)\n  except OSError: continue\n  if b: print('GOT', p, b)\nprint('end')")
    assert r.stdout == "end\n"


def test_the_hosts_name_and_users_are_not_shown(warm):
    r = warm.run("import os, pwd, socket\nprint(socket.gethostname(), [p.pw_name for p in pwd.getpwall()])\n"
                 "for d in ('/home', '/root', '/var', '/run', '/srv', '/opt', '/mnt', '/boot', '/sys'):\n"
                 "  for at, _dirs, files in os.walk(d):\n    if files: print(at, files)")
    lines = r.stdout.splitlines()
    assert socket.gethostname() not in lines[0].split()[0]
    assert len(eval(lines[0].split(" ", 1)[1])) <= 4
    assert lines[1:] == []


def test_only_the_own_processes_are_seen(warm):
    r = warm.run("import os\nprint([p for p in os.listdir('/proc') if p.isdigit()] == [str(os.getpid())], os.getpid() > 1)\n"
                 "seen = []\nfor p in range(2, 5000):\n  if p != os.getpid():\n    try: os.kill(p, 0); seen.append(p)\n"
                 "    except ProcessLookupError: pass\n    except PermissionError: seen.append(p)\nprint(seen)")
    assert r.stdout == "True True\n[]\n"


# What Python's own library and common packages read; runtimes/python says so. Host
# facts, no secrets.
SHOWN = {"cpuinfo", "meminfo", "stat", "version", "uptime", "loadavg", "filesystems"}


def test_proc_shows_the_own_processes_and_what_the_runtime_asks_for(warm):
    """Everything else that the kernel puts there is masked: it reads as nothing."""
    r = warm.run("import os\nfor n in sorted(os.listdir('/proc')):\n  p = '/proc/' + n\n"
                 "  if n.isdigit() or n in ('self', 'thread-self', 'net', 'mounts'): continue\n"
                 "  try:\n    full = any(f for _, _, f in os.walk(p)) if os.path.isdir(p) else open(p, 'rb').read(1)\n"
                 "  except OSError: continue\n  if full: print(n)")
    assert set(r.stdout.split()) <= SHOWN, r.stdout


def test_mounts_do_not_show_the_hosts_paths(warm, tmp_path):
    r = warm.run("print(open('/proc/self/mountinfo').read())\nprint(open('/proc/self/cgroup').read())")
    for word in (str(ROOT), "/root/", "/home/", "/var/lib", str(tmp_path.parent), "glovebox."):
        assert word not in r.stdout, (word, r.stdout)


def test_a_traceback_names_only_the_program(warm):
    r = warm.run("import nonexistent_module")
    assert 'File "/workspace/main.py", line 1' in r.stderr and r.stderr.count("File ") == 1


def test_the_command_line_is_neutral(warm):
    r = warm.run("print(open('/proc/self/cmdline', 'rb').read())")
    words = eval(r.stdout).split(b"\0")
    assert words[-2] == b"main.py" and b"glovebox" not in r.stdout.encode()


def test_memory_and_heap_hold_nothing_of_the_previous_run(warm):
    warm.run("secret = 'CANARY-of-the-last-run' * 1000\nb = [secret.encode() * 100 for _ in range(5)]")
    r = warm.run("import gc, mmap\nm = mmap.mmap(-1, 32 << 20)\n"
                 "print(sum(m[i] for i in range(0, 32 << 20, 4096)))\n"
                 "print([o for o in gc.get_objects() if isinstance(o, str) and 'of-the-' + 'last-run' in o])")
    assert r.stdout == "0\n[]\n"


def test_system_v_objects_do_not_survive(warm):
    make = sc("print(L.shmget(0x47, 4096, 0o1666), L.msgget(0x48, 0o1666), L.semget(0x49, 1, 0o1666))")
    warm.run(make)
    r = warm.run(sc("print(L.shmget(0x47, 4096, 0), L.msgget(0x48, 0), L.semget(0x49, 1, 0))"))
    assert r.stdout == "-1 -1 -1\n"


def test_randomness_differs_from_run_to_run(warm):
    """The seed of hash() is a warm interpreter's: its cells share it (ADR 7)."""
    hashes = ", hash('x')" if START == "cold" else ""
    code = ("import random, uuid, os, tempfile, secrets\nprint(random.random(), random.getrandbits(64), uuid.uuid4(),\n"
            f"  os.urandom(8).hex(), next(tempfile._get_candidate_names()), secrets.token_hex(){hashes})")
    rows = list(zip(*[warm.run(code).stdout.split() for _ in range(3)]))
    assert len(rows) >= 6 and all(len(set(column)) == 3 for column in rows), rows


def test_a_hostile_process_name_stays_out_of_the_log(warm):
    before = len(warm.log())
    r = warm.run(sc("sc(157, 15, b'\\x1b[2J\\n{\"x\"', 0, 0, 0); os.abort()"))
    assert r.exit_code == 134
    assert "\x1b" not in warm.log()[before:]


def test_the_page_cache_oracle_is_refused(warm):
    r = warm.run(sc("fd = os.open('/usr/bin/env', 0)\nr = (ctypes.c_uint64 * 2)(0, 1 << 20); o = (ctypes.c_uint64 * 5)()\n"
                    "print(sc(451, fd, ctypes.byref(r), ctypes.byref(o), 0))"))
    assert r.stdout.strip() in ("ENOSYS", "EPERM")
