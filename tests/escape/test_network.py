"""Threat: exfiltration. Answer: a network namespace of its own with nothing but lo.

The addresses are those reserved for documentation (RFC 5737, RFC 3849) and the name is
under .invalid: in the cage they fail like any other, and where the cage is broken these
tests bother nobody."""
import socket
import threading

import pytest

from attacks import REFUSED, sc
from harness.background import Background
from harness.poll import wait_for


@pytest.fixture
def bait(tmp_path):
    """Listeners on the host that no program may reach: a TCP port and two Unix names."""
    caught = []
    tcp = socket.create_server(("127.0.0.1", 0))
    abstract = socket.socket(socket.AF_UNIX)
    abstract.bind(f"\0glovebox-bait-{tcp.getsockname()[1]}")
    abstract.listen()
    named = socket.socket(socket.AF_UNIX)
    named.bind(str(tmp_path / "bait.sock"))
    named.listen()

    def catch(s):
        try:
            while True:
                s.accept()[0].close()
                caught.append(s.family)
        except OSError:
            pass  # closed: the test is over

    for s in (tcp, abstract, named):
        threading.Thread(target=catch, args=(s,), daemon=True).start()
    yield tcp.getsockname()[1], str(tmp_path / "bait.sock")
    for s in (tcp, abstract, named):
        s.shutdown(socket.SHUT_RDWR)
        s.close()
    assert caught == [], "a program reached the host"


def test_nothing_of_the_outside_answers_and_at_once(warm):
    r = warm.run("import socket, time\nt = time.monotonic()\n"
                 "for a in (('192.0.2.1', 80), ('198.51.100.1', 53), ('203.0.113.1', 443), ('192.0.2.254', 22)):\n"
                 "  s = socket.socket(); s.settimeout(5)\n"
                 "  try: s.connect(a); print('GOT', a)\n  except OSError as e: print(e.errno)\n"
                 "print(time.monotonic() - t < 4)")
    assert r.stdout == "101\n" * 4 + "True\n"


def test_the_hosts_loopback_is_out_of_reach(warm, bait):
    port, _ = bait
    r = warm.run(f"import socket\nfor p in ({port}, {warm.port}):\n"
                 "  for a in ('127.0.0.1', '::1', 'localhost', '0.0.0.0'):\n"
                 "    try: socket.create_connection((a, p), 2); print('GOT', a, p)\n"
                 "    except OSError: pass\nprint('end')")
    assert r.stdout == "end\n"


def test_unix_sockets_of_the_host_are_out_of_reach(warm, bait):
    port, path = bait
    names = [path, f"\0glovebox-bait-{port}", "/var/run/docker.sock", "/run/systemd/private",
             "/run/dbus/system_bus_socket", "/run/glovebox.sock"]
    r = warm.run(f"import socket\nfor n in {names!r}:\n  s = socket.socket(socket.AF_UNIX)\n"
                 "  try: s.connect(n); print('GOT', n)\n  except OSError: pass\nprint('end')")
    assert r.stdout == "end\n"


def test_names_are_not_resolved_and_udp_goes_nowhere(warm):
    r = warm.run("import socket, time\nt = time.monotonic()\n"
                 "try: socket.getaddrinfo('name.invalid', 80); print('GOT')\n"
                 "except socket.gaierror: print('no name')\n"
                 "try: socket.socket(2, 2).sendto(b'x', ('192.0.2.1', 53)); print('SENT')\n"
                 "except OSError as e: print(e.errno)\n"
                 "try: socket.socket(10, 2).sendto(b'x', ('2001:db8::1', 53)); print('SENT')\n"
                 "except OSError as e: print(e.errno in (97, 99, 101))\n"
                 "print(time.monotonic() - t < 4)")
    assert r.stdout == "no name\n101\nTrue\nTrue\n"


def test_there_is_loopback_and_no_other_interface(warm):
    r = warm.run("print([l.split(':')[0].strip() for l in open('/proc/net/dev')][2:])\n"
                 "print(len(open('/proc/net/route').readlines()))\n"
                 "import socket\na = socket.create_server(('127.0.0.1', 0))\n"
                 "b = socket.create_connection(a.getsockname()); c, _ = a.accept()\n"
                 "b.send(b'self'); print(c.recv(9))")
    assert r.stdout == "['lo']\n1\nb'self'\n"


def test_two_runs_do_not_share_a_loopback(warm):
    listener = Background(warm.execute, "import socket, time\ns = socket.create_server(('127.0.0.1', 4321))\n"
                          "u = socket.socket(socket.AF_UNIX); u.bind('\\0meet'); u.listen()\n"
                          "print('on', flush=True); s.accept(); print('GOT')", timeout_seconds=60)
    wait_for("the listener", warm.programs)
    r = warm.run("import socket, time\nend = time.monotonic() + 0.7\nwhile time.monotonic() < end:\n"
                 "  for f, a in ((socket.AF_INET, ('127.0.0.1', 4321)), (socket.AF_UNIX, '\\0meet')):\n"
                 "    try: socket.socket(f).connect(a); print('GOT')\n    except OSError: pass\n"
                 "  time.sleep(.05)\nprint('end')")
    warm.kill_programs()
    assert r.stdout == "end\n" and listener.result().stdout == "on\n"


@pytest.mark.parametrize("name, call", [
    ("vsock", "[sc(41, 40, t, 0) for t in (1, 2, 5)]"),
    ("netlink", "[sc(41, 16, 3, i) for i in (0, 2, 4, 9, 11, 12, 15, 16)]"),
    ("packet", "[sc(41, 17, t, 768) for t in (2, 3)]"),
    ("raw", "[sc(41, f, 3, 1) for f in (2, 10)]"),
    ("alg", "[sc(41, 38, 5, 0)]"),
])
def test_socket_families_that_reach_the_kernel_or_the_host_are_refused(warm, name, call):
    r = warm.run(sc(f"print(*{call})"))
    assert r.stdout.split() and not set(r.stdout.split()) - set(REFUSED), r.stdout


def test_only_the_internet_and_unix_families_exist(warm):
    r = warm.run(sc("print(sorted({f for f in range(46) for t in (1, 2, 3, 5) if L.syscall(41, f, t, 0) >= 0}))"))
    assert r.stdout == "[1, 2, 10]\n"


def test_the_interface_cannot_be_changed(warm):
    r = warm.run("import socket, struct, fcntl\ns = socket.socket(2, 2)\n"
                 "try: fcntl.ioctl(s, 0x8914, struct.pack('16sh22x', b'lo', 0)); print('GOT')\n"
                 "except OSError as e: print(e.errno)")
    assert r.stdout in ("1\n", "25\n")  # EPERM, or the filter's ENOTTY


def test_urls_lead_nowhere(warm):
    r = warm.run("import urllib.request\nfor u in ('file:///etc/shadow', 'http://192.0.2.1/', "
                 "'ftp://127.0.0.1/'):\n  try: print('GOT', urllib.request.urlopen(u, timeout=5).read(1))\n"
                 "  except Exception as e: print(type(e).__name__)")
    assert r.stdout == "URLError\n" * 3
