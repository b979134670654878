"""Clients and servers that others wrote, through the gate: nginx and dnsmasq outside (harness/sites.py),
what people use inside."""
import json
import re
from hashlib import sha256

import pytest

from harness.internet import METADATA, OTHER4, PUBLIC4, PUBLIC6
from harness.server import ROOT
from harness.sites import BIG, INDEX, Sites

HOME = "this is example.org\n"


@pytest.fixture(scope="module")
def net(tmp_path_factory):
    with Sites(tmp_path_factory.mktemp("sites")) as internet:
        yield internet


@pytest.fixture(scope="module")
def server(start):
    return start("--cold=false", "--network", timeout="30s")


def ask(server, code, **fields):
    reply = server.run(code, **{"allow_network": True, "memory_limit_mb": 400, "pids_limit": 64, **fields})
    assert reply["status"] == "success", reply
    return reply


def reached(reply):
    return {(c["protocol"], c["name"], c["address"], c["port"]) for c in reply["network"]["connections"] if c["protocol"] != "dns"}


GET = {
    "python": "import urllib.request\nprint(urllib.request.urlopen('https://example.org/').read().decode(), end='')",
    "bash": "curl -sS https://example.org/",
    "ruby": "require 'net/http'\nprint Net::HTTP.get(URI('https://example.org/'))",
    "php": "<?php echo file_get_contents('https://example.org/');",
}


def test_the_readmes_request_is_answered_with_the_defaults(server):
    readme = (ROOT / "README.md").read_text()
    body = json.loads(re.search(r"-d '(\{[^']*urlopen[^']*\})'", readme)[1])
    answer = server.post(body)
    assert answer.json()["stdout"] == "200\n", answer
    assert reached(answer.json()) == {("tcp", "example.org", PUBLIC4, 443)} or reached(answer.json()) == {("tcp", "example.org", PUBLIC6, 443)}


@pytest.mark.parametrize("language", list(GET))
def test_a_site_is_read_by_name_and_its_certificate_checked_with_the_machines_authorities(server, language):
    reply = ask(server, GET[language], language=language)
    assert reply["stdout"] == HOME and reply["stderr"] == ""
    assert {(name, port) for _, name, _, port in reached(reply)} == {("example.org", 443)}
    assert reply["network"]["denied"] == 0


def test_node_fetches(server, net):
    """It trusts authorities of its own, and takes others from a file."""
    reply = ask(server, "fetch('https://example.org/').then(r => r.text()).then(t => process.stdout.write(t))",
                language="javascript", env={"NODE_EXTRA_CA_CERTS": "ca.pem"},
                files=[{"path": "ca.pem", "content": net.authority.read_text()}])
    assert reply["stdout"] == HOME and reply["stderr"] == ""


def test_java_knows_the_machines_authorities(server):
    """It has a file of its own for them."""
    reply = ask(server, """
import javax.net.ssl.*;
class main {
    public static void main(String[] args) throws Exception {
        TrustManagerFactory f = TrustManagerFactory.getInstance("PKIX");
        f.init((java.security.KeyStore) null);
        System.out.println(((X509TrustManager) f.getTrustManagers()[0]).getAcceptedIssuers().length > 50);
    }
}
""", language="java", memory_limit_mb=600)
    assert reply["stdout"] == "true\n"


def test_a_certificate_of_nobody_is_refused_by_the_client(server):
    """What the gate carries is what was sent: it ends no TLS of anybody's."""
    reply = ask(server, "import ssl, urllib.request\ntry:\n urllib.request.urlopen('https://example.org/', "
                        "context=ssl.create_default_context(cadata=ssl.get_server_certificate(('example.org', 443))))\n"
                        "except OSError as e:\n print(e.reason.reason)")
    assert reply["stdout"] == "CERTIFICATE_VERIFY_FAILED\n"


def test_a_redirect_to_another_name_is_followed(server):
    reply = ask(server, "import urllib.request\nr = urllib.request.urlopen('http://example.org/moved')\nprint(r.url, r.read())")
    assert reply["stdout"] == "https://www.example.org/ b'this is www.example.org\\n'\n"
    assert {(name, port) for _, name, _, port in reached(reply)} == {("example.org", 80), ("www.example.org", 443)}


def test_pip_installs_from_an_index(server):
    reply = ask(server, f"""
import subprocess, sys
r = subprocess.run([sys.executable, "-m", "pip", "install", "--disable-pip-version-check", "--no-cache-dir", "--quiet", "--target", "lib",
                    "--index-url", "https://{INDEX}/simple", "--cert", "/etc/ssl/certs/ca-certificates.crt", "gbxdemo==1.0"],
                   capture_output=True, text=True)
print(r.returncode, r.stderr)
sys.path.insert(0, "lib")
import gbxdemo
print(gbxdemo.answer())
""")
    assert reply["stdout"].splitlines()[-1] == "42", reply
    assert reached(reply) == {("tcp", INDEX, OTHER4, 443)}


def test_what_is_large_arrives_whole_and_is_counted(server):
    """Over IPv4 and over IPv6, with and without TLS."""
    code = """
import hashlib, json, ssl, urllib.request
seen = []
for url in ("http://{4}/big", "https://{4}/big", "http://[{6}]/big"):
    c = ssl.create_default_context()
    c.check_hostname = False
    r = urllib.request.urlopen(urllib.request.Request(url, headers={"Host": "example.org"}), context=c if url[4] == "s" else None)
    h = hashlib.sha256()
    while data := r.read(1 << 16):
        h.update(data)
    seen.append(h.hexdigest())
print(json.dumps(seen))
""".replace("{4}", PUBLIC4).replace("{6}", PUBLIC6)
    reply = ask(server, code)
    assert json.loads(reply["stdout"]) == [sha256(BIG).hexdigest()] * 3
    # What is sent again counts again.
    assert all(len(BIG) < c["bytes_in"] < 1.05 * len(BIG) for c in reply["network"]["connections"]), reply["network"]


def test_what_is_sent_arrives_whole(server, net):
    reply = ask(server, """
import hashlib, os, urllib.request
data = os.urandom(1 << 20) * 16
r = urllib.request.urlopen(urllib.request.Request("http://example.org/upload/it", data=data, method="PUT"))
print(r.status, hashlib.sha256(data).hexdigest())
""")
    arrived = (net.folder / "upload" / "it").read_bytes()
    assert reply["stdout"] == f"201 {sha256(arrived).hexdigest()}\n" and len(arrived) == 16 << 20
    [line] = [c for c in reply["network"]["connections"] if c["protocol"] == "tcp"]
    assert len(arrived) < line["bytes_out"] < 1.05 * len(arrived)


def test_a_slow_reader_gets_all_and_holds_up_nobody(server):
    """Of one connection nothing is read while another is used: the first one's bytes wait in the kernel
    and the stack, and not in memory without bound."""
    reply = ask(server, f"""
import http.client
slow = http.client.HTTPConnection("{PUBLIC4}")
slow.request("GET", "/big", headers={{"Host": "example.org"}})
r = slow.getresponse()
first = r.read(10)
for _ in range(20):
    c = http.client.HTTPConnection("{PUBLIC4}")
    c.request("GET", "/", headers={{"Host": "example.org"}})
    assert c.getresponse().read() == b"this is example.org\\n"
print(len(first) + len(r.read()))
""")
    assert reply["stdout"] == f"{len(BIG)}\n"


def test_a_name_of_a_real_resolver_that_leads_inside_has_no_address(server):
    reply = ask(server, "import socket\ntry:\n print(socket.getaddrinfo('inside.example.org', 80))\nexcept OSError as e:\n print(e.errno)")
    assert reply["stdout"] in ("-2\n", "-5\n")
    [line] = {(c["name"], c["verdict"]) for c in reply["network"]["connections"]}
    assert line[0] == "inside.example.org"


def test_the_metadata_service_of_a_cloud_answers_everybody_but_a_run(server, net):
    at_the_edge = net.host_reads(f"http://{METADATA}/latest/")
    assert at_the_edge == "secret"
    reply = ask(server, f"curl -sS http://{METADATA}/latest/; echo $?", language="bash")
    assert reply["stdout"] == "7\n"
    [line] = reply["network"]["connections"]
    assert (line["verdict"], line["reason"]) == ("denied", "the address of a cloud's metadata service")
