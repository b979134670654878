"""Threat: exfiltration, and reaching services that trust their neighbours. Answer: a network namespace of
its own with nothing but its own lo, and a filter that knows three families of sockets.

The addresses are those reserved for documentation (RFC 5737, RFC 3849) and the names are
under .invalid: in the cage they fail like any other, and where the cage is broken these
tests bother nobody. The one exception is the link-local address by which clouds tell a machine its
secrets; asked for in a way that no such service answers."""
import re
import socket
import threading

import pytest

from corpus import Attack, all_refused
from harness.background import Background
from harness.poll import wait_for

# A program that tries `attempts`, and tells whether all of them took less than a second each.
AT_ONCE = "import socket, time\nt = time.monotonic(); n = 0\n{attempts}\nprint(time.monotonic() - t < 4)"
CONNECT = "for a in {addresses!r}:\n  s = socket.socket({family}, {kind}); s.settimeout(5)\n" \
          "  try: s.connect(a); {then}\n  except OSError as e: print(e.errno)"


def connects(addresses, family="socket.AF_INET", kind="socket.SOCK_STREAM", then="print('GOT', a)"):
    return AT_ONCE.format(attempts=CONNECT.format(addresses=addresses, family=family, kind=kind, then=then))


OUTSIDE = [
    Attack("TCP", connects([("192.0.2.1", 80), ("198.51.100.1", 53), ("203.0.113.1", 443), ("192.0.2.254", 22)]), says="101\n" * 4 + "True\n"),
    Attack("the service that knows a machine's secrets", connects([("169.254.169.254", 9), ("169.254.170.2", 9), ("100.100.100.200", 9)]),
           says="101\n" * 3 + "True\n"),
    Attack("a network of the host's", connects([("10.0.0.1", 9), ("172.17.0.1", 9), ("192.168.0.1", 9), ("10.0.2.2", 9)]), says="101\n" * 4 + "True\n"),
    Attack("UDP", connects([("192.0.2.1", 53), ("192.0.2.1", 123), ("255.255.255.255", 9), ("224.0.0.251", 5353)], kind="socket.SOCK_DGRAM",
           then="s.send(b'x'); print('SENT', a)"),
           says=re.compile("101\n(101|13)\n(101|13)\n101\nTrue\n")),
    Attack("IPv6", connects([("2001:db8::1", 80), ("fe80::1", 80), ("ff02::1", 80), ("64:ff9b::c000:201", 80)], "socket.AF_INET6"),
           says=re.compile("((22|97|99|101)\n){4}True\n")),
    Attack("names", AT_ONCE.format(attempts="for h in ('name.invalid', 'metadata.google.internal.invalid', 'localhost.invalid', 'a' * 300):\n"
                                            "  for f in (lambda: socket.getaddrinfo(h, 80), lambda: socket.gethostbyname(h)):\n"
                                            "    try: print('GOT', f())\n    except (OSError, UnicodeError): pass\n"
                                            "for f in (lambda: socket.gethostbyaddr('192.0.2.1'),):\n"
                                            "  try: print('GOT', f())\n  except OSError: pass"), says="True\n"),
    Attack("names, by a packet of one's own", AT_ONCE.format(attempts="q = bytes.fromhex('000101000001000000000000046e616d6507696e76616c69640000010001')\n"
                                                                      "for a in ('127.0.0.1', '127.0.0.53', '192.0.2.1', '10.0.2.3'):\n"
                                                                      "  s = socket.socket(2, 2); s.settimeout(.3)\n"
                                                                      "  try: s.sendto(q, (a, 53)); print('GOT', s.recv(99))\n  except OSError: pass"),
                                                                      says="True\n"),
    Attack("URLs", "import urllib.request\nfor u in ('file:///etc/shadow', 'http://192.0.2.1/', 'ftp://127.0.0.1/', 'http://name.invalid/', 'data:,ok'):\n"
           "  try: print('GOT', urllib.request.urlopen(u, timeout=5).read(9))\n  except Exception as e: print(type(e).__name__)",
           says="URLError\n" * 4 + "GOT b'ok'\n"),
    Attack("URLs by a library's other protocols", "import http.client, ftplib, smtplib, poplib, imaplib\n"
           "for f in (lambda: http.client.HTTPConnection('192.0.2.1', timeout=5).request('GET', '/'),\n"
           "  lambda: ftplib.FTP('192.0.2.1', timeout=5), lambda: smtplib.SMTP('192.0.2.1', timeout=5), lambda: poplib.POP3('192.0.2.1', timeout=5),\n"
           "  lambda: imaplib.IMAP4('192.0.2.1', timeout=5)):\n  try: f(); print('GOT')\n  except OSError as e: print(e.errno)", says="101\n" * 5, timeout=30),
    Attack("packets with a fast open", "import socket\ns = socket.socket(); s.setsockopt(socket.IPPROTO_TCP, 23, 5) if 0 else None\n"
           "try: print('SENT', s.sendto(b'x', 0x20000000, ('192.0.2.1', 80)))\nexcept OSError as e: print(e.errno)", says="101\n"),
    Attack("another source", "import socket\nfor a in ('192.0.2.9', '10.0.2.15', '0.0.0.0'):\n  s = socket.socket()\n  try:\n"
           "    s.bind((a, 0)); s.connect(('192.0.2.1', 80)); print('GOT')\n"
           "  except OSError as e: print(e.errno)", says="99\n99\n101\n"),
]

OWN = [
    Attack("interfaces", "print([l.split(':')[0].strip() for l in open('/proc/net/dev')][2:], len(open('/proc/net/route').readlines()),\n"
           "  open('/proc/net/arp').read().count('\\n'), open('/proc/net/wireless').read().count('\\n') if __import__('os').path.exists('/proc/net/wireless') else 2)\n"
           "import socket\nprint(socket.if_nametoindex('lo'))\nfor n in ('eth0', 'ens3', 'docker0', 'wlan0', 'tun0'):\n"
           "  try: socket.if_nametoindex(n); print('GOT', n)\n  except OSError: pass",
           says="['lo'] 1 1 2\n1\n"),
    Attack("a service of its own", "import socket\nfor f, a in ((2, '127.0.0.1'), (10, '::1')):\n  s = socket.socket(f); s.bind((a, 0)); s.listen()\n"
           "  c = socket.socket(f); c.connect(s.getsockname()); p, _ = s.accept(); c.send(b'self'); print(p.recv(9))", says="b'self'\nb'self'\n"),
    Attack("names that others have bound", "import socket\nprint(open('/proc/net/unix').read().count('\\n'), len(open('/proc/net/tcp').readlines()), "
           "len(open('/proc/net/udp').readlines()))", says="1 1 1\n"),
    Attack("low ports", "import socket\nfor p in (1, 22, 80, 443, 1023):\n  try: socket.socket().bind(('127.0.0.1', p)); print('GOT', p)\n"
           "  except OSError as e: print(e.errno)", says=re.compile("(13\n){5}")),
    Attack("all ports", "import socket\nk = []\nfor p in range(1024, 65536):\n  try: s = socket.socket(2, 2); s.bind(('127.0.0.1', p)); k.append(s)\n"
           "  except OSError as e: print(e.errno, len(k) > 200); break",
           says="24 True\n"),
    Attack("sockets in folders that others see", "import os, socket\nr = []\n"
           "for d in ('/usr', '/usr/lib', '/etc', '/dev', '/proc/self', '/', '/var', '/tmp', '/dev/shm', '/workspace'):\n"
           "  try: s = socket.socket(1); s.bind(d + '/sk'); r.append(d)\n  except OSError: pass\nprint(r)", says="['/tmp', '/dev/shm', '/workspace']\n"),
]

CHANGED = [
    Attack("taken down", "import socket, struct, fcntl\nfor f in (2, 10, 1):\n  s = socket.socket(f, 2)\n  for flags in (0, 1, 0x100):\n"
           "    try: fcntl.ioctl(s, 0x8914, struct.pack('16sh22x', b'lo', flags)); print('GOT')\n    except OSError as e: e.errno in (1, 25) or print(e)\n"
           "print('end')", says="end\n"),
    Attack("addresses, routes, names, queues", "import socket, struct, fcntl\ns = socket.socket(2, 2)\n"
           "for call in (0x890B, 0x890C, 0x8916, 0x891A, 0x891C, 0x8922, 0x8923, 0x8924, 0x8936, 0x8943, 0x8953, 0x8955, 0x8946,\n"
           "  0x8930, 0x8931, 0x8948, 0x8983, 0x8990, 0x89A0, 0x89B0, 0x89F0, 0x89F1):\n"
           "  try: fcntl.ioctl(s, call, bytearray(struct.pack('16s48x', b'lo'))); print('GOT', hex(call))\n"
           "  except OSError as e: e.errno in (1, 25) or print(hex(call), e)\nprint('end')", says="end\n"),
    Attack("programs on a socket", "import socket, struct, ctypes\ncode = ctypes.create_string_buffer(struct.pack('HBBI', 6, 0, 0, 0xffff))\n"
           "p = struct.pack('HP', 1, ctypes.addressof(code))\n"
           "for f, k in ((2, 1), (2, 2), (10, 2), (1, 1)):\n  s = socket.socket(f, k)\n  for o in (26, 51):\n"
           "    try: s.setsockopt(socket.SOL_SOCKET, o, p); print('GOT', f, o)\n    except OSError as e: print(e.errno, end=' ')\n"
           "  for o in (50, 52):\n    try: s.setsockopt(socket.SOL_SOCKET, o, 3); print('GOT', f, o)\n    except OSError as e: print(e.errno, end=' ')\n",
           says="1 " * 16),
    Attack("a protocol on top of a connection", "import socket\ns = socket.create_server(('127.0.0.1', 0)); c = socket.create_connection(s.getsockname())\n"
           "for n in (b'tls', b'espintcp', b'smc', b'mptcp'):\n  try: c.setsockopt(socket.IPPROTO_TCP, 31, n); print('GOT', n)\n"
           "  except OSError as e: print(e.errno)", says="2\n" * 4),
    Attack("marks, devices, priorities", "import socket\ns = socket.socket(2, 2)\n"
           "for o, v in ((36, 1), (32, 1 << 24), (33, 1 << 24), (12, 7), (62, b'lo'), (25, b'eth0')):\n"
           "  try: s.setsockopt(socket.SOL_SOCKET, o, v); print('GOT', o)\n  except OSError as e: e.errno in (1, 19, 22, 92) or print(o, e)\n"
           "for l, o, v in ((0, 19, 1), (41, 75, 1), (0, 64, bytes(84)), (41, 64, bytes(84))):\n  try: s.setsockopt(l, o, v); print('GOT', l, o)\n"
           "  except OSError as e: e.errno in (1, 2, 92) or print(l, o, e)\nprint('end')",
           says="end\n"),
    Attack("groups that would be told of", "import socket, struct\n"
           "for f, l, o, v in ((2, 0, 35, struct.pack('4s4si', b'\\xe0\\0\\0\\x05', b'\\x7f\\0\\0\\1', 0)), (10, 41, 20, bytes([255, "
           "2] + [0] * 13 + [5]) + bytes(4)), (2, 0, 42, bytes(136))):\n"
           "  try: socket.socket(f, 2).setsockopt(l, o, v); print('GOT', f, o)\n  except OSError as e: print(e.errno)", says="19\n19\n19\n"),
]


def family(name, number, kinds=(1, 2, 3, 4, 5), protocols=(0,)):
    calls = ", ".join(f"sc(41, {number}, {k} | {flags}, {p})" for k in kinds for p in protocols for flags in (0, 0o2004000))
    return Attack(name, f"print({calls})\nprint(sc(53, {number}, 1, 0, ctypes.create_string_buffer(8)))", check=all_refused, calls=True)


# vsock reaches the hypervisor past every network namespace (before Linux 7.0) and needs no capability.
FAMILIES = [
    family("vsock", 40), family("netlink", 16, (2, 3), range(0, 22, 3)), family("packet", 17, (2, 3, 10), (0, 768)), family("alg", 38, (5,)),
    family("key", 15, (3,), (2,)), family("bluetooth", 31, (1, 3, 5), (0, 1, 3)), family("can", 29, (2, 3), (1, 2)), family("tipc", 30), family("xdp", 44, (3,)),
    family("rds", 21), family("nfc", 39), family("qipcrtr", 42), family("smc", 43, (1,), (0, 1)), family("kcm", 41, (2, 5)), family("ieee802154", 36),
           family("phonet", 35), family("mctp", 45),
    family("rxrpc", 33, (2,), (2,)), family("pppox", 24, (1,), (0, 1)), family("x25, ax25, atm, ipx, appletalk", 9, (5,)), family("iucv, caif", 37, (1, 5)),
    Attack("raw", "print(*[sc(41, f, 3 | flags, p) for f in (2, 10) for p in (1, 6, 17, 58, 255, 0) for flags in (0, 0o2000000)])", check=all_refused, calls=True),
    Attack("other transports of the Internet's", "print(sorted({errno.errorcode.get(ctypes.get_errno()) for f in (2, 10) for k in (1, 2, 5, 6) for p in (33, 132, "
           "136, 262, 47, 50)\n"
           "  if L.syscall(41, f, k, p) < 0}), [p for p in (33, 132, 136, 262) for k in (1, 2, 5, 6) if L.syscall(41, 2, k, p) >= 0])", calls=True,
           says=re.compile(r"\[('EPROTONOSUPPORT'|'EPROTOTYPE'|'EPERM'|'ESOCKTNOSUPPORT'|, )+\] \[\]\n")),
    Attack("all numbers there are", "g = {f for f in [*range(64), 255, 256, 2 ** 31, 2 ** 32 - 1] for t in (1, 2, 3, 5) if L.syscall(41, ctypes.c_ulong(f), t, "
           "0) >= 0}\nprint(sorted(g))", says="[1, 2, 10]\n", calls=True),
    Attack("numbers with bits above", "L.syscall.restype = ctypes.c_long\n"
           "print(*[sc(41, ctypes.c_ulong(0xdead << 32 | f), t, 0) for f in (40, 16, 17, 38) for t in (1, 2, 3, 5)])", check=all_refused, calls=True),
    Attack("pairs", "print(*[sc(53, f, t, 0, ctypes.create_string_buffer(8)) for f in (2, 10, 16, 30, 40) for t in (1, 2, 5)])", check=all_refused, calls=True),
]


@pytest.mark.parametrize("attack", OUTSIDE, ids=str)
def test_nothing_of_the_outside_answers_and_at_once(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", OWN, ids=str)
def test_there_is_loopback_of_its_own_and_no_other_interface(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", CHANGED, ids=str)
def test_the_network_cannot_be_changed(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", FAMILIES, ids=str)
def test_socket_families_that_reach_the_kernel_or_the_host_are_refused(attack, arena):
    arena.withstand(attack)


# ---- The host's own listeners ----


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


def test_the_hosts_loopback_is_out_of_reach(arena, bait):
    """So the server itself is, too: no program can have it run another."""
    arena.withstand(Attack("", f"import socket\nfor p in ({bait[0]}, {arena.server.port}, 22, 53, 80, 8000, 8080):\n"
                           "  for a in ('127.0.0.1', '127.0.0.2', '::1', 'localhost', '0.0.0.0', '::', '::ffff:127.0.0.1', '127.1', '2130706433'):\n"
                           "    try: socket.create_connection((a, p), 2); print('GOT', a, p)\n"
                           "    except OSError: pass\nprint('end')", says="end\n", timeout=30))


def test_unix_sockets_of_the_host_are_out_of_reach(arena, bait):
    port, path = bait
    names = [path, f"\0glovebox-bait-{port}", f"/workspace/../..{path}", f"/proc/self/root{path}", "\0glovebox", "\0/run/glovebox.sock",
           "/workspace/../run/glovebox.sock"]
    arena.withstand(Attack("", f"import socket\nfor n in {names!r}:\n  for k in (1, 2, 5):\n    s = socket.socket(socket.AF_UNIX, k)\n"
                           "    try: s.connect(n); print('GOT', n)\n    except OSError: pass\nprint('end')", says="end\n"))


def test_two_runs_do_not_share_a_loopback(arena):
    listener = Background(arena.run, "import socket, time\ns = socket.create_server(('127.0.0.1', 4321))\n"
                          "u = socket.socket(socket.AF_UNIX); u.bind('\\0meet'); u.listen()\n"
                          "print('on', flush=True); s.accept(); print('GOT')", timeout_seconds=60)
    wait_for("the listener", arena.server.programs)
    arena.withstand(Attack("", "import socket, time\nend = time.monotonic() + 0.7\nwhile time.monotonic() < end:\n"
                           "  for f, a in ((socket.AF_INET, ('127.0.0.1', 4321)), (socket.AF_UNIX, '\\0meet')):\n"
                           "    try: socket.socket(f).connect(a); print('GOT')\n    except OSError: pass\n"
                           "  time.sleep(.05)\nprint('end')", says="end\n"))
    arena.server.kill_programs()
    assert listener.result().stdout == "on\n"
