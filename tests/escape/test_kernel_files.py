"""Threat: files through which the kernel shows or takes more than a program's own. Answer: a /proc of the
cell's own process namespace, of which all that no runtime asks for is covered; no /sys; a /dev of a few
nodes on which no other can be made."""
import re

import pytest

from corpus import Attack, all_refused, failed

NO_GOT = "end\n"

# Tries to write each of PATHS in each way that a file can be changed.
WRITE = """\
import os
for p in {paths!r}:
  for f in (lambda: os.write(os.open(p, os.O_WRONLY), b'1'), lambda: os.write(os.open(p, os.O_RDWR), b'1'),
            lambda: os.truncate(p, 0), lambda: os.chmod(p, 0o777), lambda: os.unlink(p), lambda: os.rename(p, '/workspace/x')):
    try: f(); print('GOT', p)
    except OSError: pass
print('end')"""

# Tells those of PATHS that give a byte.
READ = """\
import os
for p in {paths!r}:
  try: b = os.read(os.open(p, os.O_RDONLY | os.O_NONBLOCK), 64)
  except OSError: continue
  if b: print('GOT', p, b)
print('end')"""

SWITCHES = ("/proc/sys/kernel/core_pattern", "/proc/sys/kernel/modprobe", "/proc/sys/kernel/ns_last_pid", "/proc/sys/vm/overcommit_memory",
            "/proc/sys/vm/drop_caches", "/proc/sys/fs/binfmt_misc/register", "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger",
            "/proc/acpi/wakeup", "/proc/bus/pci", "/proc/irq/default_smp_affinity", "/proc/mtrr")
DEVICES = ("/sys/kernel/uevent_helper", "/sys/fs/cgroup/release_agent", "/sys/fs/cgroup/cgroup.procs", "/sys/power/state",
           "/sys/kernel/security/apparmor/.load", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/dev/sda", "/dev/vda", "/dev/loop-control",
           "/dev/fuse", "/dev/kvm", "/dev/net/tun", "/dev/vsock", "/dev/vhost-vsock", "/dev/userfaultfd", "/dev/cpu_dma_latency", "/dev/uinput")
MEMORY = ("/proc/kcore", "/dev/mem", "/dev/kmem", "/dev/port", "/dev/kmsg", "/proc/kmsg", "/proc/kallsyms", "/proc/modules", "/proc/kpagemap",
          "/proc/kpagecount", "/proc/kpageflags", "/proc/kpagecgroup", "/proc/iomem", "/proc/ioports", "/proc/vmallocinfo", "/proc/slabinfo",
          "/proc/pagetypeinfo", "/proc/buddyinfo", "/proc/zoneinfo", "/proc/timer_list", "/proc/sched_debug", "/proc/keys", "/proc/key-users",
          "/proc/locks", "/proc/interrupts", "/proc/softirqs", "/proc/schedstat", "/proc/diskstats", "/proc/partitions", "/proc/swaps",
          "/proc/cmdline", "/proc/config.gz", "/proc/cgroups", "/proc/vmstat", "/proc/latency_stats", "/proc/sys/kernel/random/boot_id",
          "/sys/kernel/debug/tracing/trace", "/sys/kernel/notes", "/sys/kernel/vmcoreinfo", "/sys/firmware/acpi/tables/DSDT")

OF_THE_HOST = [
    Attack("switches", WRITE.format(paths=SWITCHES), says=NO_GOT),
    Attack("devices and control groups", WRITE.format(paths=DEVICES), says=NO_GOT),
    Attack("memory and state of the kernel", READ.format(paths=MEMORY), says=NO_GOT),
    Attack("directories that are not there", "import os\nprint([d for d in ('/sys', '/sys/fs/cgroup', '/sys/kernel', '/dev/pts', '/dev/mqueue', '/dev/disk',\n"
           "  '/dev/block') if os.path.isdir(d) and os.listdir(d)])", says="[]\n"),
    Attack("a tree of control groups of one's own", "import os\nfor p in ('/sys/fs/cgroup/x', '/proc/x', '/dev/x', '/sys/x'):\n  try: os.mkdir(p); print('GOT', p)\n"
           "  except OSError: pass\nprint(sc(165, b'none', b'/workspace', b'cgroup', 0, b'memory'), sc(165, b'none', b'/workspace', b'cgroup2', 0, 0),\n"
           "  sc(165, b'none', b'/workspace', b'proc', 0, 0), sc(165, b'none', b'/workspace', b'sysfs', 0, 0))", says="EPERM " * 3 + "EPERM\n", calls=True),
]


def shows(own):
    """What it tells of these files is nothing: it could open none, or is none."""
    return f"import os\nfor f in {own!r}:\n  p = '/proc/1/' + f\n" \
        "  try:\n    b = os.readlink(p) if f in ('exe', 'root', 'cwd') or '/' in f else os.listdir(p) if f in ('fd', 'fdinfo', 'map_files') else open(p, 'rb').read(20)\n" \
        "    print('GOT', f, b)\n  except OSError: pass\nprint('end'); raise SystemExit(5)"


OF_OTHERS = [
    Attack("what init is", shows(("exe", "root", "cwd", "ns/mnt", "ns/pid", "ns/user", "ns/net", "fd", "fdinfo", "map_files")), failed(5), NO_GOT),
    Attack("what init holds", shows(("mem", "environ", "maps", "smaps", "pagemap", "auxv", "stack", "syscall", "io", "personality", "timers")), failed(5), NO_GOT),
    Attack("init by the ways round", "import os\nfor p in ('/proc/1/root/etc', '/proc/1/cwd', '/proc/1/task/1/root', '/proc/1/task/1/fd', '/proc/1/fd/3'):\n"
           "  for f in (os.listdir, os.readlink, os.chdir, os.stat, lambda q: os.open(q, os.O_PATH)):\n    try: f(p); print('GOT', p)\n    except OSError: pass\n"
           "print('end')", says=NO_GOT),
    Attack("init written to", "import os\nfor f in ('mem', 'oom_score_adj', 'comm', 'clear_refs', 'uid_map', 'coredump_filter', 'autogroup', 'timerslack_ns', "
           "'attr/current'):\n"
           "  try: os.write(os.open('/proc/1/' + f, os.O_WRONLY), b'1'); print('GOT', f)\n  except OSError: pass\nprint('end')", says=NO_GOT),
    Attack("through its own root", "import os\nfor p in ('/proc/self/root/../../etc/shadow', '/proc/self/cwd/../../../etc/shadow', "
           "'/proc/thread-self/root/etc/shadow',\n"
           "          '/proc/self/task/self/root/root', '/proc/self/cwd/../root/.bashrc', '/proc/self/root/proc/1/root/etc/hostname'):\n"
           "  try: print('GOT', p, open(p).read(9))\n  except OSError: pass\n"
           "print(os.stat('/proc/self/root').st_ino == os.stat('/').st_ino == os.stat('/..').st_ino)", says="True\n"),
    # CVE-2024-21626: a directory of the host's that set-up left open.
    Attack("a directory that was left open", "import os\nfor fd in range(1024):\n"
           "  if fd > 2:\n    try: os.fstat(fd); print('GOT', fd)\n    except OSError: pass\n"
           "  for q in ('', '/../../etc/shadow', '/../../../../etc/hostname'):\n"
           "    if q:\n      try: print('GOT', open('/proc/self/fd/%d' % fd + q).read(1))\n      except OSError: pass\n"
           "print(os.getcwd(), os.listdir('.'), [os.readlink('/proc/self/fd/%d' % i).split(':')[0] for i in (0, 1, 2)])",
           says=re.compile(r"/workspace \['main\.py'\] \['\S+', 'pipe', 'pipe'\]\n")),
]

OF_ITSELF = [
    Attack("a lower mark for the kill", "import os\nfor v in (b'-1000', b'-500', b'-1'):\n"
           "  for p in ('/proc/self/oom_score_adj', '/proc/self/oom_adj'):\n    try: os.write(os.open(p, 1), v); print('SET')\n    except OSError: pass\n"
           "print('end')", says=NO_GOT),
    Attack("its id maps", "import os\nfor p in ('uid_map', 'gid_map', 'projid_map', 'setgroups'):\n  for v in (b'0 0 1', b'1000 0 1', b'allow'):\n"
           "    try: os.write(os.open('/proc/self/' + p, 1), v); print('SET', p)\n    except OSError: pass\nprint('end')", says=NO_GOT),
    # Without CAP_SYS_ADMIN the kernel gives zeros for the numbers of page frames.
    Attack("where its pages lie", "import os, struct\nf = os.open('/proc/self/pagemap', 0)\nb = bytearray(b'x' * 8192)\nimport ctypes\n"
           "at = ctypes.addressof(ctypes.c_char.from_buffer(b))\n"
           "print({e & ((1 << 55) - 1) for i in range(2) for e in struct.unpack('Q', os.pread(f, 8, ((at >> 12) + i) * 8))})", says="{0}\n"),
    Attack("a turn by the group of its session", "import os\ntry: os.write(os.open('/proc/self/autogroup', 1), b'-20'); print('SET')\nexcept OSError: print('no')",
           says="no\n"),
    Attack("a label", "import os\nfor n in ('current', 'exec', 'fscreate', 'sockcreate', 'keycreate', 'prev', 'apparmor/exec', 'smack/current'):\n"
           "  try: os.write(os.open('/proc/self/attr/' + n, 1), b'unconfined'); print('SET', n)\n  except OSError: pass\nprint('end')", says=NO_GOT),
]

NODES = [
    Attack("made", "import os\nfor d in ('/workspace', '/tmp', '/dev/shm', '/dev'):\n  for kind in (0o60666, 0o20666):\n"
           "    for at in ((8, 0), (253, 0), (1, 1), (1, 2), (1, 3), (1, 5), (5, 0), (5, 1), (7, 0), (10, 200), (10, 229), (10, 232), (0, 0)):\n"
           "      try: os.mknod(d + '/n', kind, os.makedev(*at)); print('GOT', d, kind, at)\n      except OSError: pass\nprint('end')", says=NO_GOT),
    Attack("found", "import os, stat\nfor n in sorted(os.listdir('/dev')):\n  s = os.stat('/dev/' + n)\n"
           "  print(n, 'node %d %d' % (os.major(s.st_rdev), os.minor(s.st_rdev)) if stat.S_ISCHR(s.st_mode) else 'block' if stat.S_ISBLK(s.st_mode) else '-')\n"
           "for d, _, fs in os.walk('/'):\n  if d.split('/')[1] not in ('proc', 'dev'):\n"
           "    for f in fs:\n      m = os.lstat(os.path.join(d, f)).st_mode\n      if stat.S_ISCHR(m) or stat.S_ISBLK(m): print('GOT', d, f)",
           says=re.compile(r"fd -\nfull node 1 7\nnull node 1 3\nrandom node 1 8\nshm -\nstderr \S.*\nstdin \S.*\nstdout \S.*\nurandom node 1 9\nzero node 1 5\n"),
           timeout=60),
    Attack("changed", "import os\nfor n in os.listdir('/dev'):\n  p = '/dev/' + n\n"
           "  for f in (lambda: os.unlink(p), lambda: os.chmod(p, 0), lambda: os.chown(p, 1000, 1000), lambda: os.rename(p, p + '2')):\n"
           "    try: f(); print('GOT', p)\n    except OSError: pass\nprint('end')", says=NO_GOT),
    Attack("talked to", "r = [sc(16, os.open(p, os.O_RDONLY), c, ctypes.create_string_buffer(64)) for p in ('/dev/null', '/dev/zero', '/dev/urandom')\n"
           "     for c in (0x5207, 0x5206, 0x40085203, 0x5204, 0x1260, 0xAE01)]\nprint(*r)", says=re.compile(r"((ENOTTY|EPERM)[ \n])+"), calls=True),
    Attack("a disk that is full, and zeros without an end", "import os\nf = os.open('/dev/full', 1)\ntry: os.write(f, b'x')\nexcept OSError as e: print(e.errno)\n"
           "print(sum(os.read(os.open('/dev/zero', 0), 1 << 20)), os.write(os.open('/dev/null', 1), bytes(1 << 20)))", says="28\n0 1048576\n"),
]

# An argument of 32 bits: the kernel ignores the upper half, and so must who looks at it.
TERMINAL = [
    Attack("its input queue", "print(sc(16, 0, 0x5412, b'x'), sc(16, 1, 0x541C, b'\\3'), sc(16, 2, 0x5412, b'x'))", check=all_refused, calls=True),
    Attack("its input queue, with bits above", "print(*[sc(16, fd, ctypes.c_ulong(high << 32 | call), b'x') for fd in (0, 1, 2) for high in (0xdead, "
           "1 << 31) for call in (0x5412, 0x541C)])",
           check=all_refused, calls=True),
    Attack("one of its own", "for p in ('/dev/ptmx', '/dev/pts/ptmx', '/dev/tty', '/dev/console', '/dev/tty0'):\n  try: os.open(p, os.O_RDWR); print('GOT', p)\n"
           "  except OSError: pass\n"
           "try: os.openpty(); print('GOT')\nexcept OSError: pass\nprint(sc(16, 0, 0x540E, 1), sc(16, 0, 0x5422, 0), [os.isatty(i) for i in range(3)])",
           says=re.compile(r"(ENOTTY|EPERM) (ENOTTY|EPERM) \[False, False, False\]\n"), calls=True),
]


@pytest.mark.parametrize("attack", OF_THE_HOST, ids=str)
def test_the_hosts_state_and_switches_are_not_there(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", OF_OTHERS, ids=str)
def test_links_into_other_processes_lead_nowhere(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", OF_ITSELF, ids=str)
def test_its_own_files_give_it_no_more_than_it_has(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", NODES, ids=str)
def test_devices_are_the_few_that_do_no_harm(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", TERMINAL, ids=str)
def test_there_is_no_terminal_to_type_into(attack, arena):
    arena.withstand(attack)
