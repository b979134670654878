"""HTTP by hand, for what a client library would not send."""
import json

from harness.server import Answer


class Wire:
    """One TCP connection: bytes out, answers in."""

    def __init__(self, server, timeout=60.0):
        self.sock = server.socket(timeout)
        self._in = self.sock.makefile("rb")
        self._host = f"127.0.0.1:{server.port}"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self._in.close()
        self.sock.close()

    def send(self, data):
        self.sock.sendall(data if isinstance(data, bytes) else data.encode())

    def head(self, method="POST", path="/execute", **headers):
        """A request head; underscores in names become dashes, None leaves one out."""
        fields = {"Host": self._host, "Content-Type": "application/json", **headers}
        lines = [f"{method} {path} HTTP/1.1"]
        lines += [f"{k.replace('_', '-')}: {v}" for k, v in fields.items() if v is not None]
        return ("\r\n".join(lines) + "\r\n\r\n").encode()

    def post(self, code, connection=None, **fields):
        body = json.dumps({"code": code, **fields}).encode()
        return self.head(Content_Length=len(body), Connection=connection) + body

    def answer(self, body=True):
        """The next answer, or None when the server closed instead."""
        line = self._in.readline()
        if not line:
            return None
        version, status, _reason = line.decode("latin-1").split(" ", 2)
        assert version == "HTTP/1.1", line
        headers = {}
        for raw in iter(self._in.readline, b"\r\n"):
            assert raw, "the head of the answer ends early"
            name, _, value = raw.decode("latin-1").partition(":")
            headers[name.strip().title()] = value.strip()
        size = int(headers.get("Content-Length", 0)) if body and status != "100" else 0
        content = self._in.read(size)
        assert len(content) == size, "the body of the answer ends early"
        return Answer(int(status), headers, content, 0.0)

    def is_closed(self):
        """Did the server close? Waits for it, up to the socket's timeout."""
        try:
            return self._in.read(1) == b""
        except ConnectionResetError:
            return True


def chunked(*pieces):
    return b"".join(b"%x\r\n%s\r\n" % (len(p), p) for p in pieces) + b"0\r\n\r\n"
