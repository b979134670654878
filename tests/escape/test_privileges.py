"""Threat: more rights than a program was given. Answer: no capability, none to be had by exec, one user
and one group, no_new_privs, and nothing written that can be executed by the kernel."""
import re

import pytest

from corpus import Attack, all_refused, shell

ZERO = "0" * 16

IDS = [
    Attack("another user or group", "import os\nfor i in (0, 1, 999, 1001, 65534, 2 ** 32 - 2):\n"
           "  for f in (lambda: os.setuid(i), lambda: os.setgid(i), lambda: os.setgroups([i]), lambda: os.setresuid(i, i, i), lambda: os.setresgid(i, i, i),\n"
           "            lambda: os.seteuid(i), lambda: os.setegid(i), lambda: os.setreuid(-1, i), lambda: os.setregid(i, -1), lambda: os.setgroups([])):\n"
           "    try: f(); print('GOT', i)\n    except (OSError, OverflowError): pass\nprint(os.getresuid(), os.getresgid(), os.getgroups())",
           says="(1000, 1000, 1000) (1000, 1000, 1000) []\n"),
    Attack("another user for files alone", "for n in (122, 123):\n  for i in (0, 1, 65534): L.syscall(n, i)\n  print(L.syscall(n, -1))\n"
           "f = os.open('f', os.O_CREAT | os.O_WRONLY); print(os.fstat(f).st_uid, os.fstat(f).st_gid)", says="1000\n1000\n1000 1000\n", calls=True),
    Attack("files of another", "import os\nopen('f', 'w').close(); os.mkdir('d'); os.symlink('f', 'l')\nfor p in ('f', 'd', 'l', 'main.py', '.'):\n"
           "  for u, g in ((0, 0), (0, -1), (-1, 0), (1001, 1001), (65534, 65534)):\n    try: os.lchown(p, u, g); print('GOT', p, u, g)\n    except OSError: pass\n"
           "print({(s.st_uid, s.st_gid) for s in map(os.lstat, ('f', 'd', 'l'))})", says="{(1000, 1000)}\n"),
    Attack("tricks of the language", "print(len([c for c in ().__class__.__base__.__subclasses__() if 'wrap_close' in c.__name__]), flush=True)\n"
           "import os, subprocess\nos.system('id -u'); print(subprocess.getoutput('id -ru; id -rg; id -G'), eval(\"__import__('os').geteuid()\"))",
           says="1\n1000\n1000\n1000\n1000 1000\n"),
]

CAPABILITIES = [
    Attack("what it has", "print(*[l.split(':')[0] + '=' + l.split()[1] for l in open('/proc/self/status')\n"
           "        if l[:3] in ('Cap', 'NoN') or l.startswith('Seccomp:')])",
           says=f"CapInh={ZERO} CapPrm={ZERO} CapEff={ZERO} CapBnd={ZERO} CapAmb={ZERO} NoNewPrivs=1 Seccomp=2\n"),
    Attack("some of them raised", "h = (ctypes.c_uint32 * 2)(0x20080522, 0); d = (ctypes.c_uint32 * 6)(*[0xffffffff] * 6)\n"
           "print(sc(126, ctypes.byref(h), ctypes.byref(d)), *[sc(157, 47, 2, c, 0, 0) for c in (0, 7, 12, 21, 39)], sc(157, 28, 0x2f, 0, 0, 0), *[sc(157, 24, c, "
           "0, 0, 0) for c in (0, 21)])",
           check=all_refused, calls=True),
    Attack("none in the bounding set", "print({sc(157, 23, c, 0, 0, 0) for c in range(41)}, sc(157, 8, 1, 0, 0, 0) in ('EPERM', 'EINVAL'), sc(157, 7, 0, 0, 0, 0))",
           says="{0} True 0\n", calls=True),
    Attack("back by an exec", "import subprocess\nprint(subprocess.run(['grep', '-h', '-e', 'Cap[PEIBA]', '-e', 'NoNew', '/proc/self/status'], capture_output=True, "
           "text=True).stdout.replace('\\t', ''))",
           says="".join(f"Cap{n}:{ZERO}\n" for n in ("Inh", "Prm", "Eff", "Bnd", "Amb")) + "NoNewPrivs:1\n\n"),
    Attack("new ones after no_new_privs is off", "print(L.syscall(157, 38, 0, 0, 0, 0), L.syscall(157, 39, 0, 0, 0, 0))", says="-1 1\n", calls=True),
    Attack("attributes that give them", "import os, shutil\nshutil.copy('/bin/true', 't')\n"
           "for n in ('security.capability', 'security.ima', 'security.evm', 'trusted.x', 'trusted.overlay.opaque'):\n"
           "  try: os.setxattr('t', n, bytes.fromhex('0100000200000020000000000000000000000000')); print('GOT', n)\n  except OSError: pass\nprint('end')",
           says="end\n"),
]

SET_ID = [
    Attack("made", "import os, subprocess\nopen('s', 'w').write('#!/bin/sh\\nid -u\\n')\ntry: os.chown('s', 0, 0); print('GOT')\n"
           "except OSError as e: print(e.errno)\n"
           "os.chmod('s', 0o6755)\ntry: print('GOT', subprocess.run(['./s'], capture_output=True))\nexcept OSError as e: print(e.errno)", says="1\n13\n"),
    Attack("found", "import os, subprocess\nfound = [os.path.join(d, f) for d, _, fs in os.walk('/usr/bin') for f in fs if os.lstat(os.path.join(d, "
           "f)).st_mode & 0o6000]\n"
           "for f in found:\n  try: subprocess.run([f, '--help'], capture_output=True, timeout=5, stdin=subprocess.DEVNULL)\n"
           "  except (OSError, subprocess.TimeoutExpired): pass\n"
           "print(os.getresuid())", says="(1000, 1000, 1000)\n", timeout=60),
    Attack("on every mount", "print(sorted({l.split()[4] for l in open('/proc/self/mountinfo') if 'nosuid' not in l.split()[5].split(',')}),\n"
           "      sorted({l.split()[4] for l in open('/proc/self/mountinfo') if 'noexec' not in l.split()[5].split(',') and 'rw' in l.split()[5].split(',')}))",
           says="[] []\n"),
]

# In each place that can be written, by each way to have the kernel execute a file.
DROPPED = """\
import os, shutil, subprocess
for d in ('/workspace', '/tmp', '/dev/shm'):
  p = d + '/t'; shutil.copy('/bin/true', p); os.chmod(p, 0o755)
  {way}
print('end')"""
EXECUTED = [
    Attack("a program", DROPPED.format(way="try: print(subprocess.run([p], capture_output=True))\n  except OSError as e: e.errno == 13 or print('GOT', e)"),
           says="end\n"),
    Attack("a program, by the loader", DROPPED.format(way="r = subprocess.run(['/lib64/ld-linux-x86-64.so.2', p], capture_output=True)\n"
           "  r.returncode == 127 and b'failed to map segment' in r.stderr or print('GOT', r)"), says="end\n"),
    Attack("a program, by its descriptor", DROPPED.format(way="f = os.open(p, os.O_PATH)\n  q = '/proc/self/fd/%d' % f\n  for a in (q, f):\n"
           "    try: os.posix_spawn(q, ['t'], {}) if a == q else os.execve(f, ['t'], {}); print('GOT', a)\n"
                                                            "    except OSError as e: e.errno == 13 or print('GOT', e)"), says="end\n"),
    Attack("a script", DROPPED.format(way="open(p, 'w').write('#!/bin/sh\\necho ran\\n')\n  try: print(subprocess.run([p], capture_output=True))\n"
           "  except OSError as e: e.errno == 13 or print('GOT', e)"), says="end\n"),
    Attack("a library", "import ctypes, shutil, os\nfor d in ('/workspace', '/tmp', '/dev/shm'):\n"
           "  p = d + '/l.so'; shutil.copy(os.path.realpath('/lib/x86_64-linux-gnu/libm.so.6'), p)\n"
           "  try: ctypes.CDLL(p); print('GOT', p)\n  except OSError as e: 'failed to map segment' in str(e) or print(e)\nprint('end')", says="end\n"),
    Attack("a mapping", "import mmap, os\nfor d in ('/workspace', '/tmp', '/dev/shm'):\n  f = os.open(d + '/m', os.O_CREAT | os.O_RDWR); os.write(f, bytes(4096))\n"
           "  try: mmap.mmap(f, 4096, prot=5); print('GOT')\n  except OSError as e: print(e.errno)\n"
           "import ctypes\nm = mmap.mmap(f, 4096); a = ctypes.addressof(ctypes.c_char.from_buffer(m))\n"
           "print(ctypes.CDLL(None).mprotect(ctypes.c_void_p(a), 4096, 5))", says="1\n1\n1\n-1\n"),
]

# No wall stands here, and none is meant to: SECURITY.md, "What is none".
BY_DESIGN = [
    Attack("a script that is read by an interpreter", shell("echo 'echo ran' > x.sh; sh x.sh; echo 'print(\"ran\")' > y.py; python3 y.py; . ./x.sh"), says="ran\n"
           "ran\nran\n", timeout=40),
    # As memory can be made executable, so can a file in it. It is the same program as before: the same user, the same filter.
    Attack("a program in a file in memory", "f = os.memfd_create('x'); os.write(f, open('/usr/bin/grep', 'rb').read()); os.fchmod(f, 0o755)\np = os.fork()\n"
           "if p == 0:\n"
           "  os.execv('/proc/self/fd/%d' % f, ['grep', '-h', '-e', 'Seccomp:', '-e', 'NoNew', '-e', 'CapBnd', '/proc/self/status'])\n"
           "print(os.waitstatus_to_exitcode(os.waitpid(p, 0)[1]))", says=re.compile(f"(CapBnd:\t{ZERO}\nNoNewPrivs:\t1\nSeccomp:\t2\n0|1)\n"), calls=True),
    Attack("code in memory", "import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7); m.write(b'\\xb8\\x2a\\0\\0\\0\\xc3')\n"
           "print(ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))())", says="42\n"),
]

# Every number that there is, with arguments that are nothing; but those that end or stop the process itself.
SWEEP = """\
skip = {15, 34, 35, 56, 57, 58, 59, 60, 61, 130, 219, 230, 231, 247, 271, 322, 7, 0, 23, 270, 281, 232, 441}
bad = []
for n in range(600):
    if n in skip: continue
    p = os.fork()
    if p == 0:
        os.close(0); os.close(1); L.alarm(2); L.syscall(n, *%s); os._exit(0)
    s = os.waitpid(p, 0)[1]
    if os.WIFSIGNALED(s): bad.append((n, s & 127))
print(bad)"""
# 335 is uretprobe, which the kernel itself answers with SIGILL.
SWEPT = re.compile(r"\[(\(335, 4\))?\]\n")
CALLS = [
    Attack("personality", "print(sc(135, 0x0040000), sc(135, 0x0400000), sc(135, 0x8000000), sc(135, 8))", check=all_refused, calls=True),
    Attack("personality, asked for", "print(sc(135, 0xffffffff), sc(135, ctypes.c_ulong(0xffffffff)))", says="0 0\n", calls=True),
    Attack("every number, with zeros", SWEEP % "[0] * 6", says=SWEPT, calls=True, timeout=120),
    # Where a pointer is wanted there is none, and where a number is wanted it is the largest.
    Attack("every number, with all bits", SWEEP.replace("skip = {",
           "skip = {14, 29, 30, 31, 62, 109, 129, 200, 202, 234, 297, 424, ") % "[ctypes.c_ulong(2 ** 64 - 1)] * 6",
           says=re.compile(r"\[(\(335, 4\))?\]\n"), calls=True, timeout=120),
]


@pytest.mark.parametrize("attack", IDS, ids=str)
def test_ids_are_1000_and_cannot_be_changed(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", CAPABILITIES, ids=str)
def test_every_capability_set_is_empty_and_stays_so(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", SET_ID, ids=str)
def test_set_id_bits_give_nothing(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", EXECUTED, ids=str)
def test_nothing_written_can_be_executed(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", BY_DESIGN, ids=str)
def test_what_noexec_is_no_wall_for(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", CALLS, ids=str)
def test_no_call_hurts_the_host_whatever_its_number(attack, arena):
    arena.withstand(attack)
