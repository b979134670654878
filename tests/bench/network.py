"""What a network costs a program: Glovebox's gate beside slirp4netns and pasta, which carry packets of a
network namespace as it does, and beside a program with no namespace of its own.

All reach the same server in another namespace (tests/harness/internet.py), with the same program, in turn
within each round."""
import contextlib
import json
import os
import shutil
import signal
import subprocess

import figures
from report import NETWORK as COLUMNS
from harness.internet import OTHER4, Internet
from harness.poll import wait_for

PORT = 5001
LIMIT_S = 120
BARE, GLOVEBOX, SLIRP, PASTA = "no namespace", "glovebox", "slirp4netns", "pasta"
PYTHON = "/usr/bin/python3"
SERVER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "network_server.py")

# Runs in every peer: how long it takes to connect, to get one byte back, and bytes a second both ways.
PROGRAM = f"""
import json, socket, time
def connect():
    s = socket.create_connection(("{OTHER4}", {PORT}), 20)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s
def times(n, step):
    found = []
    for _ in range(n):
        begin = time.perf_counter()
        step()
        found.append(time.perf_counter() - begin)
    return sorted(found)[n // 2] * 1e3
def download(size):
    s = connect()
    s.sendall(b"D%15d" % size)
    left, begin = size, time.perf_counter()
    while left:
        n = len(s.recv(1 << 18))
        if not n:
            raise SystemExit("cut off")
        left -= n
    return size / (time.perf_counter() - begin) / 1e6
def upload(size):
    s, piece = connect(), bytes(1 << 18)
    begin = time.perf_counter()
    s.sendall(b"U%15d" % size)
    for _ in range(size // len(piece)):
        s.sendall(piece)
    assert s.recv(1) == b"!"
    return size / (time.perf_counter() - begin) / 1e6
def connected():
    connect().close()
s = connect()
s.sendall(b"P%15d" % 0)
def echoed():
    s.sendall(b"x")
    s.recv(1)
print(json.dumps({{"connect_ms": times(N_CONNECT, connected), "echo_ms": times(N_ECHO, echoed), "down_mb_s": download(SIZE),
                  "up_mb_s": upload(SIZE)}}))
"""


class World(Internet):
    """That internet with the one server."""

    def _serve(self, namespace, which):
        if which == "world":
            self.play(namespace, SERVER, PORT)


def told(argv):
    """What the program at the end of `argv` prints."""
    with subprocess.Popen(argv, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          start_new_session=True) as process:
        try:
            out, err = process.communicate(timeout=LIMIT_S)
        except subprocess.TimeoutExpired as why:
            os.killpg(process.pid, signal.SIGKILL)
            raise AssertionError(f"no end in {LIMIT_S} s") from why
    if process.returncode:
        raise AssertionError(f"ended with {process.returncode}: {err.strip()[-300:]}")
    return json.loads(out)


class Peers:
    """Each a function from a program to what it tells; and why one is missing."""

    def __init__(self, make_server, net, folder, stack):
        self.net, self.absent = net, {}
        self.server = make_server("--network", "--network-bytes", "100G", "--network-rate", "10G", "--network-connections", "1024",
                                  "--timeout", "300s", "--cpu", "1", "--memory", "256M", listen=f"unix:{folder}/s", preexec=net.preexec)
        stack.callback(self.server.stop)
        self.server.start()
        self.all = {BARE: self.bare, GLOVEBOX: self.glovebox}
        for name, peer in ((SLIRP, self.slirp), (PASTA, self.pasta)):
            if not shutil.which(name):
                self.absent[name] = "not on PATH"
            else:
                self.all[name] = peer

    def edge(self, *argv):
        return ["nsenter", f"--net={self.net.host.path}", *argv]

    def bare(self, code):
        return told(self.edge(PYTHON, "-c", code))

    def glovebox(self, code):
        reply = self.server.run(code, allow_network=True, timeout_seconds=300)
        if reply["status"] != "success":
            raise AssertionError(f"a run ended with {reply['status']}: {reply['stderr'][-300:]}")
        return json.loads(reply["stdout"])

    def slirp(self, code):
        """A namespace for the program, and a slirp4netns that has its other end."""
        with contextlib.ExitStack() as stack:
            inside = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
            stack.callback(inside.wait)
            stack.callback(inside.stdin.close)
            own = os.stat("/proc/self/ns/net").st_ino
            wait_for("a namespace of its own", lambda: os.stat(f"/proc/{inside.pid}/ns/net").st_ino != own)
            ready, says = os.pipe()
            carrier = subprocess.Popen(self.edge("slirp4netns", "--configure", "--disable-host-loopback", f"--ready-fd={says}",
                                                 str(inside.pid), "tap0"), pass_fds=[says], stdout=subprocess.DEVNULL,
                                       stderr=subprocess.DEVNULL)
            stack.callback(carrier.wait)
            stack.callback(carrier.send_signal, signal.SIGTERM)
            os.close(says)
            with os.fdopen(ready, "rb") as f:
                if f.read(1) != b"1":
                    raise AssertionError("slirp4netns did not come up")
            return told(["nsenter", f"--net=/proc/{inside.pid}/ns/net", PYTHON, "-c", code])

    def pasta(self, code):
        """It wants to be an unprivileged user with a TUN device, which the host's may not be for."""
        device = "mount -t tmpfs none /dev/net && mknod -m 666 /dev/net/tun c 10 200 && exec \"$@\""
        return told(self.edge("unshare", "-m", "sh", "-c", device, "sh", "setpriv", "--reuid=65534", "--regid=65534", "--clear-groups",
                              "pasta", "--quiet", "--config-net", "--", PYTHON, "-c", code))


NOTHING = {"rows": {}, "absent": {}, "over_slirp": {}}


def measure(make_server, stack, folder, quick, say):
    """{"rows": {peer: {column: median}}, "absent": {peer: why}, "over_slirp": {column: median of quotients}}"""
    try:
        peers = Peers(make_server, stack.enter_context(World(folder)), folder, stack)
    except (AssertionError, OSError, subprocess.CalledProcessError) as why:
        return {**NOTHING, "absent": {"the network": str(why)}}
    found = {name: [] for name in peers.all}
    code = PROGRAM.replace("N_CONNECT", "50" if quick else "200").replace("N_ECHO", "200" if quick else "1000") \
        .replace("SIZE", str((32 if quick else 256) << 20))
    rounds = 2 if quick else 5
    for n in range(rounds):
        say(f"network, round {n + 1} of {rounds}")
        for name, peer in peers.all.items():
            if name not in peers.absent:
                try:
                    found[name].append(peer(code))
                except (AssertionError, ValueError) as why:
                    peers.absent[name] = str(why)
    rows = {name: {column: figures.median([r[column] for r in found[name]]) for column, _ in COLUMNS}
            for name in found if name not in peers.absent}
    both = list(zip(found[GLOVEBOX], found.get(SLIRP, []))) if SLIRP in rows and GLOVEBOX in rows else []
    over = {column: figures.median([ours[column] / theirs[column] for ours, theirs in both]) for column, _ in COLUMNS if both}
    return {"rows": rows, "absent": peers.absent, "over_slirp": over}
