"""The internet of internet.py with servers that others wrote: nginx for plain HTTP and for TLS with
certificates of the tests' own authority, dnsmasq for names."""
import os
import subprocess
import zipfile
from pathlib import Path

from harness.internet import METADATA, OTHER4, PUBLIC4, PUBLIC6, RESOLVER, Internet
from harness.poll import wait_for

AUTHORITY = "/etc/ssl/certs/ca-certificates.crt"  # where the machine's own are
INDEX = "packages.example.net"
# What dnsmasq knows; whatever else it is asked for does not exist.
NAMES = {"example.org": [PUBLIC4, PUBLIC6], "www.example.org": [PUBLIC4], INDEX: [OTHER4], "inside.example.org": ["10.1.1.1"]}
BIG = os.urandom(1 << 20) * 24

NGINX = """
daemon off;
user root;
worker_processes 1;
pid {folder}/nginx.pid;
error_log stderr warn;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy; fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi; scgi_temp_path {folder}/scgi;
  client_max_body_size 64m;
  default_type application/octet-stream;
  ssl_certificate {folder}/server.crt;
  ssl_certificate_key {folder}/server.key;
  server {{ listen {public4}:80; listen [{public6}]:80; listen {public4}:443 ssl; listen [{public6}]:443 ssl;
    server_name example.org; root {folder}/example.org;
    location /moved {{ return 302 https://www.example.org/; }}
    location /upload {{ dav_methods PUT; root {folder}; }} }}
  server {{ listen {public4}:80; listen {public4}:443 ssl; server_name www.example.org; root {folder}/www.example.org; }}
  server {{ listen {other4}:443 ssl; server_name {index}; root {folder}/index; autoindex on; }}
  server {{ listen 10.1.1.1:80; listen {metadata}:80; return 200 secret; }}
}}
"""


def make_wheel(folder):
    """A package that anybody could have made: gbxdemo 1.0."""
    folder.mkdir(parents=True)
    with zipfile.ZipFile(folder / "gbxdemo-1.0-py3-none-any.whl", "w") as wheel:
        wheel.writestr("gbxdemo.py", "def answer():\n    return 42\n")
        wheel.writestr("gbxdemo-1.0.dist-info/METADATA", "Metadata-Version: 2.1\nName: gbxdemo\nVersion: 1.0\n")
        wheel.writestr("gbxdemo-1.0.dist-info/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr("gbxdemo-1.0.dist-info/RECORD", "gbxdemo.py,,\ngbxdemo-1.0.dist-info/METADATA,,\n"
                       "gbxdemo-1.0.dist-info/WHEEL,,\ngbxdemo-1.0.dist-info/RECORD,,\n")


class Sites(Internet):
    """`with Sites(folder) as net`, as Internet; net.authority is what the clients have to trust."""

    def __init__(self, folder):
        super().__init__(folder)
        self.folder = Path(folder)
        self.authority = self.folder / "ca.crt"

    def __enter__(self):
        self._certify()
        for site in ("example.org", "www.example.org"):
            (self.folder / site).mkdir()
            (self.folder / site / "index.html").write_text(f"this is {site}\n")
        (self.folder / "upload").mkdir()
        (self.folder / "example.org" / "big").write_bytes(BIG)
        make_wheel(self.folder / "index" / "simple" / "gbxdemo")
        return super().__enter__()

    def _openssl(self, *argv):
        subprocess.run(["openssl", *argv], check=True, capture_output=True, cwd=self.folder)

    def _certify(self):
        """An authority, and one certificate by it for all names."""
        self._openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
                      "-keyout", "ca.key", "-out", "ca.crt", "-subj", "/CN=The tests' authority")
        self._openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes",
                      "-keyout", "server.key", "-out", "server.csr", "-subj", "/CN=example.org")
        (self.folder / "names").write_text("subjectAltName=" + ",".join(f"DNS:{name}" for name in NAMES))
        self._openssl("x509", "-req", "-in", "server.csr", "-CA", "ca.crt", "-CAkey", "ca.key", "-CAcreateserial", "-days", "2",
                      "-extfile", "names", "-out", "server.crt")

    def _serve(self, namespace, which):
        if which != "world":
            return super()._serve(namespace, which)
        (self.folder / "nginx.conf").write_text(NGINX.format(
            folder=self.folder, public4=PUBLIC4, public6=PUBLIC6, other4=OTHER4, metadata=METADATA, index=INDEX))
        self._run("nginx", "-e", "stderr", "-c", str(self.folder / "nginx.conf"))
        self._run("dnsmasq", "--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts", "--user=root",
                  f"--listen-address={RESOLVER}", "--bind-interfaces", "--local=/#/", f"--pid-file={self.folder}/dnsmasq.pid",
                  *(f"--host-record={name},{','.join(addresses)}" for name, addresses in NAMES.items()))
        return None

    def _run(self, *argv):
        """A server of the world, which has come up when it has written its number."""
        log = open(self.folder / f"{argv[0]}.log", "wb")  # pylint: disable=consider-using-with
        server = subprocess.Popen(["nsenter", f"--net={self.world.path}", *argv],
                                  stdin=subprocess.DEVNULL, stdout=log, stderr=log)

        def end():
            server.terminate()
            server.wait()
            log.close()
        self.stack.callback(end)
        number = self.folder / f"{argv[0]}.pid"

        def up():
            assert server.poll() is None, (self.folder / f"{argv[0]}.log").read_text()
            return number.exists() and number.read_text().strip()
        wait_for(f"{argv[0]} to come up", up)

    def host_reads(self, url):
        """What a process of the machine itself is told there."""
        return subprocess.run(["nsenter", f"--net={self.host.path}", "curl", "-sS", "--max-time", "30", url],
                              check=True, capture_output=True, text=True).stdout

    def preexec(self):
        super().preexec()
        self.bind(self.authority, AUTHORITY)
