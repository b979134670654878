"""A systemd that does one thing: give a process a delegated scope.

Two halves, as with the real one. What lies over /usr/bin/busctl writes down how it was
called, answers, and ends. A thread here, "the manager", then makes the group, marks it,
moves the process, and removes the group when its last process has ended.
"""
import os
import select
import shutil
import subprocess
import threading
import time
from pathlib import Path

TOP = Path("/sys/fs/cgroup")
SLICE = TOP / "system.slice"
MARK = Path("/run/systemd/system")  # what says that systemd is the init
ROOM = Path("/run/fake-systemd")
BUSCTL = "/usr/bin/busctl"

STUB = f"""#!/bin/sh
read -r mode <{ROOM}/mode
cat /proc/$$/environ >{ROOM}/environ
case $mode in
refuse) echo 'Call failed: Access denied' >&2; exit 1 ;;
hang) echo $$ >{ROOM}/hanging; exec sleep 1000 ;;
esac
printf '%s\\n' "$PPID $*" >{ROOM}/requests
"""


class Systemd:
    """`mode` is what busctl does: "grant", "refuse", "hang", or "forget" (it says yes, and
    nothing comes of it). `calls` are the command lines that came as far as the manager."""

    def __init__(self):
        self.calls, self.scopes, self.errors = [], [], []
        self._end = threading.Event()

    def __enter__(self):
        MARK.mkdir(parents=True)
        ROOM.mkdir()
        os.mkfifo(ROOM / "requests")
        self.mode = "grant"
        stub = ROOM / "busctl"
        stub.write_text(STUB)
        stub.chmod(0o755)
        self._place(stub)
        SLICE.mkdir()
        (SLICE / "cgroup.subtree_control").write_text("+cpu +memory +pids")
        self._requests = os.open(ROOM / "requests", os.O_RDWR | os.O_NONBLOCK)
        self._thread = threading.Thread(target=self._manage, daemon=True)
        self._thread.start()
        return self

    def _place(self, stub):
        """Over the host's busctl, or, where it has none, in a layer over its folder."""
        if os.path.exists(BUSCTL):
            self._over = BUSCTL
            subprocess.run(["mount", "--bind", stub, BUSCTL], check=True)
            return
        self._over = "/usr/bin"
        for name in ("upper", "work"):
            (ROOM / name).mkdir()
        shutil.copy(stub, ROOM / "upper" / "busctl")
        subprocess.run(["mount", "-t", "overlay", "overlay", "-o",
                        f"lowerdir=/usr/bin,upperdir={ROOM}/upper,workdir={ROOM}/work", "/usr/bin"],
                       check=True)

    def __exit__(self, *_error):
        self._end.set()
        self._thread.join()
        os.close(self._requests)
        subprocess.run(["umount", "-l", self._over], check=True)
        for scope in self.scopes:
            if scope.exists():
                scope.rmdir()
        SLICE.rmdir()
        shutil.rmtree(ROOM)
        MARK.rmdir()
        assert not self.errors, self.errors

    @property
    def mode(self):
        return (ROOM / "mode").read_text().strip()

    @mode.setter
    def mode(self, word):
        (ROOM / "mode").write_text(word + "\n")

    @property
    def environment(self):
        """What busctl was started with."""
        return (ROOM / "environ").read_bytes()

    def _manage(self):
        while not self._end.is_set():
            if select.select([self._requests], [], [], 0.05)[0]:
                for line in os.read(self._requests, 65536).decode().splitlines():
                    pid, *call = line.split(" ")
                    self.calls.append(call)
                    try:
                        self._grant(int(pid), call)
                    except (OSError, AssertionError) as e:
                        self.errors.append(repr(e))
            for scope in self.scopes:
                self._collect(scope)

    def _grant(self, pid, call):
        if self.mode != "grant":
            return
        where = call.index("call")
        assert call[where + 1:] == [
            "org.freedesktop.systemd1", "/org/freedesktop/systemd1",
            "org.freedesktop.systemd1.Manager", "StartTransientUnit", "ssa(sv)a(sa(sv))",
            f"glovebox-{pid}.scope", "fail", "3", "PIDs", "au", "1", str(pid),
            "Delegate", "b", "true", "CollectMode", "s", "inactive-or-failed", "0"], call
        time.sleep(0.3)  # a job of the manager's queue: busctl has its answer long before
        scope = SLICE / f"glovebox-{pid}.scope"
        scope.mkdir()
        os.setxattr(scope, "user.delegate", b"1")
        (scope / "cgroup.procs").write_text(str(pid))
        self.scopes.append(scope)

    @staticmethod
    def _collect(scope):
        """What the process left in its scope keeps it: rmdir fails on a group with groups."""
        try:
            if "populated 0" in (scope / "cgroup.events").read_text():
                scope.rmdir()
        except OSError:
            pass
