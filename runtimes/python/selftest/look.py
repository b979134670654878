import resource
import signal
import subprocess

status = dict(line.rstrip("\n").split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)

for name in ("user", "pid", "mnt", "ipc", "uts", "cgroup", "net"):
    say("ns." + name, os.readlink("/proc/self/ns/" + name))

say("pid.number", os.getpid())
say("pid.parent", os.getppid())
say("pid.others", len([p for p in os.listdir("/proc") if p.isdigit()]))
say("pid.caller", outcome(os.kill, given["caller"], 0))
say("pid.init", outcome(os.kill, 1, 9))
say("pid.init.memory", outcome(open, "/proc/1/mem", "rb"))
say("pid.init.root", outcome(os.listdir, "/proc/1/root"))
say("uts.name", os.uname().nodename)
say("cgroup.path", " ".join(sorted({line.rstrip("\n").split(":", 2)[2] for line in open("/proc/self/cgroup")})))
say("cgroup.mounted", outcome(os.listdir, "/sys/fs/cgroup"))
say("ipc.shm", " ".join(os.listdir("/dev/shm")) or "empty")
say("mount.canary", outcome(open, given["canary"], "rb"))
say("mount.parents", outcome(os.stat, "/workspace/../../../.." + given["canary"]))
say("mount.root", os.stat("/..").st_ino == os.stat("/").st_ino)

for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
    say("caps." + name, status[name])
say("nnp.status", status["NoNewPrivs"])
say("nnp.prctl", L.prctl(39, 0, 0, 0, 0))
say("nnp.off", "done" if L.prctl(38, 0, 0, 0, 0) == 0 else errno.errorcode[ctypes.get_errno()])
say("seccomp.status", status["Seccomp"])
say("uids.uid", "%d %d %d" % os.getresuid())
say("uids.gid", "%d %d %d" % os.getresgid())
say("uids.groups", len(os.getgroups()))

for name, call in (("setuid", lambda: os.setuid(0)), ("setgid", lambda: os.setgid(0)),
                   ("setgroups", lambda: os.setgroups([0])), ("setresuid", lambda: os.setresuid(0, 0, 0)),
                   ("nice", lambda: os.setpriority(os.PRIO_PROCESS, 0, -20))):
    say("caps." + name, in_child(outcome, call))

open("owned", "w").close()
say("caps.chown", outcome(os.chown, "owned", 0, 0))


def bind_low():
    import socket
    with socket.socket() as s:
        return outcome(s.bind, ("127.0.0.1", 80))


def child_says(text):
    return subprocess.run([sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True).stdout.strip()


say("caps.port", bind_low())
child = dict(line.split(":\t", 1) for line in child_says("print(open('/proc/self/status').read())").split("\n")
             if ":\t" in line)
say("caps.exec", child.get("CapEff", "nothing"))
say("nnp.exec", child.get("NoNewPrivs", "nothing"))
say("seccomp.exec", child.get("Seccomp", "nothing"))

for name in ("CORE", "NOFILE", "MEMLOCK", "MSGQUEUE", "SIGPENDING", "NICE", "RTPRIO", "STACK", "FSIZE", "CPU", "NPROC"):
    kind = getattr(resource, "RLIMIT_" + name)
    hard = resource.getrlimit(kind)[1]
    say("rlimit." + name, "unlimited" if hard == resource.RLIM_INFINITY else hard)
    say("raise." + name, in_child(outcome, resource.setrlimit, kind, (resource.RLIM_INFINITY,) * 2))


def open_many():
    n = 0
    try:
        while n < 5000:
            os.dup(0)
            n += 1
    except OSError as e:
        return word(e)
    return n


def lock_much():
    size = 1 << 20
    L.mmap.restype = ctypes.c_void_p
    at = L.mmap(None, ctypes.c_size_t(size), 3, 0x22, -1, ctypes.c_long(0))
    return "done" if L.mlock(ctypes.c_void_p(at), ctypes.c_size_t(size)) == 0 else errno.errorcode[ctypes.get_errno()]


def write_far():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    f = os.open("far", os.O_CREAT | os.O_WRONLY)
    return outcome(os.pwrite, f, b"x", 1 << 40)


def dump_core():
    pid = os.fork()
    if pid == 0:
        os.kill(os.getpid(), signal.SIGSEGV)
    return "core" if os.WCOREDUMP(os.waitpid(pid, 0)[1]) or [f for f in os.listdir(".") if "core" in f] else "none"


say("rlimit.files", in_child(open_many))
say("rlimit.lock", in_child(lock_much))
say("rlimit.far", in_child(write_far))
say("rlimit.dump", in_child(dump_core))

say("api.environment", " ".join(sorted(set(os.environ) - {"LC_CTYPE"})))
say("api.directory", os.getcwd())
say("api.files", " ".join(sorted(os.listdir("."))))


def open_numbers():
    found = []
    for n in range(3, 256):
        try:
            os.fstat(n)
            found.append(n)
        except OSError:
            pass
    return found or "none"


say("api.descriptors", open_numbers())
say("api.session", os.getsid(0) == os.getpid())
say("api.umask", oct(os.umask(0o22)))
await_outside()
