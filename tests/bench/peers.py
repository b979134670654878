"""Who is compared: Glovebox, the bare interpreter, and the sandboxes found on PATH.

Every peer is asked for the same: 256 MB, 32 processes, no network, a read-only view of the
host, an unprivileged user, one CPU or more. Where a tool has no memory limit of its own it
gets 1 GiB of address space."""
import json
import os
import shutil
import subprocess

from programs import ENVIRONMENT, PYTHON

TIMEOUT_S = 60
MEMORY_MB = 256
ADDRESS_SPACE_MB = 1024
PIDS = 32
COLUMNS = ("latency_ns", "faults", "cpu_us", "queue_us", "setup_us", "run_us", "teardown_us", "memory_bytes")


class Measured:
    """What one slice of measuring brought."""

    def __init__(self, report):
        self.elapsed_ns, self.wrong, self.why = report["elapsed_ns"], report["wrong"], report["why"]
        self.samples = [dict(zip(COLUMNS, row)) for row in report["samples"]]


class Bench:
    """What all peers need: the load client and a folder for the programs."""

    def __init__(self, client, folder, pause_ms):
        self.client, self.folder, self.pause_ms = client, folder, pause_ms
        # matplotlib draws without a window, as in the image, and keeps its list of fonts from run to run.
        self.environment = {**ENVIRONMENT, "HOME": os.environ.get("HOME", "/"), "MPLBACKEND": "agg",
                            "MPLCONFIGDIR": os.path.join(folder, "matplotlib")}

    def write(self, name, text):
        path = os.path.join(self.folder, name)
        with open(path, "w", encoding="utf-8") as f:
            f.write(text)
        return path

    def prepare(self, programs):
        for p in programs:
            self.write(f"{p.name}.py", p.code)
            self.write(f"{p.name}.expect", p.expect)
            self.write(f"{p.name}.json", json.dumps(p.body()))
            self.prepare_files(p)

    def prepare_files(self, program):
        """Its working directory with its files, and what the file begins with that it leaves there."""
        if not program.inputs:
            return
        os.mkdir(self.path(program, "work"))
        for name, text in program.inputs:
            self.write(os.path.join(f"{program.name}.work", name), text)
        for kind in ("http", "command"):
            with open(self.path(program, f"begins.{kind}"), "wb") as f:
                f.write(program.begins(in_reply=kind == "http"))

    def path(self, program, kind):
        return os.path.join(self.folder, f"{program.name}.{kind}")

    def run(self, argv, cwd=None):
        done = subprocess.run(argv, env=self.environment, stdin=subprocess.DEVNULL, capture_output=True,
                              text=True, check=False, cwd=cwd)
        if done.returncode != 0:
            return Measured({"elapsed_ns": 0, "wrong": 1, "samples": [],
                             "why": f"the client ended with {done.returncode}: {done.stderr.strip()[-200:]}"})
        return Measured(json.loads(done.stdout))

    def pause(self, paced):
        return ["-p", str(self.pause_ms)] if paced else []

    def load(self, kind, program, clients, seconds, *options):
        """The client's arguments. One client warms up; many would only do everything twice."""
        if program.leaves:
            options += ("-f", f"{program.leaves[0]}:{self.path(program, f'begins.{kind}')}")
        return [self.client, kind, "-c", str(clients), "-s", f"{max(seconds, 0.001):.3f}", "-w",
                "1" if clients == 1 else "0", "-e", self.path(program, "expect"), *options]


class Glovebox:
    def __init__(self, bench, name, server, pool, fields=None):
        self.bench, self.name, self.server, self.pool = bench, name, server, pool
        self.fields = fields or {}
        self.weight = 1 if name.endswith("--cold") or fields else 2
        groups = [g for g in server.groups if "/pids/" in g or "/unified/" in g or "/memory/" in g]
        self.group = sorted(groups or server.groups)[0]

    def rest(self):
        """Until the pool is full and no cell is being made: the next peer gets the machine."""
        subprocess.run([self.bench.client, "rest", "-r", f"{self.group}:{self.pool}"], check=False)

    def measure(self, program, clients, seconds, paced):
        body = self.bench.path(program, "json")
        if self.fields:
            body = self.bench.write(f"{program.name}.more.json", json.dumps({**program.body(), **self.fields}))
        m = self.bench.run([*self.bench.load("http", program, clients, seconds, *self.bench.pause(paced)),
                            str(self.server.port), body])
        self.rest()
        return m


class WarmFork:
    def __init__(self, bench, name, modules):
        self.bench, self.name, self.modules = bench, name, modules

    def measure(self, program, clients, seconds, paced):
        return self.bench.run([PYTHON, os.path.join(os.path.dirname(os.path.abspath(__file__)), "warm_fork.py"),
                               str(clients), f"{seconds:.3f}", str(self.bench.pause_ms if paced else 0),
                               self.bench.path(program, "py"),
                               self.bench.path(program, "expect"), *self.modules])


class Command:
    """A program to start for every run. `argv` is what goes in front of `python3 -c CODE`."""

    def __init__(self, bench, name, argv=(), address_space_mb=None, most_clients=None, undo=None):
        self.bench, self.name, self.argv = bench, name, list(argv)
        self.space, self.most_clients, self.undo = address_space_mb, most_clients, undo
        # The usage of a child is what the client's wait4() says. A sandbox does not reap all
        # that it starts: what it says is not the run's.
        self.tells_usage = not argv
        # A bare run takes longer than Glovebox's, and the p99 of fewer runs is a lower quantile:
        # so much of the time gives both about as many.
        self.weight = 1 if argv else 4

    def command(self, program):
        return [*self.argv, PYTHON, "-c", program.code]

    def measure(self, program, clients, seconds, paced):
        options = ["-A", str(self.space)] if self.space else []
        options += self.bench.pause(paced)
        cwd = self.bench.path(program, "work") if program.inputs else None
        return self.bench.run([*self.bench.load("command", program, clients, seconds, *options), "--",
                               *self.command(program)], cwd)


# ---- Sandboxes ----

class Absent(Exception):
    """Why a peer is not measured."""


def found(name):
    path = shutil.which(name)
    if not path:
        raise Absent("not on PATH")
    return path


def bubblewrap(bench):
    return Command(bench, "bubblewrap", [
        found("bwrap"), "--unshare-all", "--unshare-user", "--die-with-parent", "--new-session", "--uid", "1000",
        "--gid", "1000", "--cap-drop", "ALL", "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin",
        "--symlink", "usr/lib", "/lib", "--symlink", "usr/lib64", "/lib64", "--ro-bind-try", "/etc/alternatives",
        "/etc/alternatives", "--ro-bind-try", "/etc/ld.so.cache", "/etc/ld.so.cache", "--proc", "/proc", "--dev", "/dev",
        "--tmpfs", "/tmp", "--chdir", "/tmp", "--"], ADDRESS_SPACE_MB)


def nsjail(bench):
    argv = [found("nsjail"), "-q", "-Mo", "--user", "1000:1000", "--group", "1000:1000", "-T", "/tmp", "-t",
            str(TIMEOUT_S), "--rlimit_as", str(ADDRESS_SPACE_MB), "--rlimit_nproc", str(PIDS), "--keep_env"]
    for path in ("/usr", "/lib", "/lib64", "/bin", "/etc/ld.so.cache", "/etc/alternatives"):
        argv += ["-R", path] if os.path.exists(path) else []
    return Command(bench, "nsjail", [*argv, "--"])


def firejail(bench):
    return Command(bench, "firejail", [
        found("firejail"), "--quiet", "--noprofile", "--net=none", "--read-only=/", "--caps.drop=all", "--seccomp",
        "--nonewprivs", f"--rlimit-as={ADDRESS_SPACE_MB << 20}", f"--rlimit-nproc={PIDS}", "--"])


def isolate(bench):
    program, boxes = found("isolate"), [str(90 + i) for i in range(8)]

    def each(verb):
        for box in boxes:
            subprocess.run([program, "-b", box, f"--{verb}"], capture_output=True, check=False)

    each("init")
    # Box 90 + the client's number.
    return Command(bench, "isolate", [
        program, "-b", "9%w", "-s", f"--processes={PIDS}", f"--time={TIMEOUT_S}", f"--wall-time={TIMEOUT_S}",
        f"--mem={ADDRESS_SPACE_MB * 1024}", "--run", "--"], most_clients=8, undo=lambda: each("cleanup"))


def root_folder(bench):
    """A root that shows the host's /usr: what container tools start from."""
    root = os.path.join(bench.folder, "root")
    if not os.path.isdir(root):
        for name in ("usr", "proc", "sys", "dev", "tmp", "etc", "run", "var"):
            os.makedirs(os.path.join(root, name))
        for name in ("bin", "lib", "lib64", "sbin"):
            os.symlink(f"usr/{name}", os.path.join(root, name))
        for name, text in (("os-release", "ID=bench\n"), ("passwd", "run:x:1000:1000::/tmp:/bin/sh\n"),
                           ("group", "run:x:1000:\n")):
            with open(os.path.join(root, "etc", name), "w", encoding="utf-8") as f:
                f.write(text)
    return root


class Bundle(Command):
    """An OCI runtime: a bundle for each program."""

    def command(self, program):
        folder = os.path.join(self.bench.folder, f"bundle-{program.name}")
        os.makedirs(folder, exist_ok=True)
        names = ("pid", "network", "ipc", "uts", "mount")
        config = {
            "ociVersion": "1.0.0", "hostname": "bench",
            "root": {"path": root_folder(self.bench), "readonly": True},
            "process": {"terminal": False, "user": {"uid": 1000, "gid": 1000}, "cwd": "/tmp",
                        "args": [PYTHON, "-c", program.code], "noNewPrivileges": True,
                        "env": [f"{k}={v}" for k, v in ENVIRONMENT.items()],
                        "capabilities": {"bounding": [], "effective": [], "permitted": []}},
            "mounts": [
                {"destination": "/usr", "type": "bind", "source": "/usr", "options": ["rbind", "ro"]},
                {"destination": "/proc", "type": "proc", "source": "proc", "options": ["nosuid", "noexec", "nodev"]},
                {"destination": "/dev", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=755"]},
                {"destination": "/tmp", "type": "tmpfs", "source": "tmpfs", "options": ["nosuid", "mode=1777"]}],
            "linux": {"namespaces": [{"type": n} for n in names],
                      "resources": {"memory": {"limit": MEMORY_MB << 20}, "pids": {"limit": PIDS}}},
        }
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        return [*self.argv, "run", "-b", folder, "bench-%u"]


def crun(bench):
    return Bundle(bench, "crun", [found("crun")])


def runc(bench):
    return Bundle(bench, "runc", [found("runc")])


def nspawn(bench):
    # One directory, one nspawn at a time.
    return Command(bench, "systemd-nspawn", [
        found("systemd-nspawn"), "-q", "-D", root_folder(bench), "--bind-ro=/usr", "--register=no", "--keep-unit",
        "--read-only", "--private-network", "--as-pid2", "--pipe", "--no-new-privileges=yes", "-u", "run"],
        most_clients=1)


ENGINE = ["--network", "none", "--memory", f"{MEMORY_MB}m", "--pids-limit", str(PIDS), "--read-only",
          "--user", "1000:1000", "--cap-drop", "all", "--security-opt", "no-new-privileges"]


def podman(bench):
    program = found("podman")
    return Command(bench, "podman run", [program, "run", "--rm", *ENGINE, "--log-driver", "none", "-v",
                                         "/usr:/usr:ro", "--rootfs", root_folder(bench)])


def docker(bench):
    program, image = found("docker"), os.environ.get("BENCH_IMAGE", "")
    if subprocess.run([program, "version"], capture_output=True, check=False).returncode != 0:
        raise Absent("its engine does not run")
    if not image:
        raise Absent(f"BENCH_IMAGE names no image with {PYTHON}")
    return Command(bench, "docker run", [program, "run", "--rm", *ENGINE, image])


SANDBOXES = {"bubblewrap": bubblewrap, "nsjail": nsjail, "isolate": isolate, "firejail": firejail, "crun": crun,
             "runc": runc, "systemd-nspawn": nspawn, "podman": podman, "docker": docker}


def sandboxes(bench, hello):
    """(peers that run hello right, {name: why the others are not here})."""
    here, absent = [], {}
    for name, make in SANDBOXES.items():
        try:
            peer = make(bench)
        except Absent as why:
            absent[name] = str(why)
            continue
        tried = peer.measure(hello, 1, 0.001, False)
        if tried.wrong:
            absent[name] = f"found, but does not run here: {tried.why}"
            if peer.undo:
                peer.undo()
            continue
        here.append(peer)
    return here, absent
