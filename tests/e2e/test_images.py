"""Programs that run in an image: the server's own, or the one that a request picks."""
import json
import os
import signal
import subprocess
import sys
import time

import pytest

from harness.images import ARCH, busybox, docker_save, entry, link
from harness.poll import wait_for

# Programs start as they do without a word. What is imported starts cold in any case.
FLAGS = ["--cold=false"]


@pytest.fixture(name="images")
def _images(take, store, serve):
    """A server with the images `one` and `two` in its store."""
    for name in ("one", "two"):
        assert take(docker_save(busybox(entry("etc/motd", f"of {name}\n"))), name=name).returncode == 0
    return serve(*FLAGS, "--image-dir", store)


def detail(server, code, **fields):
    answer = server.post({"code": code, **fields})
    assert answer.status == 422, answer
    [item] = answer.json()["detail"]
    return item


def test_a_request_picks_an_image_and_the_next_one_another(images):
    for name in ("one", "two", "one"):
        reply = images.run("cat /etc/motd; id -u; echo $0; touch /tmp/left /workspace/left; ls -a /tmp", image=name)
        assert (reply.status, reply.stdout) == ("success", f"of {name}\n1000\nmain.sh\n.\n..\nleft\n"), reply
        assert (reply["image"], reply["language"]) == (name, None)
    reply = images.run("print(6 * 7)")
    assert (reply.stdout, reply["image"], reply["language"]) == ("42\n", None, "python")


def test_all_of_a_request_is_the_same_in_an_image(images):
    reply = images.run("cat; echo $1 $A; cat d/f; exit 7", image="one", stdin="in\n", args=["arg"], env={"A": "b"},
                       files=[{"path": "d/f", "content": "file\n"}])
    assert (reply.stdout, reply.exit_code) == ("in\narg b\nfile\n", 7), reply
    assert images.run("while :; do :; done", image="one", timeout_seconds=0.5).status == "timeout"
    reply = images.run("x=x; while :; do x=$x$x; done", image="one", memory_limit_mb=16, timeout_seconds=20)
    assert reply.status == "memory_exceeded", reply


def test_files_come_back_from_an_image_as_from_elsewhere(images):
    reply = images.run("echo hello", image="one", artifacts="inline")
    assert (reply["files"], reply["usage"]["collect_ms"]) == ([], 0), reply
    reply = images.run("echo hello >out.txt; echo x >main.py; ln -s /etc/motd link", image="two", artifacts="inline",
                       files=[{"path": "d/f", "content": "file\n"}])
    assert [(f["path"], f["content"]) for f in reply["files"]] == [("main.py", "x\n"), ("out.txt", "hello\n")], reply
    assert [(s["path"], s["reason"]) for s in reply["skipped"]] == [("link", "symlink")], reply


def test_the_cage_around_an_image_is_the_same(images):
    reply = images.run("while read name rest; do case $name in Cap*|NoNewPrivs:|Seccomp:|Uid:) echo $name $rest;; esac; "
                       "done < /proc/self/status; while read a b c d mount flags rest; do case $mount in /|/dev|/proc) "
                       "echo $mount $flags;; esac; done < /proc/self/mountinfo", image="one")
    assert reply.status == "success", reply
    lines = reply.stdout.splitlines()
    assert {line for line in lines if line.startswith("Cap")} == {
        f"Cap{kind}: 0000000000000000" for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")}
    assert "NoNewPrivs: 1" in lines and "Seccomp: 2" in lines and "Uid: 1000 1000 1000 1000" in lines
    assert "/ ro,nosuid,nodev,relatime" in lines and "/dev ro,nosuid,noexec,relatime" in lines


def limits_of(reply):
    return [reply["limits"][name] for name in ("timeout_seconds", "memory_limit_mb", "cpu_limit", "pids_limit")]


@pytest.fixture(name="frugal")
def _frugal(take, store):
    """An image whose programs have half a second, and 100 MB, unless somebody says otherwise."""
    assert take(docker_save(busybox()), "--timeout", "500ms", "--memory", "100", "--pids", "600").returncode == 0
    return ["--image-dir", store, "--cpu", "0.25", "--max-memory", "80M"]


def test_an_images_own_limits_hold_where_a_request_names_none_and_never_above_the_servers(frugal, serve):
    server = serve(*FLAGS, *frugal)
    [image] = server.request("GET", "/runtimes").json()["images"]
    assert limits_of(image) == [0.5, 80, 0.25, 512]
    reply = server.execute("while :; do :; done", image="test")
    assert (reply["status"], limits_of(reply)) == ("timeout", [0.5, 80, 0.25, 512]), reply
    reply = server.execute("busybox sleep 0.8", image="test", timeout_seconds=20, memory_limit_mb=16, pids_limit=8)
    assert (reply["status"], limits_of(reply)) == ("success", [20, 16, 0.25, 8]), reply
    assert limits_of(server.execute("true", language="bash")) == [3, 64, 0.25, 32]


def test_a_server_of_its_own_image_has_that_images_limits(frugal, serve):
    server = serve(*FLAGS, *frugal, "--image", "test")
    for fields in ({}, {"image": "test"}):
        reply = server.execute("while :; do :; done", **fields)
        assert (reply["status"], limits_of(reply)) == ("timeout", [0.5, 80, 0.25, 512]), reply


def test_a_run_of_the_command_line_has_the_images_limits(frugal, inside):
    assert frugal
    answer = json.loads(inside("true", "--json").stdout)
    assert limits_of(answer)[1:] == [100, 0.5, 512], answer
    answer = json.loads(inside("true", "--json", "--memory", "32").stdout)
    assert limits_of(answer)[1:] == [32, 0.5, 512], answer


def test_an_image_that_is_replaced_by_itself_with_other_limits_has_those(images, take):
    archive = docker_save(busybox(entry("etc/motd", "of two\n")))
    assert limits_of(images.execute("true", image="two"))[0] == 3
    assert take(archive, "--replace", "--timeout", "9", name="two").returncode == 0
    wait_for("it to be known", lambda: limits_of(images.execute("true", image="two"))[0] == 9)


def next_front(server):
    before = server.log().count("ev=front_restarted")
    os.kill(server.front, signal.SIGKILL)
    wait_for("the next front", lambda: server.log().count("ev=front_restarted") > before and server.is_ready())


def alpine(*packages):
    return docker_save(busybox(entry("etc/motd", "of two\n"), entry("lib/apk/db/installed", "".join(
        f"P:{name}\nV:{version}\n\n" for name, version in packages))))


def test_what_is_installed_in_an_image_is_listed_and_is_the_next_ones_when_it_is_replaced(images, take, store):
    def two(server=images):
        return [(i["version"], i["packages"]) for i in server.request("GET", "/runtimes").json()["images"] if i["name"] == "two"]
    assert two() == [(None, None)]
    assert take(alpine(("busybox", "1.36-r2")), "--replace", name="two").returncode == 0
    wait_for("it to be listed", lambda: two() == [("1.36", [{"name": "busybox", "version": "1.36-r2", "from": "apk"}])])
    assert take(alpine(("musl", "1.2"), ("busybox", "1.37")), "--replace", name="two").returncode == 0
    wait_for("the next", lambda: two()[0][0] == "1.37" and [p["name"] for p in two()[0][1]] == ["busybox", "musl"])
    next_front(images)
    wait_for("the next front to hear of it", lambda: two()[0][0] == "1.37")
    os.chmod(store / "two/inventory", 0o666)
    next_front(images)
    wait_for("it to be looked at", lambda: ' ev=inventory name="two" why=' in images.log())
    assert two() == [(None, None)]  # anybody could have written it
    assert images.run("cat /etc/motd", image="two").stdout == "of two\n"


def test_an_image_that_there_is_not_is_a_422_that_lists_those_that_there_are(images):
    item = detail(images, "true", image="three")
    assert item["loc"] == ["body", "image"] and item["input"] == "three"
    assert item["msg"] == "Value error, this server knows the images one, two"
    assert detail(images, "true", image="One")["msg"].endswith('one, two; did you mean "one"?')
    assert detail(images, "true", image=7)["loc"] == ["body", "image"]
    assert detail(images, "true", image="one", language="python")["msg"].endswith("not both")
    assert detail(images, "true", language="one")["loc"] == ["body", "language"]


def test_a_server_without_images_says_so(serve, store):
    assert detail(serve(*FLAGS, "--image-dir", store), "1", image="x")["msg"] == "Value error, this server knows no images: make " \
        "or import one with `glovebox image`"


def test_the_same_archive_once_more_makes_the_same_image(images, take, store, inside):
    archive = docker_save(busybox(entry("etc/motd", "of two\n"), entry("old", "", mtime=1), entry("new", "", mtime=1_760_000_000)))
    packed = []
    for wait_s in (0, 1.1):
        time.sleep(wait_s)  # a file system has dates in seconds
        for name in ("two", "test"):
            assert take(archive, "--replace", name=name).returncode == 0
            packed.append((store / name / "root.squashfs").read_bytes())
    assert packed == packed[:1] * 4
    dates = "stat -c %Y /etc/motd /old /new"
    assert inside("/bin/busybox " + dates).stdout == b"1700000000\n1\n1760000000\n"


def test_an_image_that_was_taken_in_again_since_the_start_is_the_one_that_the_server_knows(images, take):
    time.sleep(1.1)
    archive = docker_save(busybox(entry("etc/motd", "of two\n")))
    assert take(archive, "--replace", name="two").returncode == 0
    assert images.run("cat /etc/motd", image="two").stdout == "of two\n"


def test_what_is_broken_in_the_store_costs_the_server_nothing_else(images, store, serve):
    (store / "one/record").write_bytes(b"no record")
    server = serve(*FLAGS, "--image-dir", store)
    assert detail(server, "true", image="one")["msg"] == "Value error, this server knows the images two"
    assert server.run("cat /etc/motd", image="two").stdout == "of two\n"


def test_an_image_that_cannot_be_mounted_costs_the_others_nothing(take, store, serve):
    for name in ("one", "two"):
        assert take(docker_save(busybox(entry("etc/motd", f"of {name}\n"))), name=name).returncode == 0
    with open(store / "one/root.squashfs", "r+b") as f:
        f.write(b"\0")
    server = serve(*FLAGS, "--image-dir", store)
    assert "squashfs" in server.post({"code": "true", "image": "one"}).json()["detail"]
    connection = server.connection()
    for _ in range(3000):  # a view takes some 24 inodes of 65,536
        connection.request("POST", "/execute", json.dumps({"code": "true", "image": "one"}),
                           {"Content-Type": "application/json"})
        answer = connection.getresponse()
        assert answer.status >= 500 and b"No space" not in answer.read()
    assert server.run("cat /etc/motd", image="two").stdout == "of two\n"
    assert server.run("echo 1", language="bash").stdout == "1\n"


def test_a_server_runs_its_programs_in_the_image_that_it_is_given(take, store, serve):
    assert take(docker_save(busybox(entry("etc/motd", "of the image\n")))).returncode == 0
    server = serve(*FLAGS, "--image-dir", store, "--image", "test")
    reply = server.run("cat /etc/motd; id -u")
    assert (reply.status, reply.stdout) == ("success", "of the image\n1000\n"), reply
    reply = server.run("echo hello", artifacts="inline")
    assert (reply["files"], reply["usage"]["collect_ms"]) == ([], 0), reply
    reply = server.run("echo hello >out.txt", artifacts="inline")
    assert [(f["path"], f["content"]) for f in reply["files"]] == [("out.txt", "hello\n")], reply


# As a zygote it would be root, in the host's process namespace, with the right to mount.
REACHES_OUT = r"""
#include <fcntl.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

int main(void)
{
	static const char *const proc[] = { "/workspace/p", "/proc" };
	char path[999];

	mkdir(proc[0], 0755);
	mount("proc", proc[0], "proc", 0, 0);
	for (int i = 0; i < 2; i++) {
		snprintf(path, sizeof(path), "%s/%d/root" MARK, proc[i], (int)getppid());
		open(path, O_WRONLY | O_CREAT, 0644);
	}
	printf("uid %d\n", (int)getuid());
	return 0;
}
"""


def test_no_program_of_an_imported_image_is_started_outside_of_a_cell(take, store, serve, tmp_path):
    """It is what the host's warm interpreter would be, by its name and its loader."""
    mark, source, program = tmp_path / "out", tmp_path / "out.c", tmp_path / "python"
    source.write_text(REACHES_OUT)
    subprocess.run(["gcc", "-static", f'-DMARK="{mark}"', "-o", program, source], check=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    loader = {"amd64": "lib64/ld-linux-x86-64.so.2", "arm64": "lib/ld-linux-aarch64.so.1"}[ARCH]
    assert take(docker_save(busybox(entry(f"usr/bin/{version}", program.read_bytes(), 0o755),
                                    link("usr/bin/python3", version), entry(loader, "x", 0o755)))).returncode == 0
    server = serve(*FLAGS, "--image-dir", store, "--image", "test")
    assert server.run("").stdout == "uid 1000\n"
    assert server.run("", image="test").stdout == "uid 1000\n"
    assert not mark.exists()
    assert server.health().json()["warm"] == "off"
