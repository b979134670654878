"""Images that come into the store, go from it, or are replaced while a server runs."""
import os
import signal
import subprocess
import threading
from pathlib import Path

import pytest

from harness import census
from harness.background import Background
from harness.cli import glovebox
from harness.images import busybox, docker_save, entry, python
from harness.life import finish
from harness.poll import wait_for

FLAGS = ["--cold=false", "--pool-size", "2", "--max-runs", "4"]
# Of the name in struct image_record (wire/image.h).
NAME_AT, NAME_ROOM = 8, 32
HOLDS = "cat /etc/motd; until [ -e go ]; do busybox sleep 0.05; done; cat /etc/motd"


@pytest.fixture(name="store")
def _store(tmp_path):
    return tmp_path / "var" / "images"


@pytest.fixture(name="image")
def _image(store):
    def image(*args):
        done = glovebox("image", "--image-dir", store, *args, timeout=300)
        assert done.returncode == 0, done
    return image


@pytest.fixture(name="add")
def _add(image, tmp_path):
    """Import an image in which /etc/motd holds that text."""
    def add(name, text, *flags, layer=busybox):
        path = tmp_path / "archive.tar"
        path.write_bytes(docker_save(layer(entry("etc/motd", text))))
        image("import", *flags, path, name)
    return add


@pytest.fixture(name="server")
def _server(add, store, serve):
    """A server that knows the image `first`; at its end nothing of it may be left."""
    add("first", "first\n")
    server = serve(*FLAGS, "--image-dir", store)
    server.rest()
    yield server
    finish(server)


def known(server):
    return [i["name"] for i in server.request("GET", "/runtimes").json()["images"]]


def until_known(server, *names):
    wait_for(f"the images {names}", lambda: known(server) == list(names))


def refusal(server, name):
    answer = server.post({"code": "true", "image": name})
    assert answer.status == 422, answer
    [item] = answer.json()["detail"]
    assert (item["loc"], item["input"]) == (["body", "image"], name)
    return item["msg"]


def devices(store):
    """Loop devices behind files of the store, those among them that were removed since."""
    done = subprocess.run(["losetup", "-lnO", "BACK-FILE"], capture_output=True, check=True, timeout=30)
    return [line for line in done.stdout.decode().splitlines() if line.startswith(str(store))]


def mounts(server):
    return sum(" squashfs " in line for line in Path(f"/proc/{server.pid}/mountinfo").read_text().splitlines())


def rename(store, old, new):
    """As if `old` were removed and `new` imported, in less time."""
    record = store / old / "record"
    data = bytearray(record.read_bytes())
    data[NAME_AT:NAME_AT + NAME_ROOM] = new.encode().ljust(NAME_ROOM, b"\0")
    record.write_bytes(data)
    (store / old).rename(store / new)


class Held:
    """A run in an image that goes on until it is let go."""

    def __init__(self, server, name):
        self._reply = Background(server.run, HOLDS, image=name, timeout_seconds=60)
        self._pid, = wait_for("its program", lambda: census.program_processes(server.uid_base, "sh"))

    def let_go(self):
        Path(f"/proc/{self._pid}/root/workspace/go").touch()
        return self._reply.result()


def test_an_image_that_comes_while_a_server_runs_can_be_asked_for(server, add, store):
    assert refusal(server, "second") == "Value error, this server knows the images first"
    add("second", "second\n")
    until_known(server, "first", "second")
    reply = server.run("cat /etc/motd", image="second")
    assert (reply.stdout, reply["image"]) == ("second\n", "second"), reply
    assert server.run("cat /etc/motd", image="first").stdout == "first\n"
    assert len(devices(store)) == 2


def test_the_first_image_of_all_can_be_asked_for_though_there_was_no_store(serve, add, store):
    server = serve(*FLAGS, "--image-dir", store)
    assert refusal(server, "first").startswith("Value error, this server knows no images: make or import one")
    for _ in range(2):  # and once more after somebody has taken away the store and what it lay in
        assert not store.parent.exists()
        add("first", "first\n")
        until_known(server, "first")
        assert server.run("cat /etc/motd", image="first").stdout == "first\n"
        subprocess.run(["rm", "-r", store.parent], check=True, timeout=30)
        until_known(server)
    finish(server)


def test_an_image_that_was_removed_is_refused_while_a_run_in_it_goes_on(server, image, add, store):
    before = server.held()
    held = Held(server, "first")
    image("remove", "first")
    until_known(server)
    assert refusal(server, "first").startswith("Value error, this server knows no images")
    assert mounts(server) == 1
    reply = held.let_go()
    assert (reply.status, reply.stdout, reply["image"]) == ("success", "first\nfirst\n", "first"), reply
    wait_for("its mount and its device to go", lambda: not mounts(server) and not devices(store))
    server.settles_to(before)
    add("first", "again\n")
    until_known(server, "first")
    assert server.run("cat /etc/motd", image="first").stdout == "again\n"


def test_of_an_image_that_was_replaced_new_runs_get_the_new_one(server, add, store):
    assert server.run("cat /etc/motd", image="first").stdout == "first\n"
    before = server.rest()
    held = Held(server, "first")
    add("first", "newer\n", "--replace")
    wait_for("the new one", lambda: server.run("cat /etc/motd", image="first").stdout == "newer\n")
    assert known(server) == ["first"] and mounts(server) == 2
    assert held.let_go().stdout == "first\nfirst\n"
    wait_for("the old one to go", lambda: mounts(server) == 1 and devices(store) == [str(store / "first/root.squashfs")])
    assert server.run("cat /etc/motd", image="first").stdout == "newer\n"
    server.settles_to(before)


def test_while_an_image_is_replaced_every_run_gets_the_old_one_or_the_new_one(server, add, store):
    order = ["first\n", *(f"{n}\n" for n in range(6))]
    over = threading.Event()

    def ask():
        seen = []
        while not over.is_set():
            reply = server.run("cat /etc/motd", image="first")
            seen.append(order.index(reply.stdout))
        return seen

    before = server.rest()
    jobs = [Background(ask) for _ in range(12)]  # more than run at once: some wait in the queue
    for text in order[1:]:
        add("first", text, "--replace")
        wait_for("the new one", lambda text=text: server.run("cat /etc/motd", image="first").stdout == text)
    over.set()
    for job in jobs:
        seen = job.result()
        assert seen == sorted(seen), seen  # and never the old one again
    wait_for("the old ones to go", lambda: len(devices(store)) == 1)
    server.settles_to({**before, "mounts": before["mounts"] + 1})


def test_images_of_more_names_than_there_are_places_come_and_go_and_leave_nothing(server, add, image, store):
    before = server.rest()
    add("n-1", "-\n")
    for n in range(36):
        name = f"n{n}"
        rename(store, f"n{n - 1}", name)
        wait_for(name, lambda: name in known(server))
        assert server.run("cat /etc/motd", image=name).stdout == "-\n"
    image("remove", "n35")
    until_known(server, "first")
    wait_for("the last device to go", lambda: not devices(store))
    server.settles_to(before)
    assert server.run("cat /etc/motd", image="first").stdout == "first\n"


def test_a_front_that_was_killed_is_followed_by_one_that_knows_the_same(server, add, image):
    add("second", "second\n")
    image("remove", "first")
    until_known(server, "second")
    os.kill(server.front, signal.SIGKILL)
    wait_for("the next front", lambda: "ev=front_restarted" in server.log() and server.is_ready())
    assert known(server) == ["second"]
    assert server.run("cat /etc/motd", image="second").stdout == "second\n"


def test_the_interpreter_of_an_image_that_was_replaced_goes_with_it(server, add, image):
    add("py", "old\n", "--trusted", layer=python)
    until_known(server, "first", "py")
    before = server.rest()
    default = census.zygotes(server.pid)
    code = "print(open('/etc/motd').read(), end='')"

    def warm(text):
        assert server.run(code, image="py").stdout == text
        return [i for i in server.request("GET", "/runtimes").json()["images"] if (i["name"], i["start"]) == ("py", "warm")]

    wait_for("its interpreter", lambda: warm("old\n"))
    old = set(census.zygotes(server.pid)) - set(default)
    add("py", "new\n", "--trusted", "--replace", layer=python)
    wait_for("the new one", lambda: server.run(code, image="py").stdout == "new\n")
    wait_for("the new one's interpreter", lambda: warm("new\n"))
    wait_for("the old interpreter's end", lambda: not old & set(census.zygotes(server.pid)))
    image("remove", "py")
    until_known(server, "first")
    wait_for("all of them to end", lambda: set(census.zygotes(server.pid)) <= set(default))
    server.settles_to(before)
