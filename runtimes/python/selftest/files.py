import shutil
import socket
import stat
import subprocess

PLACES = ("/workspace", "/tmp", "/dev/shm")


def name_of(path):
    return path.strip("/").replace("/", ".") or "top"


def create(path):
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600))


for folder in ("/", "/usr", "/usr/bin", "/usr/lib", "/etc", "/dev", "/var", "/home", "/run", "/proc"):
    say("create." + name_of(folder), outcome(create, folder + "/selftest"))
for what, call in (("write", lambda p: os.open(p, os.O_WRONLY)), ("truncate", lambda p: os.truncate(p, 0)),
                   ("chmod", lambda p: os.chmod(p, 0o777)), ("utime", os.utime), ("unlink", os.unlink),
                   ("setxattr", lambda p: os.setxattr(p, "user.x", b"1")),
                   ("rename", lambda p: os.rename(p, p + "2")),
                   ("link", lambda p: os.link(p, "/usr/bin/selftest"))):
    say("env." + what, outcome(call, "/usr/bin/env"))
for path in ("/", "/usr/bin", "/usr/lib/python3", "/dev", "/proc"):
    say("readonly." + name_of(path), bool(os.statvfs(path).f_flag & os.ST_RDONLY))
for path in ("/", "/usr/bin", "/dev", "/proc", *PLACES):
    say("nosuid." + name_of(path), bool(os.statvfs(path).f_flag & os.ST_NOSUID))
say("dev.names", " ".join(sorted(os.listdir("/dev"))))
say("dev.null", stat.S_ISCHR(os.stat("/dev/null").st_mode))


def execute(path):
    shutil.copy("/bin/true", path)
    os.chmod(path, 0o755)
    return outcome(subprocess.call, [path])


def load(path):
    shutil.copy("/bin/true", path)
    at = os.open(path, os.O_RDONLY)
    L.mmap.restype = ctypes.c_void_p
    r = L.mmap(None, ctypes.c_size_t(4096), 5, 2, at, ctypes.c_long(0))
    return errno.errorcode[ctypes.get_errno()] if r == ctypes.c_void_p(-1).value else "done"


for folder in PLACES:
    say("exec." + name_of(folder), in_child(execute, folder + "/true"))
    say("map." + name_of(folder), in_child(load, folder + "/mapped"))

# Without Landlock the kernel would say EPERM, for want of a capability.
for folder in PLACES:
    say("char." + name_of(folder), outcome(os.mknod, folder + "/c", stat.S_IFCHR | 0o600, os.makedev(1, 1)))
    say("block." + name_of(folder), outcome(os.mknod, folder + "/b", stat.S_IFBLK | 0o600, os.makedev(8, 0)))
    say("whiteout." + name_of(folder), outcome(os.mknod, folder + "/w", stat.S_IFCHR | 0o600, os.makedev(0, 0)))

# /proc ----------------------------------------------------------------------------


def seen(path):
    try:
        if stat.S_ISDIR(os.stat(path).st_mode):
            return "covered" if set(os.listdir(path)) <= {"tmp"} else "open"
        s = os.stat(path)
        return "covered" if s.st_rdev == os.makedev(1, 3) else "open"
    except OSError as e:
        return word(e)


for name in given["proc"]:
    say("proc." + name, seen("/proc/" + name))
for path, label in (("sys/kernel/core_pattern", "core"), ("sys/kernel/modprobe", "modprobe"),
                    ("self/oom_score_adj", "oom"), ("self/uid_map", "map")):
    say("write." + label, outcome(lambda: os.write(os.open("/proc/" + path, os.O_WRONLY), b"x") and 0))
say("sys.absent", outcome(os.listdir, "/sys"))

# The network ----------------------------------------------------------------------


def connect(family, kind, to):
    with socket.socket(family, kind) as s:
        s.settimeout(5)
        return outcome(s.connect, to)


say("net.interfaces", " ".join(sorted(line.split(":")[0].strip() for line in list(open("/proc/net/dev"))[2:])))
say("net.host.tcp", connect(socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", given["tcp"])))
say("net.host.abstract", connect(socket.AF_UNIX, socket.SOCK_STREAM, "\0" + given["abstract"]))
# connect() of a datagram socket looks for a way and sends nothing, also where there is one.
say("net.beyond", connect(socket.AF_INET, socket.SOCK_DGRAM, ("192.0.2.1", 53)))
say("net.metadata", connect(socket.AF_INET, socket.SOCK_DGRAM, ("169.254.169.254", 80)))
say("net.gateway", connect(socket.AF_INET, socket.SOCK_DGRAM, ("10.0.0.1", 53)))
say("net.beyond6", connect(socket.AF_INET6, socket.SOCK_DGRAM, ("2001:db8::1", 53)))
say("net.listeners", len(list(open("/proc/net/tcp"))) - 1)
say("net.routes", len(list(open("/proc/net/route"))) - 1)
say("net.loopback", connect(socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", 9)))
