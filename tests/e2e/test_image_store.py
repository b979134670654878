"""The store of images: what is in it is listed, verified, replaced, removed, and used by runs."""
import json
import os
import select
import signal
import subprocess
import time

import pytest

from harness.cli import glovebox
from harness.image_command import is_at_work, listing, refused, workers
from harness.images import ARCH, busybox, docker_save, entry, sha256
from harness.poll import wait_for
from harness.server import PROGRAM


def test_images_are_listed_verified_and_removed(take, image, store):
    assert listing(image) == []
    assert take(docker_save(busybox()), name="b").returncode == 0
    assert take(docker_save(busybox()), name="a").returncode == 0
    rows = listing(image)
    assert [row["name"] for row in rows] == ["a", "b"]
    assert rows[0]["form"] == "squashfs" and rows[0]["arch"] == ARCH
    assert rows[0]["digest"] == "sha256:" + sha256((store / "a/root.squashfs").read_bytes())
    assert rows[0]["argv"] == ["/bin/sh", "main.sh"]
    assert [line.split()[0] for line in image("list").stdout.decode().splitlines()] == ["a", "b"]
    assert image("verify").stdout == b"a: as it was made\nb: as it was made\n"
    assert image("remove", "a").returncode == 0
    assert [row["name"] for row in listing(image)] == ["b"]
    for verb in ("remove", "verify"):
        done = image(verb, "a")
        assert done.returncode == 1 and b'no image "a"' in done.stderr, done


def test_of_a_store_without_images_that_is_said_beside_an_empty_list(image, store):
    note = f"glovebox: note: there are no images in {store}; `glovebox image import` or `glovebox image build` makes one\n"
    for make in (lambda: None, store.mkdir):
        make()
        for verb in ("list", "verify"):
            done = image(verb)
            assert (done.returncode, done.stdout, done.stderr.decode()) == (0, b"", note), done
        done = image("list", "--json")
        assert (done.returncode, done.stdout, done.stderr) == (0, b"[]\n", b""), done


def test_the_limits_of_an_image_are_listed(take, image):
    assert take(docker_save(busybox()), "--timeout", "1.5", "--memory", "1G", name="a").returncode == 0
    assert take(docker_save(busybox()), name="b").returncode == 0
    own, none = [row["limits"] for row in listing(image)]
    assert own == {"timeout_seconds": 1.5, "memory_limit_mb": 1024, "cpu_limit": None, "pids_limit": None}
    assert none == dict.fromkeys(own)
    a, b = image("list").stdout.decode().splitlines()
    assert a.endswith("/bin/sh  timeout_seconds=1.5  memory_limit_mb=1024") and b.endswith("/bin/sh"), (a, b)


def test_an_image_is_replaced_only_when_that_is_asked_for(take, inside):
    assert take(docker_save(busybox(entry("which", "1")))).returncode == 0
    refused(take(docker_save(busybox())), 'there is an image "test"', "--replace")
    assert inside("cat /which").stdout == b"1"
    assert take(docker_save(busybox(entry("which", "2"))), "--replace").returncode == 0
    assert inside("cat /which").stdout == b"2"


@pytest.mark.parametrize("where", [0, 5000, -1])
def test_verify_finds_every_changed_byte(take, image, store, inside, where):
    assert take(docker_save(busybox())).returncode == 0
    root = store / "test/root.squashfs"
    data = bytearray(root.read_bytes())
    data[where] ^= 1
    root.write_bytes(data)
    done = image("verify")
    assert done.returncode == 1 and b"test: the SHA-256" in done.stderr, done
    root.write_bytes(data[:-4096])
    assert b"bytes, not" in image("verify", "test").stderr
    done = inside("echo ok")
    assert done.returncode == 125 and b"has another size" in done.stderr, done


def test_verify_finds_a_changed_inventory(take, image, store):
    assert take(docker_save(busybox())).returncode == 0
    inventory = store / "test/inventory"
    assert inventory.read_bytes() == b"\n"
    inventory.write_bytes(b"x")
    assert b"test: the SHA-256 of inventory is another" in image("verify").stderr
    inventory.write_bytes(b"\nx 1 apk\n")
    assert b"inventory has 9 bytes, not 1" in image("verify", "test").stderr
    inventory.unlink()
    assert image("verify").returncode == 1 and "inventory: No such file" in listing(image)[0]["error"]


@pytest.mark.parametrize("file", ["record", "root.squashfs"])
def test_what_others_than_root_could_have_written_is_not_used(take, image, store, inside, file):
    assert take(docker_save(busybox())).returncode == 0
    for change in (lambda p: os.chmod(p, 0o666), lambda p: os.chown(p, 1000, 1000)):
        change(store / "test" / file)
        assert image("verify").returncode == 1
        done = inside("echo ok")
        assert done.returncode == 125 and b"no file of root's alone" in done.stderr, done
        os.chmod(store / "test" / file, 0o644)
    os.chmod(store, 0o777)
    assert b"can be written by others" in image("list").stderr


def test_a_record_of_another_version_is_told_as_that(take, image, store, inside):
    assert take(docker_save(busybox())).returncode == 0
    record = store / "test/record"
    good = record.read_bytes()
    record.write_bytes(b"\0" + good[1:])
    assert b"another version" in image("list").stdout
    assert b"another version" in inside("echo ok").stderr
    record.write_bytes(good[:-1])
    assert b"cut short" in image("list").stdout


def test_what_a_killed_command_left_is_swept_by_the_next(take, store):
    (store / ".new-0123456789abcdef").mkdir(parents=True)
    (store / ".new-0123456789abcdef/root.squashfs").write_bytes(b"half")
    assert take(docker_save(busybox())).returncode == 0
    assert os.listdir(store) == ["test"]


@pytest.mark.parametrize("sig", [signal.SIGINT, signal.SIGKILL])
def test_whoever_works_for_a_command_ends_with_it(take_slowly, store, sig):
    process = take_slowly()
    wait_for("it to write", lambda: list(store.glob(".new-*/root.squashfs")))
    those = wait_for("both", lambda: (w := workers(process.pid)) and set(w) == {"glovebox", "mksquashfs"} and w)
    process.send_signal(sig)
    process.wait(timeout=20)
    ended = time.monotonic()
    wait_for("them to end", lambda: not any(is_at_work(pid) for pid in those.values()))
    assert time.monotonic() - ended < 1.5  # and not when the work is done


def test_a_command_that_waits_for_another_says_so(take, image, store):
    assert take(docker_save(busybox())).returncode == 0
    args = [PROGRAM, "image", "--image-dir", store]
    with subprocess.Popen([*args, "import", "-", "slow"], stdin=subprocess.PIPE, stderr=subprocess.PIPE) as first:
        wait_for("its lock", lambda: subprocess.run(["flock", "-n", store, "true"], check=False).returncode)
        with subprocess.Popen([*args, "remove", "test"], stderr=subprocess.PIPE) as second:
            said = select.select([second.stderr], [], [], 10)[0] and second.stderr.readline()
            waits = second.poll() is None
            first.kill()
            assert second.wait(timeout=20) == 0
    assert waits
    assert said == f"glovebox: note: another `glovebox image` works on {store}; waiting for it\n".encode()
    assert listing(image) == []


def test_a_run_in_an_image_that_there_is_not_says_so(store):
    done = glovebox("run", "--image-dir", store, "--image", "nope", "-", input="1")
    assert done.returncode == 125
    assert b'there is no image "nope"' in done.stderr and b"glovebox image list" in done.stderr


def test_the_answer_of_a_run_in_an_image_names_it_as_the_apis_does(take, inside):
    assert take(docker_save(busybox(entry("marker", "of the image\n")))).returncode == 0
    answer = json.loads(inside("cat /marker", "--json").stdout)
    assert (answer["stdout"], answer["image"], answer["language"]) == ("of the image\n", "test", None), answer
    done = inside("true", "--json", "--return-last")
    assert done.returncode == 125 and b"test tells no last value" in done.stderr, done


@pytest.mark.parametrize("flags", [["--language", "python"], ["--language", "bash"]])
def test_a_run_takes_a_language_or_an_image_and_refuses_both(inside, flags):
    done = inside("cat /marker", *flags)
    assert done.returncode == 125 and done.stdout == b"", done
    assert b"give --language or --image, not both" in done.stderr


def test_after_a_run_no_loop_device_is_held(take, store, inside):
    def loops():
        return subprocess.run(["losetup", "-nO", "BACK-FILE"], capture_output=True, check=True).stdout.decode()
    assert take(docker_save(busybox())).returncode == 0
    assert inside("echo ok").stdout == b"ok\n"
    wait_for("its device to be let go", lambda: f"{store}/test/root.squashfs" not in loops())


@pytest.mark.parametrize("args, part", [
    ([], "build, import, list, verify or remove?"),
    (["paint"], '"paint"'),
    (["import", "x"], "takes 2 names"),
    (["list", "x"], "takes 0 names"),
    (["import", "--max-size", "much", "a", "b"], "no size"),
    (["import", "--interpreter", "/x", "a", "b"], "go together"),
    (["import", "--timeout", "soon", "a", "b"], '--timeout: "soon" is not above 0 and of the form 3, 1.5s'),
    (["import", "--memory", "1", "a", "b"], '--memory: "1" is out of range, which is 4M to 4T'),
    (["build", "--cpu", "2000", "a"], '--cpu: "2000" is out of range, which is 0.01 to 1024'),
    (["build", "--pids", "0", "a"], '--pids: "0" is not above 0'),
])
def test_wrong_usage_is_told(image, args, part):
    done = image(*args)
    assert done.returncode == 2 and part in done.stderr.decode(), done
