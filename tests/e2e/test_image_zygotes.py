"""Warm interpreters of images that requests pick: begun by the first run, lost, replaced, ended."""
import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import census
from harness.cli import glovebox
from harness.images import LIBRARY, PYTHON, busybox, docker_save, entry, link, python, tar
from harness.life import finish
from harness.poll import wait_for

# As a server does by default; later flags win.
FLAGS = ["--cold=false", "--pool-size", "2"]
MUSL_LOADER = f"/lib/ld-musl-{os.uname().machine}.so.1"
LOADER = {"x86_64": "lib64/ld-linux-x86-64.so.2", "aarch64": "lib/ld-linux-aarch64.so.1"}[os.uname().machine]
# A start of CPython takes 800 and more, a fork without a rehearsal some 300.
COLD_FAULTS = 600
# Room for `preload` in struct image_start, and what is behind it (wire/image.h).
PRELOAD_ROOM, BEHIND_PRELOAD = 256, 8
MODULES = {"dying": "import os; os.kill(os.getpid(), 9)",
           "bending": "import json\ndef dumps(value):\n    raise OSError('bent')\njson.dumps = dumps\n",
           "late": "import os\nclass Late:\n    def __del__(self):\n        os.kill(os.getpid(), 9)\n"
                   "late = Late()\nlate.itself = late\ndel late\n"}
# It prints the program instead of running it.
READER = ('#include <stdio.h>\nint main(int n, char **a) { char t[99]; FILE *f = fopen(a[n - 1], "r");\n'
          'return !f || !fgets(t, 99, f) || printf("read %s", t) < 0; }\n')


def take(store, name, layer, *flags):
    path = store.parent / "archive.tar"
    path.write_bytes(docker_save(layer))
    done = glovebox("image", "--image-dir", store, "import", *flags, path, name, timeout=300)
    assert done.returncode == 0, done
    return done.stderr.decode()


def set_preload(store, name, modules):
    """As a manifest's `preload` does for an image that is built."""
    record = store / name / "record"
    data = bytearray(record.read_bytes())
    end = len(data) - BEHIND_PRELOAD
    data[end - PRELOAD_ROOM:end] = modules.encode().ljust(PRELOAD_ROOM, b"\0")
    record.write_bytes(data)


def reader(tmp, *flags):
    """A program that is no interpreter, of musl, under the name of the one that fits."""
    (tmp / "reader.c").write_text(READER)
    subprocess.run(["musl-gcc", *flags, "-o", tmp / "reader", tmp / "reader.c"], check=True)
    return [entry(PYTHON[1:], (tmp / "reader").read_bytes(), 0o755),
            link("usr/bin/python3", os.path.basename(PYTHON))]


@pytest.fixture(name="store", scope="module")
def _store(tmp_path_factory):
    """Images: `one`, `two`, `eager`, `spoiled` fit; `stranger` is not trusted; `musl` does not fit;
    `deceiver` only looks as if it did; `shell` has no Python. A module that `dying` preloads ends who
    imports it, one of `bending` breaks what the interpreter practises, one of `late` leaves garbage that ends who collects it."""
    tmp = tmp_path_factory.mktemp("images")
    store = tmp / "store"
    for name in ("one", "two", "eager", "spoiled"):
        assert "cold" not in take(store, name, python(entry("etc/motd", f"of {name}")), "--trusted")
    set_preload(store, "eager", "xml.dom.minidom,wave")
    set_preload(store, "spoiled", "wave,no_such_module")
    for name, module in MODULES.items():
        take(store, name, python(entry(f"{LIBRARY[1:]}/{name}_module.py", module)), "--trusted")
        set_preload(store, name, f"wave,{name}_module")
    said = take(store, "stranger", python())
    assert "programs start cold; with --trusted a server keeps its interpreter warm" in said
    with open(MUSL_LOADER, "rb") as loader:
        take(store, "musl", tar(entry(MUSL_LOADER[1:], loader.read(), 0o755), *reader(tmp)), "--trusted")
    with open("/" + LOADER, "rb") as loader:
        take(store, "deceiver", tar(entry(LOADER, loader.read(), 0o755), *reader(tmp, "-static")), "--trusted")
    take(store, "shell", busybox(), "--trusted")
    return store


@pytest.fixture(name="images")
def _images(store, serve):
    """images(*flags): a server with them; at its end nothing of it may be left."""
    made = []

    def start(*flags):
        server = serve(*FLAGS, "--image-dir", store, *flags)
        server.rest()
        made.append(server)
        return server

    yield start
    for server in made:
        finish(server)


def starts(server):
    """{image: how its next program starts} as GET /runtimes has it."""
    answer = server.request("GET", "/runtimes", timeout=120)
    assert answer.status == 200, answer
    return {i["name"]: i["start"] for i in answer.json()["images"]}


def warm_up(server, *names):
    """Until each is warm. It is asked for all the while: one that nobody asks for is ended, started or not."""
    def is_warm(name):
        server.run("pass", image=name)
        return starts(server)[name] == "warm"

    wait_for("the images' zygotes", lambda: all([is_warm(name) for name in names]))


def is_cold(reply):
    return reply["usage"]["minor_faults"] > COLD_FAULTS


def zygotes_of_images(server, default):
    return [pid for pid in census.zygotes(server.pid) if pid not in default]


PROGRAM = """
import os, sys
print(open("/etc/motd").read(), sys.argv, sys.flags, sys.path, sys.executable, os.getcwd(), sorted(os.environ))
print(sys.stdin.read(), open("d/f").read(), __name__, __file__, file=sys.stderr)
raise SystemExit(7)
"""
INPUTS = {"stdin": "in\n", "args": ["arg"], "env": {"A": "b"}, "files": [{"path": "d/f", "content": "file\n"}]}


def shown(reply):
    return reply.status, reply.stdout, reply.stderr, reply.exit_code, reply["image"]


def test_the_first_run_in_an_image_is_cold_the_next_ones_warm_and_all_say_the_same(images):
    server = images()
    assert starts(server)["one"] == "cold"
    first = server.run(PROGRAM, image="one", **INPUTS)
    assert is_cold(first) and first.exit_code == 7 and first.stdout.startswith("of one ['main.py', 'arg']"), first
    wait_for("its zygote", lambda: starts(server)["one"] == "warm")
    for _ in range(3):
        reply = server.run(PROGRAM, image="one", **INPUTS)
        assert not is_cold(reply) and shown(reply) == shown(first), (reply, first)
    assert starts(server)["two"] == "cold"
    assert ' ev=line_begun image="one"' in server.log()


def test_all_ends_of_a_warm_run_in_an_image_are_as_after_a_cold_start(images):
    server = images()
    warm_up(server, "one")

    def is_still_warm():
        assert not is_cold(server.run("pass", image="one"))

    is_still_warm()
    assert server.run("while True: pass", image="one", timeout_seconds=0.5).status == "timeout"
    is_still_warm()
    assert server.run("x = []\nwhile True: x.append(bytes(range(256)) * 4096)", image="one", memory_limit_mb=64,
                      timeout_seconds=30).status == "memory_exceeded"
    is_still_warm()
    assert server.run("import os; os.kill(os.getpid(), 11)", image="one").exit_code == 139
    is_still_warm()
    reply = server.run("open('out.txt', 'w').write('x')", image="one", artifacts="inline")
    assert [(f["path"], f["content"]) for f in reply["files"]] == [("out.txt", "x")], reply
    reply = server.run("import os\ntry: open('/etc/motd', 'w')\nexcept OSError as e: print(e.errno, os.getuid())", image="one")
    assert reply.stdout == "30 1000\n", reply


def test_two_images_and_the_servers_own_are_warm_at_once(images):
    server = images()
    warm_up(server, "one", "two")
    code = "import os; print(open('/etc/motd').read() if os.path.exists('/etc/motd') else '-')"
    with ThreadPoolExecutor(6) as pool:
        names = ["one", "two", None] * 6
        replies = list(pool.map(lambda n: server.run(code, **({"image": n} if n else {})), names))
    for name, reply in zip(names, replies):
        assert not is_cold(reply), (name, reply)
        assert (reply.stdout == f"of {name}\n") == bool(name), (name, reply)
    assert len(census.zygotes(server.pid)) == 3
    groups = [Path(f"/proc/{pid}/cgroup").read_text(encoding="ascii") for pid in census.zygotes(server.pid)]
    assert sum("/image-zygotes\n" in g for g in groups) == 2 and sum("/zygotes\n" in g for g in groups) == 1, groups


def test_a_zygote_of_an_image_that_is_killed_costs_no_request_and_is_replaced(images):
    server = images()
    default = census.zygotes(server.pid)
    warm_up(server, "one")
    before = server.rest()
    with ThreadPoolExecutor(4) as pool:
        runs = [pool.submit(server.run, f"print({n})", image="one") for n in range(24)]
        for _ in range(3):
            for pid in zygotes_of_images(server, default):
                os.kill(pid, signal.SIGKILL)
            runs[_ * 8].result()
        assert [r.result().stdout for r in runs] == [f"{n}\n" for n in range(24)]
    # Of a kill the front may not have heard yet: what it says of "warm" is a moment old.
    wait_for("a run from the next zygote", lambda: not is_cold(server.run("pass", image="one")))
    assert starts(server)["one"] == "warm"
    assert ' ev=zygote_lost ' in server.log() and 'runtime="one"' in server.log()
    health = server.health().json()
    assert (health["status"], health["warm"]) == ("ok", "on")  # that is about the server's own
    server.settles_to(before)


def test_a_zygote_of_an_image_that_is_stopped_costs_a_bounded_time(images):
    server = images()
    default = census.zygotes(server.pid)
    warm_up(server, "one")
    expected = server.run(ENVIRONMENT, image="one").stdout
    (stopped,) = zygotes_of_images(server, default)
    os.kill(stopped, signal.SIGSTOP)
    for _ in range(3):
        assert server.run(ENVIRONMENT, image="one").stdout == expected
    wait_for("it to be given up", lambda: not os.path.exists(f"/proc/{stopped}"))
    wait_for("the next zygote", lambda: starts(server)["one"] == "warm")


ENVIRONMENT = "import os, random; print(sorted(os.environ.items()), random.__file__)"


@pytest.mark.parametrize("files", [[], [{"path": "random.py", "content": "x = 1\n"}]], ids=["warm", "executed anew"])
def test_a_warm_run_has_the_environment_of_its_image_and_not_of_the_server(images, files):
    server = images()
    first = server.run(ENVIRONMENT, image="one", files=files)
    assert "/usr/local/sbin" in first.stdout, first  # as no language of the server has it
    wait_for("its zygote", lambda: starts(server)["one"] == "warm")
    again = server.run(ENVIRONMENT, image="one", files=files)
    assert again.stdout == first.stdout
    assert is_cold(again) == bool(files), again


def test_an_interpreter_of_musl_stays_cold(images):
    server = images()
    for n in range(3):
        assert server.run(f"{n}\n", image="musl").stdout == f"read {n}\n"
    assert starts(server)["musl"] == "cold"
    assert " ev=line_begun " not in server.log() and len(census.zygotes(server.pid)) == 1


def test_what_has_no_python_stays_cold(images):
    server = images()
    for _ in range(2):
        assert server.run("echo ok", image="shell").stdout == "ok\n"
    assert " ev=line_begun " not in server.log()


def test_an_interpreter_of_an_image_that_root_does_not_trust_never_runs_outside_of_a_cell(images):
    server = images()
    for _ in range(3):
        reply = server.run("print('on')", image="stranger")
        assert reply.stdout == "on\n" and is_cold(reply), reply
    assert " ev=line_begun " not in server.log() and len(census.zygotes(server.pid)) == 1


def test_a_server_of_an_image_that_is_not_trusted_is_cold(images):
    server = images("--image", "stranger")
    assert server.run("print('on')").stdout == "on\n"
    assert server.health().json()["warm"] == "off" and not census.zygotes(server.pid)


def test_an_image_that_only_looks_as_if_it_fits_answers_cold(images):
    server = images()
    for n in range(4):
        assert server.run(f"{n}\n", image="deceiver").stdout == f"read {n}\n"
    wait_for("its zygote to be lost", lambda: 'runtime="deceiver" why="zygote: ' in server.log())
    assert server.run("x\n", image="deceiver").stdout == "read x\n"
    assert starts(server)["deceiver"] == "cold"
    assert server.health().json()["status"] == "ok"


def test_what_an_image_preloads_is_there_in_its_warm_runs_only(images):
    server = images()
    code = "import sys; print('wave' in sys.modules, 'xml.dom.minidom' in sys.modules)"
    warm_up(server, "eager", "one")
    assert server.run(code, image="eager").stdout == "True True\n"
    assert server.run(code, image="one").stdout == "False False\n"
    assert server.run(code).stdout == "False False\n"


def test_a_module_that_cannot_be_preloaded_is_told_and_the_image_is_warm_without(images):
    server = images()
    warm_up(server, "spoiled")
    assert ' ev=line_preload image="spoiled" why="zygote: module no_such_module: ModuleNotFoundError' in server.log()
    reply = server.run("import sys; print('wave' in sys.modules)", image="spoiled")
    assert reply.stdout == "False\n" and not is_cold(reply), reply


@pytest.mark.parametrize("name, why", [
    ("dying", "zygote: module dying_module: it ended"),
    ("bending", "zygote: rehearsal printed"),
    ("late", "zygote: what follows the imports: it ended"),
])
def test_a_preload_that_ends_its_zygote_is_told_and_the_image_is_warm_without(images, name, why):
    server = images()
    warm_up(server, name)
    told = [line for line in server.log().splitlines() if f' ev=line_preload image="{name}" ' in line]
    assert len(told) == 1 and why in told[0], (told, server.log())
    reply = server.run("import sys; print('wave' in sys.modules)", image=name)
    assert reply.stdout == "False\n" and not is_cold(reply), reply


def test_programs_of_an_image_whose_interpreter_fits_tell_what_python_tells_warm_and_cold(images):
    server = images()
    warm_up(server, "one")
    for name in ("stranger", "one"):
        failed = server.execute("def f(): 1 / 0\nf()", image=name)
        assert (failed["status"], failed["exit_code"]) == ("error", 1)
        told = failed["error"]
        assert (told["type"], told["line"]) == ("ZeroDivisionError", 1), told
        assert failed["stderr"].startswith("Traceback (most recent call last):\n  File"), failed["stderr"]
        value = server.execute("x = 20\nx + 1", image=name, return_last=True)
        assert value["result"]["repr"] == "21" and value["error"] is None, value
        assert is_cold(failed) == is_cold(value) == (name == "stranger"), value
    refused = server.post({"code": "1", "image": "musl", "return_last": True})
    assert refused.status == 422 and "a program in musl tells no last value" in refused.json()["detail"][0]["msg"]


def test_a_servers_own_image_tells_as_much_as_its_interpreter_can(store, serve):
    server = serve(*FLAGS, "--image-dir", store, "--image", "one")
    assert server.execute("6 * 7", return_last=True)["result"]["repr"] == "42"
    server = serve(*FLAGS, "--image-dir", store, "--image", "shell")
    refused = server.post({"code": "1", "return_last": True})
    assert refused.status == 422 and "tells no last value" in refused.json()["detail"][0]["msg"]


def test_a_servers_own_image_preloads_what_it_names(store, serve):
    server = serve(*FLAGS, "--image-dir", store, "--image", "eager")
    wait_for("its zygote", lambda: server.health().json()["warm"] == "on")
    server.rest()
    reply = server.run("import sys; print('wave' in sys.modules, 'xml.dom.minidom' in sys.modules)")
    assert reply.stdout == "True True\n" and not is_cold(reply), reply


def test_a_servers_own_image_that_cannot_be_mounted_is_named(store):
    root = store / "two/root.squashfs"
    whole = root.read_bytes()
    root.write_bytes(bytes(4096) + whole[4096:])
    try:
        done = glovebox("run", "--image-dir", store, "--image", "two", "-", input="print('hi')")
    finally:
        root.write_bytes(whole)
    assert done.returncode == 125 and b"image two: " in done.stderr, done


def test_a_worn_zygote_of_an_image_is_replaced_without_being_missed(images):
    server = images("--zygote-max-forks", "5")
    warm_up(server, "one")

    def third_is_warm():
        assert [server.run(f"print({n})", image="one").stdout for n in range(3)] == ["0\n", "1\n", "2\n"]
        return server.log().count(' runtime="one" modules=') >= 3

    wait_for("a second and a third", third_is_warm)
    assert " ev=zygote_lost " not in server.log()
    wait_for("the old ones to go", lambda: len(census.zygotes(server.pid)) == 2)


def test_a_zygote_that_no_run_asks_for_is_ended_and_begun_anew(images):
    server = images("--cell-max-age", "3s")
    warm_up(server, "one")
    wait_for("its end", lambda: ' ev=line_ended image="one" why="nobody has asked for it"' in server.log())
    wait_for("its process to go", lambda: len(census.zygotes(server.pid)) == 1)
    assert starts(server)["one"] == "cold"
    assert is_cold(server.run("pass", image="one"))
    warm_up(server, "one")


def test_a_server_that_starts_everything_cold_has_no_zygotes_of_images(images):
    server = images("--cold")
    for _ in range(2):
        assert is_cold(server.run("pass", image="one"))
    assert starts(server)["one"] == "cold" and not census.zygotes(server.pid)


def test_a_server_ends_while_zygotes_of_images_start_and_leaves_nothing(images):
    server = images()
    for name in ("one", "two", "eager"):
        server.run("pass", image=name)
    # And now images() ends it, and looks.
