"""Runs with `allow_network: true`: what they reach of a small internet (harness/internet.py), what they
do not, and what the reply says of it."""
import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from harness import census
from harness.background import Background
from harness.internet import (CALLS, FORBIDDEN, FORBIDDEN6, HOST4, HOST6, LIBC, METADATA, MS_BIND, NEIGHBOUR4, NEIGHBOUR6, PUBLIC4,
                              PUBLIC6, UNREACHABLE, check)
from harness.poll import wait_for
from harness.server import PROGRAM


@pytest.fixture(scope="module")
def server(start):
    return start("--network")


def ask(server, code, **fields):
    """What the program tells, and the reply's network."""
    reply = server.run(CALLS + code, allow_network=True, **fields)
    assert reply["status"] == "success", reply
    assert reply["limits"]["allow_network"] is True
    return json.loads(reply["stdout"]), reply["network"], reply


def only(network):
    [line] = network["connections"]
    return line


def test_a_program_reaches_a_public_address(server):
    told, network, _ = ask(server, f"tell([tcp('{PUBLIC4}', 80), tcp('{PUBLIC6}', 81), udp('{PUBLIC4}'), udp('{PUBLIC6}')])")
    assert told == ["hello"] * 4
    assert [(c["protocol"], c["address"], c["port"], c["bytes_in"], c["bytes_out"], c["verdict"], c["reason"])
            for c in network["connections"]] == [
        ("tcp", PUBLIC4, 80, 5, 5, "allowed", None), ("tcp", PUBLIC6, 81, 5, 5, "allowed", None),
        ("udp", PUBLIC4, 7, 5, 5, "allowed", None), ("udp", PUBLIC6, 7, 5, 5, "allowed", None)]
    assert (network["allowed"], network["denied"], network["more"]) == (4, 0, 0)
    assert (network["bytes_in"], network["bytes_out"]) == (20, 20)


def test_a_port_that_nobody_listens_on_refuses(server):
    told, network, _ = ask(server, f"tell(tcp('{PUBLIC4}', 9))")
    assert told == "ConnectionRefusedError 111"
    assert only(network)["verdict"] == "allowed"


@pytest.mark.parametrize("address", [*FORBIDDEN, HOST4, *FORBIDDEN6, HOST6, "::ffff:10.1.1.1"])
def test_what_is_not_public_is_denied_at_once_and_named(server, address):
    told, network, reply = ask(server, f"tell(tcp('{address}', {81 if ':' in address else 80}))")
    assert told in ("OSError 113", "PermissionError 13"), told
    line = only(network)
    assert (line["verdict"], line["address"]) == ("denied", address.removeprefix("::ffff:"))
    assert line["reason"], line
    assert reply["denials"][0]["layer"] == "network" and "network.connections" in reply["hint"]
    assert network["bytes_in"] == network["bytes_out"] == network["allowed"] == 0


def test_the_reasons_tell_the_kinds_apart(server):
    code = f"tell([tcp(a, 80) for a in ('{METADATA}', '10.1.1.1', '{HOST4}', '100.64.0.1')])"
    _, network, _ = ask(server, code)
    assert [c["reason"] for c in network["connections"]] == [
        "the address of a cloud's metadata service", "a private address", "an address of the machine itself",
        "an address of a provider's own network (CGNAT)"]


def test_the_neighbours_are_not_public_whatever_their_addresses(server):
    told, network, _ = ask(server, f"tell([tcp('{NEIGHBOUR4}', 80), tcp('{NEIGHBOUR6}', 81)])")
    assert told in (["OSError 113"] * 2, ["OSError 113", "PermissionError 13"]), told
    assert [c["reason"] for c in network["connections"]] == ["an address on a network of the machine's"] * 2


def test_what_could_not_be_connected_is_not_open(start):
    few = start("--network", "--network-connections", "2")
    told, network, _ = ask(few, f"tell([tcp('{UNREACHABLE}', 80) for _ in range(5)] + [tcp('{PUBLIC4}', 80)])")
    assert told == ["OSError 113"] * 5 + ["hello"]
    assert (network["allowed"], network["denied"]) == (6, 0)


def test_what_programs_have_no_need_of_fails_at_once(server):
    """A datagram that has to go in fragments."""
    code = (f"s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\ns.settimeout(5)\ns.connect(('{PUBLIC4}', 7))\n"
            "s.send(b'x' * 20000)\ntry: tell(len(s.recv(20000)))\nexcept OSError as e: tell(type(e).__name__ + ' ' + str(e.errno))")
    told, network, _ = ask(server, code)
    assert told == "OSError 113"
    assert (only(network)["address"], only(network)["times"]) == (PUBLIC4, 2)
    assert only(network)["reason"] == "not TCP, UDP or an echo request as programs send them"


def test_the_loopback_is_the_cells_own(server):
    told, network, _ = ask(server, "s = socket.create_server(('127.0.0.1', 0))\n"
                                   "c = socket.create_connection(s.getsockname())\ntell(tcp('127.0.0.1', 80))")
    assert told == "ConnectionRefusedError 111"
    assert network["connections"] == []


def test_names_lead_to_addresses_and_the_record_knows_them(server):
    told, network, _ = ask(server, "tell([look_up('example.org'), tcp('example.org', 80), look_up('nowhere.example.org')])")
    assert told == [sorted([PUBLIC4, PUBLIC6]), "hello", -2]
    lines = network["connections"]
    assert [(c["protocol"], c["name"]) for c in lines if c["protocol"] == "dns"] == [
        ("dns", "example.org"), ("dns", "nowhere.example.org")]
    # One of its two addresses; IPv6 comes first, where nobody listens on that port.
    assert [c["name"] for c in lines if c["bytes_in"]] == ["example.org"]


def test_an_answer_that_does_not_fit_is_asked_for_by_tcp(server):
    told, network, _ = ask(server, "tell(look_up('large.example.org'))")
    assert len(told) == 16 and all(a.startswith("93.184.217.") for a in told)
    assert network["denied"] == 0


def test_look_ups_count_in_the_bytes(server):
    _, network, _ = ask(server, "tell(look_up('example.org'))")
    assert network["bytes_out"] == 2 * 29 and network["bytes_in"] > network["bytes_out"]


def test_a_name_that_leads_inside_has_no_address(server):
    """Rebinding: an answer is only what a run may reach."""
    told, _, _ = ask(server, "tell([look_up('rebind.example.org'), look_up('half.example.org')])")
    assert told == [-5, [PUBLIC4]]


def test_nobody_but_the_gates_resolver_is_asked_through_it(server):
    code = ("import os\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\n"
            "q = b'\\1\\2\\1\\0\\0\\1\\0\\0\\0\\0\\0\\0\\6secret\\7example\\3org\\0\\0\\20\\0\\1'\n"
            "s.settimeout(3)\ns.sendto(q, ('198.18.0.3', 53))\ntell(list(s.recv(512)[2:8]))")
    told, network, _ = ask(server, code)
    # TXT: no error, and no answer.
    assert told == [0x81, 0x80, 0, 1, 0, 0]
    assert only(network)["reason"] == "not a question for an address of a host"


def test_a_run_without_it_has_no_network(server):
    reply = server.run(CALLS + f"tell(tcp('{PUBLIC4}', 80))")
    assert json.loads(reply["stdout"]) == "OSError 101"
    assert reply["network"] is None and reply["limits"]["allow_network"] is False
    assert "allow_network" in reply["hint"]


def test_a_server_that_gives_none_refuses_and_says_who_can(start):
    plain = start("--network=off")
    answer = plain.post({"code": "pass", "allow_network": True})
    assert answer.status == 422
    [complaint] = answer.json()["detail"]
    assert complaint["loc"] == ["body", "allow_network"] and "network is off" in complaint["msg"] and "network: on" in complaint["msg"]
    assert plain.request("GET", "/limits").json()["fixed"]["network"] is False


def test_the_operators_bounds_hold(start):
    few = start("--network", "--network-connections", "2", "--network-bytes", "100K")
    told, network, _ = ask(few, f"held = [socket.create_connection(('{PUBLIC4}', 80), 5) for _ in range(2)]\ntell(tcp('{PUBLIC4}', 80))")
    assert told == "OSError 113"
    assert [c["reason"] for c in network["connections"]] == [None, None, "max_connections are open"]
    code = (f"s = socket.create_connection(('{PUBLIC4}', 80), 5)\ns.settimeout(2)\nn = 0\n"
            "try:\n  while True:\n    s.sendall(b'x' * 1000)\n    n += len(s.recv(1000))\nexcept OSError: tell(n)")
    told, network, _ = ask(few, code)
    assert 0 < told <= 102400 and network["bytes_in"] + network["bytes_out"] <= 102400
    assert "max_bytes are used up" in [c["reason"] for c in network["connections"]]


def test_no_more_passes_in_a_second_than_the_operator_gives(start):
    """400 KB there and back at 100 KB a second: it cannot be done in less than three."""
    slow = start("--network", "--network-rate", "100K")
    code = (f"import time\ns = socket.create_connection(('{PUBLIC4}', 80), 5)\nbegan, n = time.monotonic(), 0\n"
            "for _ in range(20):\n  s.sendall(b'x' * 10000)\n  left = 10000\n"
            "  while left: left -= len(s.recv(left))\ntell(time.monotonic() - began)")
    told, network, _ = ask(slow, code)
    assert told >= 2.5, told
    assert (network["bytes_in"], network["bytes_out"]) == (200000, 200000)


def test_raw_and_packet_sockets_are_not_to_be_had(server):
    code = ("out = []\nfor f, k, p in ((socket.AF_INET, socket.SOCK_RAW, 1), (socket.AF_PACKET, socket.SOCK_RAW, 3)):\n"
            "  try: socket.socket(f, k, p); out.append('made')\n  except OSError as e: out.append(e.errno)\ntell(out)")
    told, _, _ = ask(server, code)
    assert "made" not in told


def test_a_program_cannot_change_its_interface(server):
    code = ("import fcntl, struct\ns = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)\nout = []\n"
            "for request in (0x8914, 0x8916, 0x890b):\n"
            "  try: fcntl.ioctl(s, request, struct.pack('16sH22x', b'net0', 0)); out.append('done')\n"
            "  except OSError as e: out.append(e.errno)\ntell(out)")
    told, _, _ = ask(server, code)
    assert "done" not in told


def test_two_runs_do_not_meet(server):
    """Each has the same addresses, and nobody else is on its net."""
    told, network, _ = ask(server, "tell([tcp('198.18.0.2', 80), tcp('198.18.0.1', 80), tcp('198.18.0.9', 80)])")
    assert told[0] == "ConnectionRefusedError 111" and told[1:] == ["OSError 113"] * 2
    assert {c["verdict"] for c in network["connections"]} == {"denied"}


def test_a_bash_program_has_it_too(server):
    reply = server.run(f"exec 3<>/dev/tcp/{PUBLIC4}/80 && echo hello >&3 && read -u 3 x && echo got $x",
                       language="bash", allow_network=True)
    assert reply["stdout"] == "got hello\n", reply


def test_a_gate_that_is_killed_is_told_and_the_program_sees_a_dead_network(server):
    code = CALLS + f"import time\nwhile tcp('{PUBLIC4}', 80, 1) == 'hello': time.sleep(0.05)\nprint('gone')"
    run = Background(server.run, code, allow_network=True)
    [gate] = wait_for("its gate", lambda: census.role_pids(server.pid, "gate"))
    os.kill(gate, signal.SIGKILL)
    reply = run.result()
    assert (reply["status"], reply["stdout"]) == ("success", "gone\n"), reply
    assert any(w.startswith("network: the gate") for w in reply["warnings"]), reply["warnings"]
    assert "ev=gate" in server.log()


def test_a_gate_has_no_rights_and_sees_nothing(server):
    code = CALLS + f"import time\nwhile tcp('{PUBLIC4}', 80, 1) == 'hello': time.sleep(0.05)\nprint('gone')"
    run = Background(server.run, code, allow_network=True)

    def confined():
        """Once it has its filter."""
        found = []
        for pid in census.role_pids(server.pid, "gate"):
            with open(f"/proc/{pid}/status", encoding="ascii") as f:
                found.append({key: value.strip() for key, _, value in (line.partition(":") for line in f)})
        return [s for s in found if s["Seccomp"] == "2"]
    status = wait_for("a confined gate", confined)[0]
    assert {status[f"Cap{k}"] for k in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1" and status["Uid"].split() == [str(os.stat(f"/proc/{server.front}").st_uid + 1)] * 4
    assert os.listdir(f"/proc/{status['Pid']}/root") == []
    os.kill(int(status["Pid"]), signal.SIGKILL)
    run.result()


def test_a_server_that_cannot_start_gates_says_so_at_its_start(net):
    def without_library():
        net.preexec()
        for path in Path("/usr/lib").glob("*/libslirp.so.0.*"):
            check(LIBC.mount(b"/dev/null", os.fsencode(path), None, MS_BIND, None), "hide a library")
    done = subprocess.run([PROGRAM, "serve", "--listen", "127.0.0.1:0", "--network"], preexec_fn=without_library,
                          capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode not in (0, None) and "libslirp0" in done.stderr, done.stderr


def test_when_runs_are_over_nothing_of_their_networks_is_left(server):
    before = server.rest()
    for _ in range(5):
        ask(server, f"tell(tcp('{PUBLIC4}', 80))")
    server.settles_to(before)
    assert census.role_pids(server.pid, "gate") == []


def test_many_runs_at_a_time_each_have_their_own(server):
    runs = [Background(ask, server, f"tell([tcp('{PUBLIC4}', 80) for _ in range(20)])") for _ in range(4)]
    for told, network, _ in (r.result() for r in runs):
        assert told == ["hello"] * 20
        assert network["allowed"] == 20 and network["bytes_in"] == 100
