"""What several files need: a store of images of a test's own, and `glovebox image` for it; a small
internet, and servers at its edge. A module may have its own of each."""
import os
import subprocess

import pytest

from harness.cli import glovebox
from harness.images import busybox, docker_save, entry
from harness.internet import Internet
from harness.server import PROGRAM, Server


@pytest.fixture(name="store")
def _store(tmp_path):
    return tmp_path / "images"


@pytest.fixture(name="image")
def _image(store):
    """image(VERB, …): `glovebox image` with a store of this test's own."""
    return lambda *args, **kw: glovebox("image", "--image-dir", store, *args, **kw)


@pytest.fixture(name="take")
def _take(image, tmp_path):
    """Import the bytes of an archive."""

    def take(archive, *flags, name="test"):
        path = tmp_path / "archive.tar"
        path.write_bytes(archive)
        return image("import", *flags, path, name)

    return take


@pytest.fixture(name="inside")
def _inside(store):
    """Run a shell script in the image `test`."""
    return lambda script, *flags: glovebox("run", "--image-dir", store, "--image", "test", "--timeout", "20",
                                           *flags, "-", input=script)


@pytest.fixture(name="take_slowly")
def _take_slowly(store, tmp_path):
    """Begin an import that takes some seconds; the process, ended after the test."""
    started = []

    def start():
        (tmp_path / "archive.tar").write_bytes(docker_save(busybox(
            *(entry(f"noise{i}", os.urandom(32 << 20)) for i in range(8)))))
        started.append(subprocess.Popen([PROGRAM, "image", "--image-dir", store, "import", tmp_path / "archive.tar",
                                         "test"], stdout=subprocess.PIPE, stderr=subprocess.PIPE))
        return started[0]
    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture(name="net", scope="module")
def _net(tmp_path_factory):
    with Internet(tmp_path_factory.mktemp("internet")) as internet:
        yield internet


@pytest.fixture(name="start", scope="module")
def _start(net, tmp_path_factory):
    """start(*flags): a server at the edge of that internet."""
    servers = []

    def begin(*flags, timeout="15s", **kwargs):
        kwargs.setdefault("listen", f"unix:{tmp_path_factory.mktemp('server') / 's'}")
        s = Server("--timeout", timeout, *flags, preexec=net.preexec, **kwargs)
        servers.append(s)
        return s.start()
    yield begin
    for s in servers:
        assert s.stop() == 0
