"""Programs that do with their network what nobody should: floods, scans, tunnels, other sources. The gate
answers them, the host and other runs do not notice, and nothing is left."""
import json
import subprocess

import pytest

from harness import census
from harness.background import Background
from harness.internet import HOST4, PUBLIC4

SILENT = "93.184.219.9"  # routed to the world, where nobody has it and nobody says so


@pytest.fixture(scope="module")
def server(start):
    return start("--cold=false", "--network", "--network-connections", "64", "--network-bytes", "64M", timeout="20s")


@pytest.fixture
def unharmed(server):
    """Before and after each attack the server holds the same, and gives another run its network."""
    before = server.rest()
    yield
    told, _ = attack(server, f"s = socket.create_connection(('{PUBLIC4}', 80), 5); s.sendall(b'hello'); tell(s.recv(5).decode())")
    assert told == "hello"
    server.settles_to(before)
    assert census.role_pids(server.pid, "gate") == []


def attack(server, code, **fields):
    """What the program tells, and its reply."""
    reply = server.run("import errno, json, os, select, socket, struct, time\ndef tell(x): print(json.dumps(x))\n" + code,
                       **{"allow_network": True, "timeout_seconds": 20, **fields})
    assert reply["status"] == "success", reply
    return json.loads(reply["stdout"]), reply


def reasons(reply):
    return {c["reason"] for c in reply["network"]["connections"]}


pytestmark = pytest.mark.usefixtures("unharmed")


def test_a_flood_of_half_open_connections_ends_at_the_bound(server):
    """Nobody answers them. The others are refused at once, and another run's do not count with them."""
    code = f"""
held, refused = [], 0
for _ in range(200):
    s = socket.socket()
    s.setblocking(False)
    s.connect_ex(("{SILENT}", 80))
    held.append(s)
end = time.monotonic() + 15
while time.monotonic() < end and refused < len(held) - 64:
    refused += sum(s.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR) == errno.EHOSTUNREACH for s in held)
    time.sleep(0.01)
tell([refused, len(held)])
"""
    (refused, held), reply = attack(server, code)
    assert refused == held - 64
    assert reasons(reply) == {None, "max_connections are open"}
    assert reply["network"]["allowed"] == 64 and reply["network"]["denied"] >= refused


def test_a_scan_of_the_machine_finds_no_port(server):
    code = f"""
seen = set()
for port in range(1, 2001):
    s = socket.socket()
    s.settimeout(5)
    s.connect_ex(("{HOST4}", port))
    try: seen.add(s.getpeername()) # whatever connect() says of a refusal that came before it looked
    except OSError: pass
    s.close()
tell(sorted(seen))
"""
    told, reply = attack(server, code)
    assert told == []
    assert reasons(reply) == {"an address of the machine itself"}
    network = reply["network"]
    assert (network["allowed"], network["denied"]) == (0, 2000) and len(network["connections"]) + network["more"] == 2000


def test_a_scan_of_the_cells_own_net_finds_nobody(server):
    """Each cell is alone on its net, with a router that listens nowhere."""
    beside = Background(attack, server, "s = socket.create_server(('198.18.0.2', 8080)); s.settimeout(4)\n"
                                        "try: s.accept(); tell('found')\nexcept TimeoutError: tell('alone')")
    code = """
seen = {}
for last in (1, 3, *range(4, 40)):
    s = socket.socket()
    s.settimeout(5)
    seen[last] = s.connect_ex((f"198.18.0.{last}", 8080))
    s.close()
tell(sorted(set(seen.values())))
"""
    told, _ = attack(server, code)
    assert told == [113]
    assert beside.result()[0] == "alone"


def test_a_packet_from_another_address_goes_nowhere(server):
    """A program may bind to what it does not have (IP_FREEBIND)."""
    code = f"""
out = []
for source in ("{HOST4}", "8.8.8.8", "198.18.0.1", "198.18.0.3"):
    s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    s.settimeout(0.3)
    try:
        s.setsockopt(socket.IPPROTO_IP, 15, 1)
        s.bind((source, 5353))
        s.sendto(b"x", ("{PUBLIC4}", 7))
        s.recv(1)
        out.append("answered")
    except OSError as e:
        out.append(type(e).__name__)
tell(out)
"""
    told, reply = attack(server, code)
    assert "answered" not in told
    assert reply["network"]["allowed"] == 0
    if "TimeoutError" in told:
        assert reasons(reply) == {"not from the run's own address"}


def test_data_in_the_labels_of_names_goes_out_slowly_and_is_on_record(server):
    """A tunnel of look-ups: what is beyond the rate is not answered, and each name stands in the reply or
    is counted there."""
    code = """
import random
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("198.18.0.3", 53))
begin, sent = time.monotonic(), 0
while time.monotonic() - begin < 2:
    label = random.randbytes(30).hex()
    name = b"".join(bytes([len(p)]) + p for p in (label.encode(), b"example", b"org")) + b"\\0"
    try:
        s.send(struct.pack("!HHHHHH", sent & 0xffff, 0x100, 1, 0, 0, 0) + name + b"\\0\\1\\0\\1")
    except OSError:
        pass  # of one before it, which was refused
    sent += 1
tell(sent)
"""
    told, reply = attack(server, code)
    network = reply["network"]
    assert told > 1000
    assert "too many look-ups at once" in reasons(reply) and network["denied"] > 1000
    # 50 a second and as many at once, however long the run took.
    most = 50 + 50 * (reply["execution_time_ms"] / 1000 + 1)
    assert sum(c["verdict"] == "allowed" for c in network["connections"]) <= most


@pytest.mark.parametrize("kind", [16, 10, 255, 252, 65, 12], ids=["TXT", "NULL", "ANY", "AXFR", "HTTPS", "PTR"])
def test_questions_that_can_carry_data_are_not_asked(server, kind):
    code = f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.settimeout(5)
s.connect(("198.18.0.3", 53))
s.send(struct.pack("!HHHHHH", 7, 0x100, 1, 0, 0, 0) + b"\\x07example\\x03org\\0" + struct.pack("!HH", {kind}, 1))
a = s.recv(512)
tell([a[3] & 15, struct.unpack_from("!H", a, 6)[0]])
"""
    (code_, answers), reply = attack(server, code)
    assert answers == 0 and code_ in (0, 4, 5), reply


def test_a_flood_of_datagrams_ends_at_max_bytes(server):
    code = f"""
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.connect(("{PUBLIC4}", 9))
sent = errors = 0
begin = time.monotonic()
while time.monotonic() - begin < 3:
    try: sent += s.send(bytes(1200))
    except OSError: errors += 1
tell([sent, errors])
"""
    _, reply = attack(server, code)
    assert reply["network"]["bytes_out"] <= 64 << 20


def test_thousands_of_connections_one_after_the_other_are_all_made(server):
    code = f"""
n = 0
for _ in range(3000):
    with socket.create_connection(("{PUBLIC4}", 80), 5) as s:
        s.sendall(b"x")
        n += len(s.recv(1))
tell(n)
"""
    told, reply = attack(server, code)
    assert told == 3000
    network = reply["network"]
    assert (network["allowed"], network["denied"], network["bytes_in"]) == (3000, 0, 3000)
    assert network["more"] == 3000 - len(network["connections"])


def test_nobody_outside_can_begin_a_connection(server, net):
    """What listens in a cell is heard by the cell: the gate listens nowhere."""
    run = Background(attack, server, "s = socket.create_server(('0.0.0.0', 8080)); s.settimeout(3); print(end='', flush=True)\n"
                                     "try: s.accept(); tell('found')\nexcept TimeoutError: tell('alone')")
    listening = subprocess.run(["nsenter", f"--net={net.host.path}", "ss", "-Hltun"], capture_output=True, text=True, check=True).stdout
    assert run.result()[0] == "alone"
    ports = {line.split()[4].rpartition(":")[2] for line in listening.splitlines()}
    assert ports <= {"80", "81", "7"}, listening


def test_urgent_data_and_resets_end_nothing_but_their_connection(server):
    code = f"""
out = []
for n in range(200):
    s = socket.create_connection(("{PUBLIC4}", 80), 5)
    s.send(b"u", socket.MSG_OOB)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    s.close()
s = socket.create_connection(("{PUBLIC4}", 80), 5)
s.sendall(b"hello")
tell(s.recv(5).decode())
"""
    told, _ = attack(server, code)
    assert told == "hello"
