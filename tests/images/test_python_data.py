"""The image that is shipped as a manifest, built of Debian's packages: minutes, and some hundred
megabytes from Debian's mirror."""
import json
import statistics
import subprocess
import time

import pytest

from harness.cli import glovebox
from harness.life import finish
from harness.poll import wait_for
from harness.server import Server

MODULES = ["numpy", "pandas", "matplotlib", "scipy", "sympy", "PIL", "openpyxl", "requests"]
# What a question about data comes to: a table, a group, a picture of it.
PROGRAM = """
import io, pandas, matplotlib.pyplot as plt
table = pandas.DataFrame({"k": list("abab"), "v": [1, 2, 3, 4]}).groupby("k").sum()
table.plot.bar()
picture = io.BytesIO()
plt.savefig(picture, format="png")
print(table.v.to_dict(), picture.getvalue()[1:4].decode())
"""
ANSWER = "{'a': 4, 'b': 6} PNG\n"
ROOM = {"memory_limit_mb": 512, "timeout_seconds": 60, "cpu_limit": 1}


@pytest.fixture(name="store", scope="module")
def _store(tmp_path_factory):
    store = tmp_path_factory.mktemp("store") / "images"
    done = glovebox("image", "--image-dir", store, "build", "python-data", timeout=1200)
    assert done.returncode == 0, done
    return store


@pytest.fixture(name="server", scope="module")
def _server(store):
    s = Server("--image-dir", store, "--image", "python-data", "--max-memory", "1G")
    try:
        s.start()
        yield s
        s.must_live()
        finish(s)
    finally:
        if s.process:
            s.stop()


def test_every_module_that_it_is_for_is_there(store):
    code = f"import importlib\nfor name in {MODULES}: print(importlib.import_module(name).__name__)"
    done = glovebox("run", "--image-dir", store, "--image", "python-data", "-", input=code)
    assert (done.returncode, done.stdout.decode().split()) == (0, MODULES), done


def test_its_first_program_needs_no_word_of_limits(store, serve):
    server = serve("--image-dir", store, "--cold")
    reply = server.execute(PROGRAM, image="python-data")
    assert (reply.status, reply.stdout) == ("success", ANSWER), reply
    assert reply["limits"]["memory_limit_mb"] == 512 and reply["limits"]["timeout_seconds"] == 30, reply


def test_what_is_installed_in_it_is_listed(store):
    done = glovebox("image", "--image-dir", store, "list", "--json")
    (image,) = json.loads(done.stdout)
    there = {(p["from"], p["name"]): p["version"] for p in image["packages"]}
    assert ("dpkg", "python3-pandas") in there and ("dpkg", "libc6") in there
    code = "import importlib.metadata as m\nprint(*sorted({d.metadata['Name'] for d in m.distributions()}), sep='\\n')"
    done = glovebox("run", "--image-dir", store, "--image", "python-data", "-", input=code)
    assert done.stdout.decode().split() == sorted(name for kind, name in there if kind == "python"), done
    done = glovebox("run", "--image-dir", store, "--image", "python-data", "-", input="import platform; print(platform.python_version())")
    assert done.stdout.decode().strip() == image["version"], done


def test_what_reads_a_table_and_draws_it_finds_all_its_modules_imported(server):
    code = "import sys\nbefore = set(sys.modules)\n" + PROGRAM + "print(sorted(set(sys.modules) - before))\n"
    table = [{"path": "t.csv", "content": "k,v\na,1\nb,2\n"}]
    wait_for("a pool of warm cells", server.is_idle)
    reply = server.run(code + "print(pandas.read_csv('t.csv').to_csv(index=False))", files=table, **ROOM)
    assert (reply.status, reply.stdout) == ("success", ANSWER + "[]\nk,v\na,1\nb,2\n\n"), reply


def bare(store):
    """The same in the same files, by a `python3` with no cage around it: seconds."""
    script = ('mount -o loop,ro -t squashfs "$1"/python-data/root.squashfs /mnt && mount -t tmpfs none /mnt/tmp && '
              'exec chroot /mnt /usr/bin/env -i PATH=/usr/bin HOME=/tmp MPLCONFIGDIR=/tmp MPLBACKEND=agg '
              'python3 -c "$2"')
    began = time.monotonic()
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, "sh", store, PROGRAM], capture_output=True, check=True)
    took = time.monotonic() - began
    assert done.stdout.decode() == ANSWER, done
    return took


def test_pandas_and_matplotlib_answer_in_a_fifth_of_the_time_of_a_bare_python(store, server):
    caged, plain = [], []
    for _ in range(5):
        plain.append(bare(store))
        began = time.monotonic()
        reply = server.run(PROGRAM, **ROOM)
        caged.append(time.monotonic() - began)
        assert (reply.status, reply.stdout) == ("success", ANSWER), reply
    print("bare", plain, "caged", caged)
    assert statistics.median(caged) < statistics.median(plain) / 5, (caged, plain)
