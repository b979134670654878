"""Threat: leaving the cage. Answer: a filter that gives neither namespaces nor mounts nor the large
interfaces of the kernel, no capability, and a root in which no door of the host stands."""
import re

import pytest

from corpus import SUCCESS, Attack, all_refused, killed_by


def calls(name, *of, **more):
    """Raw calls, of which each must be refused."""
    return Attack(name, f"print({', '.join(of)})", calls=True, check=all_refused, **more)


NAMESPACES = [
    calls("a user of one's own", "sc(272, 0x10000000)", "sc(56, 0x10000000 | 17, 0, 0, 0, 0)", "sc(272, 0x10020000)"),
    calls("each of them", "*[sc(272, f) for f in (0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000, 0x80)]"),
    calls("each of them, for a child", "*[sc(56, f | 17, 0, 0, 0, 0) for f in (0x20000, 0x40000000, 0x20000000, 0x8000000, 0x4000000, 0x2000000)]"),
    calls("flags that lie in memory", "*[sc(435, ctypes.byref((ctypes.c_uint64 * 11)(f, 0, 0, 0, 17)), 88) for f in (0x10000000 | 0x20000, 0x200000000, 0)]"),
    calls("one that exists", "*[sc(308, os.open('/proc/self/ns/' + n, 0), 0) for n in ('mnt', 'pid', 'net', 'user', 'uts', 'ipc', 'cgroup', 'time')]",
          "sc(308, sc(434, os.getpid(), 0), 0x10000000)"),
    calls("its flags with bits above", "*[sc(272, ctypes.c_ulong(0xdead << 32 | 0x10000000)), sc(56, ctypes.c_ulong(1 << 34 | 0x10000000 | 17), 0, 0, 0, 0)]"),
    Attack("by a program that makes them", "import subprocess\n"
           "for argv in (['unshare', '-U', 'id'], ['unshare', '-rm', 'id'], ['nsenter', '-t', '1', '-a', 'id'], ['chroot', '/workspace', 'id']):\n"
           "  try: r = subprocess.run(argv, capture_output=True)\n  except OSError: continue\n"
           "  if r.returncode == 0 or b'uid=0' in r.stdout: print('GOT', argv, r)\n"
           "print([l.split()[1] for l in open('/proc/self/status') if l[:6] == 'CapEff'])", says="['0000000000000000']\n", timeout=40),
]

MOUNTS = [
    calls("made", "sc(165, b'none', b'/workspace', b'tmpfs', 0, 0)", "sc(165, b'/', b'/workspace', 0, 4096, 0)",
           "sc(165, b'/dev/sda', b'/workspace', b'ext4', 0, 0)",
          "sc(165, b'x', b'/workspace', b'overlay', 0, b'lowerdir=/,upperdir=/tmp,workdir=/tmp')", "sc(165, b'x', b'/workspace', b'fuse', 0, b'fd=0')"),
    calls("changed", "*[sc(165, 0, p, 0, f, 0) for p in (b'/', b'/usr/bin', b'/dev', b'/proc', b'/workspace') for f in (32 | 4096, 1 << 18, 1 << 20, 8192)]"),
    calls("taken away", "*[sc(166, p, f) for p in (b'/workspace', b'/proc', b'/dev', b'/usr/bin', b'/') for f in (0, 1, 2, 8)]"),
    calls("by the newer calls", "sc(428, -100, b'/', 1)", "sc(429, 0, b'', -100, b'/workspace', 4)", "sc(430, b'tmpfs', 0)", "sc(431, 0, 6, 0, 0, 0)",
           "sc(432, 0, 0, 0)",
          "sc(433, -100, b'/', 0)", "sc(442, -100, b'/', 0, 0, 0)", "sc(467, -100, b'/', 0, 0, 0)"),
    calls("listed", "sc(457, 0, 0, 0, 0)", "sc(458, 0, 0, 0, 0)", "sc(470, 0, 0, 0, 0)",
           "sc(303, -100, b'/workspace', ctypes.create_string_buffer(b'\\x80', 136), ctypes.byref(ctypes.c_int()), 0)"),
    calls("another root", "sc(155, b'/', b'/')", "sc(155, b'/workspace', b'/workspace')", "sc(161, b'/workspace')", "sc(161, b'/proc/self/root')"),
    Attack("the root, written to after that", "r = sc(165, 0, b'/', 0, 32 | 4096, 0)\nfor p in ('/pwn', '/usr/bin/pwn', '/etc/pwn'):\n"
           "  try: open(p, 'w'); print('GOT', p)\n  except OSError as e: print(e.errno)\nprint(r)",
           says="30\n30\n30\nEPERM\n", calls=True),
    # With the number of a file and no path: past every root (the class of the "shocker").
    calls("a file by its number", "*[sc(304, fd, ctypes.create_string_buffer(bytes([8, 0, 0, 0, 1, 0, 0, 0, n, 0, 0, 0]), 136), 0) for fd in (0, 1, os.open('/', "
           "0)) for n in (1, 2, 128)]"),
]

KERNEL = [
    calls("modules", "*[sc(n, 0, 0, 0, 0, 0) for n in (175, 313, 176)]"),
    calls("another kernel", "*[sc(n, 0, 0, 0, 0, 0) for n in (246, 320)]", "*[sc(169, 0xfee1dead, 672274793, c, 0) for c in (0x89abcdef, 0x01234567, 0x4321fedc)]"),
    calls("programs in the kernel", "*[sc(321, c, ctypes.create_string_buffer(128), 128) for c in (0, 5, 18)]",
           "sc(298, ctypes.create_string_buffer(b'\\0' * 4 + b'\\x80', 128), 0, -1, -1, 0)"),
    calls("calls by a ring", "sc(425, 8, ctypes.create_string_buffer(120))", "sc(426, 0, 0, 0, 0, 0)", "sc(427, 0, 0, 0, 0)",
           "sc(206, 8, ctypes.byref(ctypes.c_long()))"),
    calls("faults that wait", "sc(323, 0)", "sc(323, 1)", "sc(323, 0o2000000)"),
    calls("keys", "sc(248, b'user', b'x', b'y', 1, -3)", "sc(249, b'user', b'x', 0, -3)", "*[sc(250, c, -3, 0, 0, 0) for c in (0, 1, 6, 8, 11)]"),
    calls("the host's administration", "sc(167, b'/workspace/main.py', 0)", "sc(168, b'/x')", "sc(163, b'/workspace/main.py')",
           "sc(179, 0x800007, b'/dev/sda', 0, 0)", "sc(443, 0, 0, 0, 0)", "sc(153)"),
    calls("the host's clock and name", "sc(227, 0, ctypes.byref((ctypes.c_long * 2)()))", "sc(164, ctypes.byref((ctypes.c_long * 2)()), 0)",
           "sc(305, 0, ctypes.byref((ctypes.c_long * 64)()))",
          "sc(159, ctypes.byref((ctypes.c_long * 64)()))", "sc(170, b'x', 1)", "sc(171, b'x', 1)"),
    calls("ports of the machine", "sc(172, 3)", "sc(173, 0, 1, 1)", "sc(154, 1, ctypes.create_string_buffer(16), 16)", "sc(205, ctypes.create_string_buffer(16))"),
    calls("old calls", "*[sc(n, 0, 0, 0, 0, 0) for n in (134, 136, 139, 156, 174, 177, 178, 180, 181, 182, 183, 184, 185, 212, 214, 215, 236)]"),
    calls("watching files of others", "sc(300, 0, 0)", "sc(301, 0, 1, 2, -100, b'/')", "*[sc(72, os.open('/usr/bin/env', 0), c, 1) for c in (1024, 1026)]"),
    calls("memory of other nodes", "sc(256, 0, 8, 0, 0)", "sc(279, 0, 0, 0, 0, 0, 0)", "sc(237, 0, 0, 0, 0, 0, 0)", "sc(440, 0, 0, 0, 0, 0)"),
]

# Of a process that is its own user's and has let itself be looked at.
SIBLING = """\
p = os.fork()
if p == 0: time.sleep(60)
r = [{calls}]
os.kill(p, 9)
print(*r)"""
OTHERS = [
    Attack("a sibling traced", SIBLING.format(calls="sc(101, 16, p, 0, 0), sc(101, 0x4206, p, 0, 0), sc(101, 0, 0, 0, 0)"), calls=True, check=all_refused),
    Attack("a sibling's memory", SIBLING.format(calls="sc(310, p, (ctypes.c_void_p * 2)(id(p), 8), 1, (ctypes.c_void_p * 2)(id(p), 8), 1, 0), sc(311, p, 0, 0, 0, "
           "0, 0)"), calls=True, check=all_refused),
    Attack("a sibling's descriptors", SIBLING.format(calls="sc(438, sc(434, p, 0), 1, 0), sc(312, os.getpid(), p, 0, 0, 0), sc(448, sc(434, p, 0), 0)"), calls=True,
           check=all_refused),
    Attack("init", "print(sc(101, 16, 1, 0, 0), sc(310, 1, 0, 0, 0, 0, 0), sc(312, os.getpid(), 1, 0, 0, 0), sc(438, sc(434, 1, 0), 3, 0), sc(302, 1, 7, 0, "
           "ctypes.create_string_buffer(16)))",
           calls=True, check=all_refused),
]

FILTER = [
    calls("another filter", "sc(317, 1, 0, 0)", "sc(317, 1, 8, ctypes.create_string_buffer(16))", "sc(317, 0, 0, 0)",
           "sc(317, 2, 0, ctypes.byref(ctypes.c_int(0x7fc00000)))", "sc(317, 3, 0, ctypes.create_string_buffer(6))",
          "sc(157, 22, 2, 0, 0, 0)", "sc(157, 22, 1, 0, 0, 0)"),
    calls("a way past it", "sc(157, 59, 1, 0, 0, 0)", "sc(157, 35, 1, 0, 0, 0)", "sc(157, 0x59616d61, 1, 0, 0, 0)"),
    calls("what speculation may do", "*[sc(157, 53, k, v, 0, 0) for k in (0, 1, 2) for v in (2, 4, 16)]"),
    calls("Landlock's own calls", "sc(444, 0, 0, 1)", "sc(445, 0, 0, 0, 0)", "sc(446, 0, 0)"),
    # What is not named does not exist, so that libraries fall back. A kill would make unexplained deaths.
    Attack("numbers that no call has", "print(*[sc(n, 0, 0, 0, 0, 0) for n in (471, 511, 600, 1000, 99999, 0x3fffffff)])", says="ENOSYS " * 5 + "ENOSYS\n",
           calls=True),
    # glibc falls back to clone() on this very error.
    Attack("threads without clone3", "import threading\nr = []\nt = [threading.Thread(target=r.append, args=(i,)) for i in range(5)]\n"
           "[x.start() for x in t]; [x.join() for x in t]; print(sorted(r))\n"
           "print(sc(435, ctypes.byref((ctypes.c_uint64 * 11)(0, 0, 0, 0, 17)), 88))", says="[0, 1, 2, 3, 4]\nENOSYS\n", calls=True),
]

# mov eax, 20 (getpid); int 0x80; ret
INT80 = r"b'\xb8\x14\x00\x00\x00\xcd\x80\xc3'"
GATES = [
    Attack("the 32-bit gate", f"import ctypes, mmap\nm = mmap.mmap(-1, 4096, prot=7)\nm.write({INT80})\n"
           "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\nprint('pid', f() > 0)",
           (killed_by("SIGSYS"), killed_by("SIGSEGV"), SUCCESS), re.compile("(pid False\n)?")),
    Attack("the x32 calls", "print(sc(0x40000000 + 41, 40, 1, 0), sc(0x40000000 + 39), sc(0x40000000 + 272, 0x10000000))", (killed_by("SIGSYS"), SUCCESS),
           re.compile(r"((EPERM|ENOSYS) (EPERM|ENOSYS) (EPERM|ENOSYS)\n)?"), calls=True),
    Attack("the old page of calls", "import ctypes\nprint(ctypes.CFUNCTYPE(ctypes.c_long, ctypes.c_void_p)(0xffffffffff600400)(None) > 0)", (killed_by("SIGSEGV"),
           SUCCESS)),
    Attack("numbers with bits above", "L.syscall.restype = ctypes.c_long\nL.syscall.argtypes = [ctypes.c_ulong] * 4\n"
           "print(*[sc(1 << b | n, 0x10000000, 0, 0) for b in (32, 40, 62) for n in (272, 165, 101)])",
           (SUCCESS, killed_by("SIGSYS")), calls=True, check=lambda r: r.stdout == "" or all_refused(r)),
]

DOORS = [
    Attack("services of the host", "import os, socket\nfor p in ('/var/run/docker.sock', '/run/docker.sock', '/run/containerd/containerd.sock', "
           "'/run/crio/crio.sock', '/run/podman/podman.sock',\n"
           "  '/run/systemd/private', '/run/systemd/notify', '/run/dbus/system_bus_socket', '/run/user/0/bus', '/run/user/1000/bus', '/run/udev/control', "
           "'/dev/log', '/tmp/.X11-unix/X0',\n"
           "  '/run/snapd.socket', '/run/glovebox.sock', '/var/lib/lxd/unix.socket'):\n"
           "  for kind in (1, 2, 5):\n    try: socket.socket(socket.AF_UNIX, kind).connect(p); print('GOT', p)\n    except OSError: pass\n"
           "  if os.path.lexists(p): print('THERE', p)\nprint('end')", says="end\n"),
    Attack("folders of the host", "import os\nfor d in ('/run', '/var', '/home', '/root', '/srv', '/opt', '/mnt', '/media', '/boot', '/sys', '/lost+found', "
           "'/host', '/rootfs', '/.oldroot'):\n"
           "  for at, ds, fs in os.walk(d):\n    if fs or os.access(at, os.W_OK): print('GOT', at, fs)\n"
           "print(sorted(n for n in os.listdir('/') if n not in ('dev', 'etc', 'proc', 'tmp', 'usr', 'var', 'workspace')\n"
           "             and not os.path.islink('/' + n) and os.listdir('/' + n)))", says="[]\n"),
    # CVE-2019-5736: the program that made the cage, overwritten through a link to it.
    Attack("the program that made the cage", "import os\nseen = {os.readlink('/proc/self/exe')}\nfor p in ('/proc/self/exe', '/proc/1/exe', '/proc/2/exe'):\n"
           "  for way in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC):\n    try: os.open(p, way); print('GOT', p)\n    except OSError: pass\nprint(seen)",
           says=re.compile(r"\{'/usr/bin/python3[.0-9]*'\}\n")),
    Attack("a link instead of an interpreter", "import os, subprocess\nfor target in ('/proc/1/exe', '/proc/self/exe'):\n"
           "  open('s', 'w').write('#!' + target + '\\n'); os.chmod('s', 0o755)\n"
           "  try: print('GOT', subprocess.run(['/workspace/s'], capture_output=True))\n  except OSError as e: print(e.errno)", says="13\n13\n"),
    Attack("the crash of a program", "import os, resource\nfor v in ((0, 0), (-1, -1), (1 << 30, 1 << 30)):\n"
           "  try: resource.setrlimit(resource.RLIMIT_CORE, v); print('GOT', v)\n  except (OSError, ValueError): pass\n"
           "try: os.open('/proc/sys/kernel/core_pattern', 1); print('GOT')\nexcept OSError: pass\n"
           "print(resource.getrlimit(resource.RLIMIT_CORE), flush=True); os.abort()", killed_by("SIGABRT"), "(1, 1)\n"),
]


@pytest.mark.parametrize("attack", NAMESPACES, ids=str)
def test_no_namespace_can_be_made_or_entered(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", MOUNTS, ids=str)
def test_mounts_can_be_neither_made_nor_changed_nor_gone_round(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", KERNEL, ids=str)
def test_the_large_interfaces_of_the_kernel_are_shut(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", OTHERS, ids=str)
def test_no_process_can_look_into_another(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", FILTER, ids=str)
def test_the_filter_stays_as_it_was_set(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", GATES, ids=str)
def test_no_other_table_of_calls_goes_round_the_filter(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", DOORS, ids=str)
def test_no_door_of_the_host_stands_in_the_cage(attack, arena):
    arena.withstand(attack)
