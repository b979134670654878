"""A server of one's own, started for a test module and taken down after it."""
import fcntl
import http.client
import itertools
import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

from harness import census
from harness.poll import DEADLINE_S, PATIENCE, wait_for
from harness.reply import Reply

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = os.environ.get("GLOVEBOX_PROGRAM") or str(ROOT / "build" / "glovebox")
# In the service's environment, and never to be seen in any answer.
CANARY = "canary-5f1d7c-of-the-service"
LISTENING = re.compile(r"^Glovebox is listening on (\S+)")
# What an answer may take beyond the run's own limit: set-up, teardown of a cell that
# filled its memory, and two busy cores.
GRACE_S = 20.0 * PATIENCE
# How programs are started where a test does not say: warm, in a ready cell of the pool; or
# cold, in a cell that is made when it is needed. A test's own flags come later, and win.
START = os.environ.get("GLOVEBOX_TEST_START", "warm")
START_FLAGS = {"warm": [], "cold": ["--cold", "--pool-size", "0"]}[START]

# Rules of tests/lib/without.c: the servers of the tests run on a kernel that lacks these.
WITHOUT = os.environ.get("GLOVEBOX_TEST_WITHOUT", "").split()
# And flags that they need there.
MORE_FLAGS = os.environ.get("GLOVEBOX_TEST_FLAGS", "").split()

_bases = itertools.count(100_000_000 + (os.getpid() % 2_000) * 28 * census.UID_RANGE,
                         census.UID_RANGE)


def on_a_kernel_without(rules):
    """What to put in front of a command, so that it meets such a kernel."""
    build = os.environ.get("GLOVEBOX_BUILD") or str(ROOT / "build")
    return [f"{build}/tests/torture/without", *rules, "--"] if rules else []


class Answer:
    """An HTTP answer, whatever its status."""

    def __init__(self, status, headers, body, wall_s):
        self.status, self.headers, self.body, self.wall_s = status, headers, body, wall_s

    def json(self):
        return json.loads(self.body.decode("utf-8"))

    def __repr__(self):
        return f"<{self.status} {dict(self.headers)} {self.body[:600]!r}>"


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self._path)


class Server:
    """`glovebox serve`, its address, and what it holds on the host."""

    def __init__(self, *flags, listen="127.0.0.1:0", env=None, stderr=None, preexec=None,
                 without=WITHOUT, program=None):
        self.uid_base = next(_bases)
        self.listen = listen
        self.flags = [*START_FLAGS, *MORE_FLAGS, *flags, "--uid-base", str(self.uid_base)]
        self.env = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8",
                    "GLOVEBOX_CANARY_SECRET": CANARY, **(env or {})}
        self.exchanges = []
        self.groups = {}
        self.address = None
        self.process = None
        self._log = tempfile.TemporaryFile()
        # log() moves the offset that the server's own descriptor shares.
        fcntl.fcntl(self._log, fcntl.F_SETFL, os.O_RDWR | os.O_APPEND)
        self._stderr = stderr or self._log  # something else: log() stays empty
        self._preexec = preexec
        self._without = list(without)
        self._program = program or PROGRAM
        self._printed = []

    # Life ---------------------------------------------------------------------

    def start(self):
        self.launch()
        wait_for("the line with the address", self._listening)
        wait_for("a ready /health", self.is_ready)
        self.groups = census.instance_groups(self.pid)
        return self

    def launch(self):
        """Start the program and return at once."""
        argv = [*on_a_kernel_without(self._without), self._program, "serve", "--listen", self.listen, *self.flags]
        self.process = subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=self._stderr, env=self.env, start_new_session=True,
                                        preexec_fn=self._preexec)
        threading.Thread(target=self._read_stdout, daemon=True).start()

    def _read_stdout(self):
        for raw in self.process.stdout:
            self._printed.append(raw.decode("utf-8", "replace"))

    def _listening(self):
        for line in list(self._printed):
            m = LISTENING.match(line)
            if m:
                self.address = m.group(1)
                return True
        self.must_live()
        return False

    def must_live(self):
        if self.process.poll() is not None:
            raise AssertionError(f"the server ended with {self.process.returncode}:\n{self.log()}")

    def is_ready(self):
        self.must_live()
        try:
            return self.request("GET", "/health", timeout=5).status == 200
        except OSError:
            return False

    def stop(self, sig=signal.SIGTERM):
        """Send the signal, await the end, and return the exit code."""
        if self.process.poll() is None:
            self.groups.update(census.instance_groups(self.pid))
            self.process.send_signal(sig)
        try:
            return self.process.wait(timeout=60 * PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"signal {sig} did not end the server:\n{self.log()}") from None

    def must_leave_nothing(self):
        """After the end: no process, group or mount of this server."""
        wait_for("the server's last process to go",
                 lambda: not census.processes(self.uid_base, self.pid) or None)
        wait_for("the server's groups to go", lambda: not census.living_groups(self.groups))

    @property
    def pid(self):
        return self.process.pid

    @property
    def front(self):
        (pid,) = census.role_pids(self.pid, "front")
        return pid

    def log(self):
        # By place: the offset is the server's too, and each line that it writes moves it.
        size = os.fstat(self._log.fileno()).st_size
        return os.pread(self._log.fileno(), size, 0).decode("utf-8", "replace")

    # Talk ---------------------------------------------------------------------

    @property
    def url(self):
        return self.address

    @property
    def port(self):
        return int(self.address.rsplit(":", 1)[1].rstrip("/"))

    def connection(self, timeout=120.0):
        if self.listen.startswith("unix:"):
            return _UnixConnection(self.listen[len("unix:"):], timeout)
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout)

    def socket(self, timeout=60.0):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)

    def request(self, method, path, body=None, headers=None, timeout=120.0):
        """One request on a connection of its own; bytes or a JSON value as body."""
        head = {"Connection": "close", **(headers or {})}
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body, ensure_ascii=False).encode("utf-8")
            head.setdefault("Content-Type", "application/json")
        began = time.monotonic()
        conn = self.connection(timeout)
        try:
            try:
                conn.request(method, path, body=body, headers=head)
            except (BrokenPipeError, ConnectionResetError):
                pass  # it may answer 413 and close before it has read a large body
            r = conn.getresponse()
            answer = Answer(r.status, r.headers, r.read(), time.monotonic() - began)
        finally:
            conn.close()
        assert CANARY.encode() not in answer.body, "the service's environment leaked"
        self.exchanges.append((method, path, body, answer))
        return answer

    def post(self, body, headers=None, timeout=120.0):
        """POST /execute with exactly this body."""
        head = {"Content-Type": "application/json", **(headers or {})}
        return self.request("POST", "/execute", body, head, timeout)

    def execute(self, code, **fields):
        """Run it; the parsed and checked 200 reply."""
        answer = self.post({"code": code, **fields}, timeout=fields.get("timeout_seconds", 3) + 60 * PATIENCE)
        assert answer.status == 200, answer
        reply = Reply(answer.json(), answer.wall_s).check()
        bound = reply["limits"]["timeout_seconds"] + GRACE_S
        assert answer.wall_s <= bound, f"answered after {answer.wall_s:.1f} s, bound {bound:.1f} s"
        return reply

    def run(self, code, **fields):
        """execute() with room to breathe, for tests that are not about limits."""
        return self.execute(code, **{"timeout_seconds": 30, "memory_limit_mb": 128,
                                     "cpu_limit": 1, **fields})

    def health(self):
        return self.request("GET", "/health", timeout=30)

    # Count --------------------------------------------------------------------

    def held(self):
        """What the server holds now, as counts."""
        processes = census.processes(self.uid_base, self.pid)
        return {
            "processes": len(processes),
            "namespaces": len(census.namespaces(processes)),
            "host IPC objects": census.ipc_objects(),
            "leaves": len(census.leaves(census.instance_groups(self.pid))),
            "mounts": census.mount_count(self.pid),
            "host mounts": len(census.mounts()),
            "supervisor descriptors": census.descriptors(self.pid),
            "front descriptors": census.descriptors(self.front),
        }

    def is_idle(self):
        """Whether it says that nothing runs or waits, and that its pool is as it should be."""
        h = self.health().json()
        return (h["running"], h["queued"]) == (0, 0) and h["ready_cells"] == h["pool_size"] and \
            h["warm"] in ("on", "off")

    def rest(self):
        """held(), once it is idle, no program lives and the counts stand still."""
        last = []

        def still():
            if not self.is_idle():
                last.clear()
                return False
            last.append(self.held())
            return not self.programs() and len(last) >= 5 and last[-5:] == [last[-1]] * 5

        try:
            wait_for("the server to come to rest", still)
        except AssertionError as e:
            raise AssertionError(f"{e}; {self.health()}; {last[-3:]}; {self.log()[-2000:]}") from None
        return last[-1]

    def settles_to(self, before, deadline_s=DEADLINE_S):
        """Wait until the server is idle and holds no more than `before`."""
        now = {}

        def settled():
            idle = self.is_idle()
            now.update(self.held())
            return idle and all(now[k] <= before[k] for k in before)

        try:
            wait_for("the census to be as before", settled, deadline_s)
        except AssertionError:
            raise AssertionError(f"something leaked: before {before}, now {now}; "
                                 f"{census.processes(self.uid_base, self.pid)}; "
                                 f"{census.opened(self.front)}; {self.health()}") from None

    def programs(self):
        """Pids of untrusted interpreters that live now."""
        return census.program_processes(self.uid_base)

    def kill_programs(self):
        """End the programs that live now, as somebody on the host could."""
        for pid in self.programs():
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
