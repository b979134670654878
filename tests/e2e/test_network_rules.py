"""Rules for the network, a request's and the operator's, on a small internet (harness/internet.py), warm
and cold; and where runs can have a network at all."""
import contextlib
import json
import os
import subprocess

import pytest

from harness.internet import (CALLS, CLONE_NEWNS, HOST4, HOST6, LIBC, METADATA, MS_BIND, MS_PRIVATE, MS_REC, OTHER4, PUBLIC4,
                              PUBLIC6, check)
from harness.server import PROGRAM, Server

PROHIBITED = ("OSError 113", "PermissionError 13")
OPERATOR, NO_RULE, DENIED = ("not allowed by the operator", "allowed by no rule of the request",
                             "denied by a rule of the request")


@pytest.fixture(scope="module", params=["warm", "cold"])
def server(request, start):
    return start(*(["--cold"] if request.param == "cold" else []))


def ask(server, code, network):
    """What the program tells, each refusal's reason, and the reply."""
    reply = server.run(CALLS + code, network=network)
    assert reply["status"] == "success", reply
    assert reply["limits"]["allow_network"] is True
    return (json.loads(reply["stdout"]), [c["reason"] for c in reply["network"]["connections"] if c["reason"]], reply)


def tcp(*ends):
    return "tell([" + ", ".join(f"tcp({a!r}, {p})" for a, p in ends) + "])"


# ---- The request's ----

def test_what_no_rule_allows_is_denied_and_named(server):
    told, reasons, _ = ask(server, tcp((PUBLIC4, 80), (PUBLIC4, 81), (OTHER4, 80), (PUBLIC6, 81)),
                           {"allow": [f"{PUBLIC4}:80", f"[{PUBLIC6}]:81"]})
    assert (told[0], told[3]) == ("hello", "hello") and told[1] in PROHIBITED and told[2] in PROHIBITED, told
    assert reasons == [NO_RULE, NO_RULE]


def test_a_range_is_what_is_in_it(server):
    told, reasons, _ = ask(server, tcp((PUBLIC4, 80), (OTHER4, 80)), {"allow": ["93.184.216.34/32", "8.8.0.0/16"]})
    assert told[0] == "hello" and told[1] in PROHIBITED and reasons == [NO_RULE]
    told, reasons, _ = ask(server, tcp((PUBLIC4, 80), (OTHER4, 80)), {"allow": ["93.184.216.0/24"]})
    assert told == ["hello", "hello"] and reasons == []


def test_an_empty_list_allows_nothing_and_none_whatever_is_public(server):
    told, reasons, _ = ask(server, tcp((PUBLIC4, 80)) + "\n", {"allow": []})
    assert told[0] in PROHIBITED and reasons == [NO_RULE]
    told, reasons, _ = ask(server, tcp((PUBLIC4, 80), ("10.1.1.1", 80)), {})
    assert told[0] == "hello" and told[1] in PROHIBITED and reasons == ["a private address"]


def test_deny_goes_before_allow(server):
    told, reasons, _ = ask(server, tcp((PUBLIC4, 80), (OTHER4, 80)), {"allow": ["*"], "deny": [PUBLIC4]})
    assert told[0] in PROHIBITED and told[1] == "hello" and reasons == [DENIED]


def test_a_name_opens_what_it_leads_to_and_nothing_else(server):
    code = "tell([look_up('example.org'), look_up('www.example.org'), look_up('other.example.net'), " \
           f"tcp('example.org', 80), tcp('{OTHER4}', 80)])"
    told, reasons, _ = ask(server, code, {"allow": ["example.org:80"]})
    assert told[0] == sorted([PUBLIC4, PUBLIC6]) and isinstance(told[1], int) and isinstance(told[2], int), told
    assert told[3] == "hello" and told[4] in PROHIBITED
    assert set(reasons) == {NO_RULE}


def test_names_below_a_name_are_not_the_name(server):
    code = "tell([look_up('www.example.org'), look_up('example.org')])"
    told, reasons, _ = ask(server, code, {"allow": ["*.example.org"]})
    assert told[0] == [PUBLIC4] and isinstance(told[1], int) and set(reasons) == {NO_RULE}


def test_no_rule_of_a_request_opens_what_is_not_public(server):
    ends = [("10.1.1.1", 80), (METADATA, 80), (HOST4, 80)]
    told, reasons, _ = ask(server, tcp(*ends), {"allow": ["*", "10.0.0.0/8", METADATA, HOST4, "0.0.0.0/0"]})
    assert all(t in PROHIBITED for t in told), told
    assert reasons == ["a private address", "the address of a cloud's metadata service", "an address of the machine itself"]


def test_the_requests_bounds_hold_and_are_told(server):
    code = (f"held = [socket.create_connection(('{PUBLIC4}', 80), 5)]\n" + tcp((PUBLIC4, 80)))
    bounds = {"max_connections": 1, "max_bytes": 5000, "max_rate": 4096}
    told, reasons, reply = ask(server, code, bounds)
    assert told[0] in PROHIBITED and reasons == ["max_connections are open"]
    assert reply["limits"]["network"] == {"allow": ["*"], "deny": [], **bounds}
    code = (f"s = socket.create_connection(('{PUBLIC4}', 80), 5)\ns.settimeout(2)\nn = 0\n"
            "try:\n  while True:\n    s.sendall(b'x' * 500)\n    n += len(s.recv(500))\nexcept OSError: tell(n)")
    told, reasons, reply = ask(server, code, {"max_bytes": 5000})
    assert 0 < told <= 5000 and reply["network"]["bytes_in"] + reply["network"]["bytes_out"] <= 5000
    assert "max_bytes are used up" in reasons


def test_the_limits_of_a_reply_ask_for_the_same_again(server):
    rules = {"allow": ["example.org:80-81", f"{PUBLIC4}", "2606:2800::/32"], "deny": ["[2606:2800::]:25", "*.example.org"]}
    _, _, reply = ask(server, tcp((OTHER4, 80)), rules)
    limits = reply["limits"]["network"]
    assert (limits["allow"], limits["deny"]) == (rules["allow"], rules["deny"])
    _, reasons, again = ask(server, tcp((OTHER4, 80)), limits)
    assert again["limits"] == reply["limits"] and reasons == [NO_RULE]


# ---- The operator's ----

def test_the_operators_rules_are_above_the_requests(start):
    s = start("--network-allow", f"{PUBLIC4}:80-81,{OTHER4}", "--network-deny", f"{PUBLIC4}:81")
    told, reasons, _ = ask(s, tcp((PUBLIC4, 80), (PUBLIC4, 81), (OTHER4, 80), (PUBLIC6, 81)),
                           {"allow": ["*", f"{PUBLIC4}:81"]})
    assert (told[0], told[2]) == ("hello", "hello") and told[1] in PROHIBITED and told[3] in PROHIBITED, told
    assert reasons == [OPERATOR, OPERATOR]
    told, reasons, _ = ask(s, tcp((PUBLIC4, 80), (OTHER4, 80)), {"allow": [OTHER4]})
    assert told[0] in PROHIBITED and told[1] == "hello" and reasons == [NO_RULE]


def test_an_address_of_the_operators_opens_what_is_not_public_and_nothing_but_that(start):
    s = start("--network-allow", "*,10.1.1.1:80,192.168.0.0/16")
    ends = [(PUBLIC4, 80), ("10.1.1.1", 80), ("192.168.7.1", 80), ("10.1.1.1", 81), ("172.16.0.1", 80), (METADATA, 80)]
    told, reasons, _ = ask(s, tcp(*ends), {})
    assert told[:3] == ["hello"] * 3 and all(t in PROHIBITED for t in told[3:]), told
    assert reasons == ["a private address", "a private address", "the address of a cloud's metadata service"]
    told, _, _ = ask(s, "tell(look_up('half.example.org'))", {})
    assert told == sorted(["10.1.1.1", PUBLIC4])


def test_no_range_of_the_operators_opens_what_is_the_machines_own(start):
    s = start("--network-allow", "0.0.0.0/0,::/0")
    told, reasons, _ = ask(s, tcp(("10.1.1.1", 80), (HOST4, 80), (HOST6, 81)), {})
    assert told[0] == "hello" and told[1] in PROHIBITED and told[2] in PROHIBITED, told
    assert reasons == ["an address of the machine itself"] * 2
    s = start("--network-allow", f"{HOST4}/32:80")
    told, reasons, _ = ask(s, tcp((HOST4, 80), (HOST4, 81)), {})
    assert told[0] == "hello" and told[1] in PROHIBITED and reasons == ["an address of the machine itself"]


def test_the_operators_rules_come_from_the_file_too(start, tmp_path):
    file = tmp_path / "g.yaml"
    file.write_text(f"network: on\nnetwork-allow:\n  - '*'\nnetwork-deny: ['{OTHER4}']\n", encoding="ascii")
    s = start("--config", str(file))
    told, reasons, _ = ask(s, tcp((PUBLIC4, 80), (OTHER4, 80)), {"allow": ["*"]})
    assert told[0] == "hello" and told[1] in PROHIBITED and reasons == [OPERATOR]


def test_a_request_asks_for_no_more_than_the_operator_gives(start):
    s = start("--network-connections", "3", "--network-bytes", "1M", "--network-rate", "100K")
    fixed = s.request("GET", "/limits").json()["fixed"]
    assert [fixed[f"network{m}"] for m in ("", "_rules", "_connections", "_bytes", "_rate")] == [True, 64, 3, 1 << 20, 102400]
    answer = s.post({"code": "pass", "network": {"max_connections": 4, "max_bytes": (1 << 20) + 1, "max_rate": 102401}})
    assert [d["loc"][2] for d in answer.json()["detail"]] == ["max_connections", "max_bytes", "max_rate"]
    _, _, reply = ask(s, "tell(1)", {"max_connections": 2})
    assert reply["limits"]["network"] == {"allow": ["*"], "deny": [], "max_connections": 2, "max_bytes": 1 << 20, "max_rate": 102400}


# ---- Where there is one ----

def given(server):
    network = server.request("GET", "/health").json()["network"]
    assert server.request("GET", "/limits").json()["fixed"]["network"] is network["given"]
    asked = server.post({"code": "pass", "network": {}})
    assert asked.status == (200 if network["given"] else 422), asked
    if not network["given"]:
        assert network["why"] in asked.json()["detail"][0]["msg"]
    return network["given"], network["why"]


LOCAL = (True, "network is auto, and listen is a loopback address or a Unix socket")
BEYOND = (False, "network is auto, and listen is neither a loopback address nor a Unix socket")


@contextlib.contextmanager
def served(*flags, **kwargs):
    s = Server("--pool-size", "1", *flags, **kwargs)
    try:
        yield s.start()
    finally:
        s.stop()


@pytest.mark.parametrize("listen, flags, what", [
    ("127.0.0.1:0", (), LOCAL), ("unix:", (), LOCAL), ("0.0.0.0:0", ("--insecure",), BEYOND),
    ("0.0.0.0:0", ("--insecure", "--network"), (True, "network is on")),
    ("127.0.0.1:0", ("--network=off",), (False, "network is off"))])
def test_by_itself_a_server_gives_one_where_only_this_machine_reaches_it(listen, flags, what, tmp_path):
    if listen == "unix:":
        listen += str(tmp_path / "s")
    with served(*flags, listen=listen) as s:
        assert given(s) == what


def without_a_device(tmp_path):
    """What runs on such a machine."""
    (tmp_path / "dev").mkdir()

    def preexec():
        check(LIBC.unshare(CLONE_NEWNS), "unshare")
        check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
        check(LIBC.mount(os.fsencode(tmp_path / "dev"), b"/dev/net", None, MS_BIND, None), "hide /dev/net")
    return preexec


def test_without_a_device_there_is_none_and_on_is_no_start(tmp_path):
    preexec = without_a_device(tmp_path)
    with served(preexec=preexec) as s:
        has, why = given(s)
        assert has is False and "/dev/net/tun cannot be opened here: `modprobe tun` may bring it" in why
    for verb, code in (("serve", 1), ("doctor", 1)):
        env = {**os.environ, "GLOVEBOX_NETWORK": "on", "GLOVEBOX_LISTEN": f"unix:{tmp_path}/t"}
        done = subprocess.run([PROGRAM, verb], text=True, capture_output=True, preexec_fn=preexec, env=env, timeout=60,
                              check=False)
        assert done.returncode == code and "there is no /dev/net/tun here" in done.stdout + done.stderr, (verb, done)
    done = subprocess.run([PROGRAM, "doctor", "--json"], text=True, capture_output=True, preexec_fn=preexec, timeout=60, check=False)
    [said] = [a for a in json.loads(done.stdout)["advice"] if "network" in a]
    assert done.returncode == 0 and said.startswith("runs get no network: ") and "/dev/net/tun" in said, said


def test_doctor_says_that_there_is_one():
    done = subprocess.run([PROGRAM, "doctor", "--json"], text=True, capture_output=True, timeout=60, check=False)
    [said] = [a for a in json.loads(done.stdout)["advice"] if "network" in a]
    assert said == "runs can have a network: network is auto, and listen is a loopback address or a Unix socket"
    off = subprocess.run([PROGRAM, "doctor", "--json"], text=True, capture_output=True, timeout=60, check=False,
                         env={**os.environ, "GLOVEBOX_NETWORK": "off"})
    assert "runs get no network: network is off" in json.loads(off.stdout)["advice"]


def test_where_what_carries_packets_does_not_start_there_is_none_and_doctor_says_why(tmp_path):
    listed = subprocess.run(["ldconfig", "-p"], text=True, capture_output=True, check=True).stdout
    library = next(line.split(" => ")[1] for line in listed.splitlines() if "libslirp.so.0 " in line)
    (tmp_path / "empty").touch()

    def preexec():
        check(LIBC.unshare(CLONE_NEWNS), "unshare")
        check(LIBC.mount(None, b"/", None, MS_REC | MS_PRIVATE, None), "make mounts private")
        check(LIBC.mount(os.fsencode(tmp_path / "empty"), library.encode(), None, MS_BIND, None), "hide libslirp")
    with served(preexec=preexec) as s:
        has, why = given(s)
        assert has is False and why.startswith("network is auto, and the process that carries packets cannot be started")
        assert "libslirp0" in s.log()
    done = subprocess.run([PROGRAM, "doctor", "--json"], text=True, capture_output=True, preexec_fn=preexec, timeout=60, check=False)
    [said] = [a for a in json.loads(done.stdout)["advice"] if "network" in a]
    assert done.returncode == 0 and said.startswith("runs get no network: gates cannot be started") and "libslirp0" in said, said


# ---- Without a server ----

def run(net, code, *flags):
    return subprocess.run([PROGRAM, "run", "--timeout", "15", *flags, "-"], input=CALLS + code, text=True,
                          capture_output=True, preexec_fn=net.preexec, timeout=60, check=False)


def test_a_run_without_a_server_has_what_its_options_give_it(net):
    code = tcp((PUBLIC4, 80), (OTHER4, 80), ("10.1.1.1", 80))
    told = json.loads(run(net, code, "--allow-network").stdout)
    assert told[:2] == ["hello", "hello"] and told[2] in PROHIBITED
    told = json.loads(run(net, code, "--allow-network", "--network-allow", f"{PUBLIC4}:80").stdout)
    assert told[0] == "hello" and told[1] in PROHIBITED
    told = json.loads(run(net, code, "--network-deny", PUBLIC4).stdout)
    assert told[0] in PROHIBITED and told[1] == "hello"
    assert json.loads(run(net, code).stdout) == ["OSError 101"] * 3


def test_the_answer_of_a_run_without_a_server_says_what_it_reached(net):
    done = run(net, tcp((PUBLIC4, 80), (OTHER4, 80)), "--network-allow", PUBLIC4, "--json")
    reply = json.loads(done.stdout)
    assert [(c["address"], c["verdict"], c["reason"]) for c in reply["network"]["connections"]] == [
        (PUBLIC4, "allowed", None), (OTHER4, "denied", NO_RULE)]
    assert reply["limits"]["allow_network"] is True and reply["limits"]["network"]["allow"] == [PUBLIC4]
    assert reply["denials"][0]["layer"] == "network"


def test_a_run_whose_rule_is_wrong_or_that_may_have_none_is_refused(net, tmp_path):
    done = run(net, "tell(1)", "--network-allow", "a.org", "--network-allow", "exa mple.org")
    assert done.returncode == 125 and 'network.allow[1]: "exa mple.org" may have' in done.stderr and "byte 4" in done.stderr
    file = tmp_path / "g.yaml"
    file.write_text("network: off\n", encoding="ascii")
    done = run(net, "tell(1)", "--config", str(file), "--allow-network")
    assert done.returncode == 125 and "network: runs get none here: network is off" in done.stderr
