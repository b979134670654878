"""Runs that may go where a name leads: what they say there must be for that name, as many sites share an
address (harness/front_servers.py)."""
import json
import subprocess
from pathlib import Path

import pytest

from harness import internet
from harness.internet import PUBLIC4, PUBLIC6
from harness.poll import wait_for

OTHER_NAME = "TLS or HTTP for a name that the rules do not allow there"
NO_NAME = "TLS or HTTP of which no name can be read"
CALLS = f"""
import json, socket, ssl
V4, V6 = '{PUBLIC4}', '{PUBLIC6}'
socket.getaddrinfo('example.org', 443)
def connect(port, to=V4):
    return socket.create_connection((to, port), 5)
def attempt(f, *a, **k):
    try: return f(*a, **k)
    except OSError as e: return type(e).__name__
def tls(name, port=443, to=V4, body=b''):
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    with context.wrap_socket(connect(port, to), server_hostname=name) as s:
        stream = s.makefile('rb')
        told = stream.readline().decode().split()
        s.sendall(body)
        return told + ([stream.read(len(body)) == body] if body else [])
def get(*hosts, pieces=None, end=False, to=V4):
    s = connect(8000, to)
    stream, told = s.makefile('rb'), []
    for host in hosts:
        text = f'GET / HTTP/1.1\\r\\nHost: {{host}}\\r\\n\\r\\n'.encode()
        for i in range(0, len(text), pieces or len(text)): s.sendall(text[i:i + (pieces or len(text))])
        told.append(attempt(answer, stream))
    return told
def answer(stream):
    if not stream.readline(): return 'ended'
    length = int(stream.readline().split()[1]); stream.readline()
    return stream.read(length).decode().split()[1]
def tell(x): print(json.dumps(x))
"""


class Front:
    """Its servers; asked(): what they were asked for."""

    def __init__(self, net, folder):
        cert, key = folder / "cert.pem", folder / "key.pem"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
                        "-subj", "/CN=example.org", "-keyout", key, "-out", cert], check=True, capture_output=True)
        script = Path(internet.__file__).with_name("front_servers.py")
        self.process = net.play(net.world, script, cert, key)

    def asked(self):
        """Since the last time."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        return [line.strip() for line in iter(self.process.stdout.readline, "that is all\n")]


@pytest.fixture(scope="module")
def front(net, tmp_path_factory):
    return Front(net, tmp_path_factory.mktemp("front"))


@pytest.fixture(scope="module")
def server(start, front):
    return start("--network")


def ask(server, code, allow=("example.org", "www.example.org:443")):
    """What the program tells, and the reply's connections."""
    reply = server.run(CALLS + code, network={"allow": list(allow)})
    assert reply["status"] == "success", reply["stderr"]
    return json.loads(reply["stdout"]), [c for c in reply["network"]["connections"] if c["protocol"] != "dns"]


def refusals(connections):
    return [(c["name"], c["port"], c["reason"]) for c in connections if c["verdict"] == "denied"]


def test_tls_for_an_allowed_name_passes_and_so_does_what_follows(server, front):
    told, connections = ask(server, "tell([tls('example.org', body=b'x' * 3000000), tls('WWW.example.org'), tls('example.org', to=V6)])")
    assert told == [["TLSv1.3", "example.org", True], ["TLSv1.3", "WWW.example.org"], ["TLSv1.3", "example.org"]]
    assert refusals(connections) == []
    assert connections[0]["bytes_out"] > 3000000
    front.asked()


@pytest.mark.parametrize("to", ["V4", "V6"])
def test_tls_for_another_name_is_refused(server, front, to):
    told, connections = ask(server, f"tell([attempt(tls, 'other.example.net', to={to}), tls('example.org', to={to})])")
    assert told == ["ConnectionResetError", ["TLSv1.3", "example.org"]]
    assert refusals(connections) == [("other.example.net", 443, OTHER_NAME)]
    assert connections[0]["bytes_out"] == 0
    assert front.asked() == ["tls example.org"]


def test_a_rule_with_a_port_is_about_that_port(server, front):
    told, connections = ask(server, "tell(attempt(tls, 'www.example.org', 444))")
    assert told == "ConnectionResetError"
    assert refusals(connections) == [("www.example.org", 444, OTHER_NAME)]
    assert front.asked() == []


def test_tls_without_a_name_is_refused(server, front):
    told, connections = ask(server, "tell(attempt(tls, None))")
    assert told == "ConnectionResetError"
    assert refusals(connections) == [("example.org", 443, NO_NAME)]
    assert front.asked() == []


def test_a_hello_that_is_asked_for_once_more_passes(server, front):
    told, connections = ask(server, "tell(tls('example.org', 444, body=b'x' * 100000))")
    assert told == ["TLSv1.3", "example.org", True]
    assert refusals(connections) == []
    assert front.asked() == ["tls example.org"] * 2


def test_requests_for_allowed_names_pass(server, front):
    told, connections = ask(server, "tell([get('example.org', 'Example.org:8000', 'example.org'), get('example.org', to=V6)])")
    assert told == [["example.org", "Example.org:8000", "example.org"], ["example.org"]]
    assert refusals(connections) == []
    front.asked()


def test_a_second_request_for_another_host_is_refused(server, front):
    told, connections = ask(server, "tell(get('example.org', 'other.example.net'))")
    assert told == ["example.org", "ConnectionResetError"]
    assert refusals(connections) == [("other.example.net", 8000, OTHER_NAME)]
    assert connections[0]["bytes_out"] == len("GET / HTTP/1.1\r\nHost: example.org\r\n\r\n")
    assert front.asked() == ["http example.org"]


@pytest.mark.parametrize("pieces", [1, 5, 20])
def test_a_request_in_pieces_passes_and_nothing_is_kept_back(server, front, pieces):
    """One that waits for an acknowledgement of each (Nagle) would take as long as a retransmission."""
    told, connections = ask(server, f"tell(get('example.org', pieces={pieces}))")
    assert told == ["example.org"]
    assert refusals(connections) == []
    front.asked()


def test_a_head_that_ends_with_the_stream_does_not_reach_the_front(server, front):
    """Such a server would take it for a whole one."""
    code = ("def half():\n  s = connect(8000)\n  s.sendall(b'GET / HTTP/1.1\\r\\nHost: other.example.net')\n"
            "  s.shutdown(socket.SHUT_WR)\n  return s.recv(100).decode() or 'ended'\n"
            "def left():\n  s = connect(8000)\n  s.sendall(b'GET / HTTP/1.1\\r\\nHost: other.example.net')\n"
            "  left.s = s\ntell([attempt(half), left()])")
    told, connections = ask(server, code)
    assert told == ["ConnectionResetError", None]
    # A method is all that has come of both; the second one is cut off with its run, or ends before it.
    assert set(refusals(connections)) == {("example.org", 8000, NO_NAME)}
    seen = []
    wait_for("their ends", lambda: len(seen.extend(front.asked()) or seen) == 2)
    assert seen == ["http None"] * 2


def test_a_large_body_passes_as_it_is(server, front):
    code = ("import hashlib\nbody = bytes(range(256)) * 20000\ns = connect(8000)\n"
            "s.sendall(f'POST / HTTP/1.1\\r\\nHost: example.org\\r\\nContent-Length: {len(body)}\\r\\n\\r\\n'.encode() + body)\n"
            "stream = s.makefile('rb'); stream.readline(); stream.readline(); stream.readline()\n"
            "tell(stream.readline().decode().split()[2] == hashlib.sha256(body).hexdigest()[:8])")
    told, connections = ask(server, code)
    assert told is True
    assert refusals(connections) == []
    front.asked()


def test_many_connections_at_once_are_told_apart(server, front):
    code = ("import threading\ntold = {}\n"
            "def one(i): told[i] = attempt(tls, 'other.example.net' if i % 4 == 0 else 'example.org')\n"
            "threads = [threading.Thread(target=one, args=(i,)) for i in range(24)]\n"
            "for t in threads: t.start()\nfor t in threads: t.join()\n"
            "tell([told.get(i) for i in range(24)])")
    told, connections = ask(server, code)
    assert told == ["ConnectionResetError" if i % 4 == 0 else ["TLSv1.3", "example.org"] for i in range(24)]
    assert len(refusals(connections)) == 6
    assert set(front.asked()) == {"tls example.org"}


def test_http_2_without_tls_and_quic_are_refused(server, front):
    code = ("def h2():\n  s = connect(8000)\n  s.sendall(b'PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n')\n  return s.recv(10).decode()\n"
            "def quic():\n  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n  s.settimeout(5)\n  s.connect((V4, 7))\n"
            "  s.send(b'\\xc3\\0\\0\\0\\1' + bytes(1195))\n  return s.recv(10).decode()\n"
            "def small():\n  s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n  s.settimeout(5)\n  s.connect((V4, 7))\n"
            "  s.send(b'hello')\n  return s.recv(10).decode()\n"
            "tell([attempt(h2), attempt(quic), attempt(small)])")
    told, connections = ask(server, code)
    assert told[0] == "ConnectionResetError" and told[1] in ("OSError", "PermissionError") and told[2] == "hello", told
    assert [r[1:] for r in refusals(connections)] == [(8000, NO_NAME), (7, "QUIC, of which no name can be read: TCP is not refused")]
    assert front.asked() == []


def test_what_has_no_names_passes(server):
    code = ("def echo(text):\n  s = connect(80)\n  s.sendall(text)\n  return s.recv(100).decode()\n"
            "tell([echo(b'hello'), echo(b'SSH-2.0-x\\r\\n'), echo(b'\\x00\\x01')])")
    told, connections = ask(server, code)
    assert told == ["hello", "SSH-2.0-x\r\n", "\0\x01"]
    assert refusals(connections) == []


def test_where_a_rule_allows_the_address_any_name_will_do(server, front):
    told, connections = ask(server, "tell([tls('other.example.net'), tls(None), get('other.example.net')])", [PUBLIC4, "example.org"])
    assert told == [["TLSv1.3", "other.example.net"], ["TLSv1.3", "None"], ["other.example.net"]]
    assert refusals(connections) == []
    front.asked()
