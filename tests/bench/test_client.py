"""The load client: a wrong answer is never counted as a run.

usage: test_client.py BENCH-CLIENT"""
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
from http.server import BaseHTTPRequestHandler, HTTPServer

CLIENT = os.path.abspath(sys.argv.pop(1))
BEGINS = b"\x89PNG\r\n\x1a\n\0"


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)

    def write(self, name, content):
        with open(os.path.join(self.folder.name, name), "wb") as f:
            f.write(content)
        return name

    def client(self, kind, begins, *more):
        """(runs that count, why the first wrong one was wrong) of two runs."""
        done = subprocess.run([CLIENT, kind, "-n", "2", "-e", self.write("expect", b"done\n"), "-f",
                               "a.png:" + self.write("begins", begins), *more], cwd=self.folder.name,
                              capture_output=True, check=True)
        found = json.loads(done.stdout)
        self.assertEqual(found["wrong"], bool(found["why"]))
        return len(found["samples"]), found["why"]


class Command(Case):
    def run_shell(self, script):
        return self.client("command", BEGINS, "--", "sh", "-c", f"{script}; echo done")

    def test_a_file_that_begins_as_it_has_to_is_right(self):
        self.assertEqual(self.run_shell(r"printf '\211PNG\r\n\032\n\0and more' >a.png"), (2, ""))

    def test_a_file_that_is_another_or_too_short_is_wrong(self):
        for content in (r"\211PNG\r\n\032\nx", r"\211PNG\r\n\032\n", ""):
            with self.subTest(content):
                self.assertEqual(self.run_shell(f"printf '{content}' >a.png"), (0, "a.png does not begin as it has to"))

    def test_a_file_of_an_earlier_run_is_not_the_one_of_this(self):
        self.write("a.png", BEGINS)
        runs, why = self.run_shell("true")
        self.assertEqual((runs, why), (1, "it left no a.png"))


class Http(Case):
    """A server whose reply is what the test says."""

    def run_reply(self, files):
        body = json.dumps({"status": "success", "exit_code": 0, "stdout": "done\n", "stderr": "", "files": files})

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                self.rfile.read(int(self.headers["Content-Length"]))
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body.encode())

            def log_message(self, *_):
                pass

        with HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
            thread.start()
            try:
                return self.client("http", b"iVBO", str(server.server_port), self.write("body", b"{}"))
            finally:
                server.shutdown()
                thread.join()

    def test_a_reply_with_the_file_is_right(self):
        self.assertEqual(self.run_reply([{"path": "a.png", "content": "iVBORw0KGgo="}]), (2, ""))

    def test_a_reply_without_it_or_with_another_is_wrong(self):
        good = {"path": "a.png", "content": "iVBORw0KGgo="}
        for files, why in (([], "0 files came back, the first is none"),
                           ([good, good], "2 files came back, the first is a.png"),
                           ([{**good, "path": "b.png"}], "1 files came back, the first is b.png"),
                           ([{**good, "content": "iVB"}], "a.png begins with  iVB "),
                           ([{"path": "a.png"}], "a.png begins with   ")):
            with self.subTest(why):
                self.assertEqual(self.run_reply(files), (0, why))


if __name__ == "__main__":
    unittest.main()
