"""A small internet of the tests' own: two network namespaces and a cable between them. In one of
them a server under test has its one interface; in the other all addresses of the world answer, the
private and the forbidden ones too, so that what is not reached was refused and not absent."""
import contextlib
import ctypes
import os
import subprocess
import sys
from pathlib import Path

from harness.poll import wait_for

LIBC = ctypes.CDLL(None, use_errno=True)
CLONE_NEWNS, CLONE_NEWNET = 0x00020000, 0x40000000
MS_BIND, MS_REC, MS_PRIVATE = 0x1000, 0x4000, 0x40000

PUBLIC4, PUBLIC6 = "93.184.216.34", "2606:2800:220:1::34"
OTHER4 = "93.184.216.35"
HOST4, HOST6 = "198.41.0.4", "2001:503:ba3e::2:30"  # the machine's own, public ones
NEIGHBOUR4, NEIGHBOUR6 = "198.41.0.1", "2001:503:ba3e::1"  # on the machine's own networks
UNREACHABLE = "93.184.218.1"  # the machine has no way there
RESOLVER = "192.0.43.8"
METADATA = "169.254.169.254"
PRIVATE = ["10.1.1.1", "172.16.0.1", "192.168.7.1", "100.64.0.1"]
FORBIDDEN = [*PRIVATE, METADATA, "168.63.129.16", "203.0.113.5", "198.18.0.9", "240.0.0.1"]
FORBIDDEN6 = ["64:ff9b::a01:101", "fd00:7::1", "2002:a01:101::1", "2001::1"]
# What the resolver knows; whatever else it is asked for does not exist.
NAMES = {
    ("example.org", "A"): [PUBLIC4], ("example.org", "AAAA"): [PUBLIC6],
    ("www.example.org", "A"): [PUBLIC4], ("other.example.net", "A"): [OTHER4],
    ("rebind.example.org", "A"): ["10.1.1.1", METADATA],
    ("half.example.org", "A"): ["10.1.1.1", PUBLIC4],
    ("large.example.org", "A"): [f"93.184.217.{i}" for i in range(1, 61)],  # too large for a datagram
}

# What programs in cells call to use it.
CALLS = """
import json, socket
def tcp(address, port, timeout=5):
    try:
        s = socket.create_connection((address, port), timeout)
        s.sendall(b"hello")
        return s.recv(5).decode()
    except OSError as e:
        return type(e).__name__ + " " + str(e.errno)
def udp(address, timeout=5):
    s = socket.socket(socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(timeout)
    try:
        s.connect((address, 7))
        s.send(b"hello")
        return s.recv(5).decode()
    except OSError as e:
        return type(e).__name__ + " " + str(e.errno)
def look_up(name):
    try:
        return sorted({a[4][0] for a in socket.getaddrinfo(name, 80, type=socket.SOCK_STREAM)})
    except socket.gaierror as e:
        return e.errno
def tell(x): print(json.dumps(x))
"""


def run(*argv):
    subprocess.run(argv, check=True, capture_output=True, text=True)


def check(result, what):
    if result < 0:
        raise OSError(ctypes.get_errno(), what)


class Namespace:
    """A network namespace that lives as long as its keeper."""

    def __init__(self, stack):
        self.keeper = subprocess.Popen(["unshare", "-n", "cat"], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL)
        stack.callback(self._close)
        own = os.stat("/proc/self/ns/net").st_ino
        wait_for("a namespace of its own", lambda: os.stat(self.path).st_ino != own)

    @property
    def path(self):
        return f"/proc/{self.keeper.pid}/ns/net"

    def _close(self):
        self.keeper.stdin.close()
        self.keeper.wait()

    def run(self, *argv):
        run("nsenter", f"--net={self.path}", *argv)


class Internet:
    """`with Internet(folder) as net`: net.preexec puts a process that is started with it onto its edge."""

    def __init__(self, folder):
        self.resolv_conf = Path(folder) / "resolv.conf"
        self.stack = contextlib.ExitStack()

    def __enter__(self):
        self.resolv_conf.write_text(f"# the machine's own\nnameserver {RESOLVER}\n", encoding="ascii")
        self.host, self.world = Namespace(self.stack), Namespace(self.stack)
        self.world.run("ip", "link", "add", "w0", "type", "veth", "peer", "name", "h0")
        self.world.run("ip", "link", "set", "h0", "netns", str(self.host.keeper.pid))
        for one, device in ((self.host, "h0"), (self.world, "w0")):
            for name in ("lo", device):
                one.run("ip", "link", "set", name, "up")
        self.host.run("ip", "address", "add", f"{HOST4}/24", "dev", "h0")
        self.host.run("ip", "address", "add", f"{HOST6}/64", "dev", "h0", "nodad")
        self.world.run("ip", "address", "add", f"{NEIGHBOUR4}/24", "dev", "w0")
        self.world.run("ip", "address", "add", f"{NEIGHBOUR6}/64", "dev", "w0", "nodad")
        self.host.run("ip", "route", "add", "default", "via", NEIGHBOUR4)
        self.host.run("ip", "-6", "route", "add", "default", "via", NEIGHBOUR6)
        self.host.run("ip", "route", "add", "unreachable", f"{UNREACHABLE}/32")
        for a in (PUBLIC4, OTHER4, RESOLVER, *(f for f in FORBIDDEN if not f.startswith("240."))):
            self.world.run("ip", "address", "add", f"{a}/32", "dev", "lo")
        for a in (PUBLIC6, *FORBIDDEN6):
            self.world.run("ip", "-6", "address", "add", f"{a}/128", "dev", "lo", "nodad")
        self._serve(self.world, "world")
        self._serve(self.host, "host")
        return self

    def __exit__(self, *_):
        self.stack.close()

    def _serve(self, namespace, which):
        """What answers there."""
        self.play(namespace, Path(__file__).with_name("internet_servers.py"), which)

    def play(self, namespace, script, *argv):
        """A script of the tests' in that namespace, until its stdin ends, which says "ready" when it is."""
        server = subprocess.Popen(["nsenter", f"--net={namespace.path}", sys.executable, "-B", str(script), *map(str, argv)],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

        def end():
            server.stdin.close()
            server.wait()
            server.stdout.close()
        self.stack.callback(end)
        if server.stdout.readline() != "ready\n":
            raise AssertionError(f"{script} did not come up")
        return server

    def preexec(self):
        fd = os.open(self.host.path, os.O_RDONLY)
        check(LIBC.setns(fd, CLONE_NEWNET), "setns")
        os.close(fd)
        check(LIBC.unshare(CLONE_NEWNS), "unshare")
        check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
        self.bind(self.resolv_conf, "/etc/resolv.conf")

    @staticmethod
    def bind(file, at):
        """Show another file there, to the process that is being started."""
        check(LIBC.mount(os.fsencode(file), os.fsencode(at), None, MS_BIND, None), f"mount {at}")
