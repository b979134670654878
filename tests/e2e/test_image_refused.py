"""Archives, names and places of which no image is made, and what is left of the trial: nothing."""
import gzip
import json
import os
import re
import signal
import subprocess
import sys
import tarfile
import tempfile

import pytest

from harness.cli import glovebox
from harness.image_command import nothing_is_left, refused, workers, xz
from harness.images import (ARCH, blobs_of, busybox, config, docker_save, entry, folder, hard_link,
                            link, oci, sha256, tar)
from harness.poll import wait_for
from harness.server import PROGRAM


@pytest.mark.parametrize("layer, parts", [
    ([entry("../x", "1")], ['"../x"', '".."']),
    ([entry("a/../../x", "1")], ['".."']),
    ([link("out", "/etc"), entry("out/passwd", "x")], ['"out/passwd"', "a symbolic link"]),
    ([link("out", "../../.."), folder("out/x")], ['"out/x"', "a symbolic link"]),
    ([link("a", "b"), hard_link("c", "a/x")], ["no file of the image"]),
    ([hard_link("shadow", "../../etc/shadow")], ['".."']),
    ([hard_link("shadow", "/etc/shadow")], ["no file of the image"]),
    ([entry("d/.wh...", "")], ["whiteout"]),
    ([entry("x" * 300, "1")], ["too long"]),
    ([folder("/".join("d" * 65))], ["too long"]),
    ([entry("f", "1"), entry("f/x", "1")], ["a file"]),
])
def test_a_name_that_leads_elsewhere_is_refused(take, store, layer, parts):
    refused(take(docker_save(tar(*layer))), "layer 1 of 1: ", *parts)
    nothing_is_left(store)


def test_a_link_of_one_layer_carries_nothing_of_the_next_one_out(take, store):
    refused(take(docker_save(busybox(link("d", "/tmp")), tar(entry("d/x", "1")))), "layer 2 of 2", '"d/x"')
    nothing_is_left(store)


def zeros_in_a_file(size):
    head = tarfile.TarInfo("zeros")
    head.size = size
    return head.tobuf(tarfile.GNU_FORMAT) + bytes(size) + bytes(1024)


def zeros_behind_the_end(size):
    return tar(entry("a", "1")) + bytes(size)


@pytest.mark.parametrize("compress", [gzip.compress, xz])
@pytest.mark.parametrize("layer", [zeros_in_a_file, zeros_behind_the_end])
def test_a_decompression_bomb_ends_at_the_bound(take, store, layer, compress):
    archive = docker_save(b"", packed=[compress(layer(100 << 20))])
    assert len(archive) < 1 << 20
    refused(take(archive, "--max-size", "64M"), "larger than 64 MiB", "--max-size")
    nothing_is_left(store)


def test_holes_of_a_file_count_as_what_they_are(take, store, tmp_path):
    with open(tmp_path / "zeros", "wb") as f:
        f.truncate(1 << 30)
    layer = subprocess.run(["tar", "-C", tmp_path, "-cSf", "-", "zeros"], capture_output=True, check=True).stdout
    assert len(layer) < 20480
    refused(take(docker_save(layer), "--max-size", "64M"), "larger than 64 MiB", "--max-size")
    nothing_is_left(store)


def test_a_bomb_beside_the_layers_ends_at_the_bound(take, store):
    archive = gzip.compress(tar(entry("a", bytes(200 << 20)), entry("manifest.json", "[]")))
    assert len(archive) < 1 << 20
    refused(take(archive, "--max-size", "64M"), "larger than 64 MiB", "--max-size")
    nothing_is_left(store)


def test_a_folder_ends_at_the_bound_and_not_at_the_end_of_the_disk(store, tmp_path):
    for path, data in blobs_of(busybox()).items():
        (tmp_path / "layout" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "layout" / path).write_bytes(data)
    with open(tmp_path / "layout/blobs/hole", "wb") as f:
        f.truncate(1 << 40)
    store.mkdir()
    script = 'mount -t tmpfs -o size=64m,mode=755 none "$1"; exec "$0" image --image-dir "$1" import --max-size 16M "$2" x'
    refused(subprocess.run(["unshare", "-m", "sh", "-c", script, PROGRAM, store, tmp_path / "layout"],
                           capture_output=True, timeout=60, check=False), "larger than 16 MiB", "--max-size")


def test_directories_that_names_imply_count_as_entries(take, store):
    layer = tar(*(folder(f"{i:x}/" + "/".join("a" * 61)) for i in range(17000)))
    refused(take(docker_save(layer, packed=[gzip.compress(layer, 1)])), "layer 1 of 1", "more than 1000000 files and directories")
    nothing_is_left(store)


def test_who_packs_has_a_bound_of_memory(take_slowly):
    process = take_slowly()
    packer = wait_for("mksquashfs", lambda: workers(process.pid).get("mksquashfs"))
    with open(f"/proc/{packer}/limits", encoding="ascii") as f:
        assert re.search(rf"Max data size +{4 << 30} +{4 << 30} ", f.read())


def test_an_entry_that_claims_more_than_there_is_is_refused(take, store):
    head = tarfile.TarInfo("zeros")
    head.size = 1 << 40
    layer = head.tobuf(tarfile.GNU_FORMAT) + bytes(2048)
    refused(take(docker_save(layer)), "layer 1 of 1")
    nothing_is_left(store)


def test_an_image_for_another_machine_is_refused(take, store):
    other = "arm64" if ARCH == "amd64" else "amd64"
    expected = f"the image is for {other}, this host is {ARCH}"
    refused(take(docker_save(busybox(), arch=other)), expected)
    refused(take(oci(busybox(), arch=other)), expected)
    refused(take(docker_save(busybox()).replace(b'"os": "linux"', b'"os": "plan9"')), "is for plan9")
    # And one that only says that it is ours.
    foreign = bytearray(open("/bin/busybox", "rb").read(4096))
    foreign[18:20] = b"\xf3\x00"  # RISC-V
    refused(take(docker_save(tar(entry("bin/sh", bytes(foreign), 0o755)))), "interpreter is for another architecture")
    nothing_is_left(store)


def test_a_damaged_archive_is_refused(take, store):
    layer = busybox()
    refused(take(docker_save(layer).replace(b"BusyBox v", b"BusyBex v")), "layer 1 of 1", "damaged")
    files = blobs_of(layer)
    where = f"blobs/sha256/{sha256(config([layer]))}"
    files[where] = files[where].replace(b"amd64", b"amd65").replace(b"arm64", b"arm65")
    refused(take(tar(*(entry(n, d) for n, d in files.items()))), "is damaged")
    refused(take(gzip.compress(docker_save(layer))[:-1000]), "archive.tar: ")
    # A head whose sum is wrong, inside and outside of the layer.
    damaged = bytearray(tar(entry("a", "1"), entry("b", "2")))
    damaged[1024] ^= 1
    refused(take(docker_save(bytes(damaged))), "layer 1 of 1: the layer: Damaged tar")
    damaged = bytearray(docker_save(layer))
    damaged[damaged.index(b"config.json")] ^= 1
    refused(take(bytes(damaged)), "archive.tar: the archive: Damaged tar")
    nothing_is_left(store)


@pytest.mark.parametrize("archive, parts", [
    (b"", ["archive.tar: "]),
    (b"no archive at all" * 100, ["archive.tar: "]),
    (tar(entry("x", "1")), ["neither manifest.json nor index.json"]),
    (tar(entry("manifest.json", '[{"Config": "c",\n "Layers: []}]')), ["manifest.json line 2, column "]),
    (tar(entry("manifest.json", "{}")), ["it holds 0 images"]),
    (tar(entry("manifest.json", "[{}, {}]")), ["it holds 2 images", "one of them at a time"]),
    (tar(entry("manifest.json", '[{"Layers": []}]')), ["0 layers"]),
    (tar(entry("manifest.json", '[{"Layers": [7], "Config": "c"}]')), ["a member that manifest.json names"]),
    (tar(entry("manifest.json", '[{"Layers": ["l"], "Config": "c"}]')), ["no member c"]),
    (tar(entry("manifest.json", '[{"Layers": ["l"], "Config": "c"}]'), entry("c", "{}")), ["architecture"]),
    (tar(entry("manifest.json", '[{"Layers": ["l"], "Config": "c"}]'),
         entry("c", json.dumps({"architecture": ARCH, "os": "linux"}))), ["rootfs.diff_ids"]),
    (tar(entry("index.json", '{"manifests": [{"digest": "sha256:../../x"}]}')), ["a digest"]),
    (tar(entry("index.json", "{}")), ["0 layers"]),
    (tar(link("index.json", "/etc/passwd")), ["index.json is no file"]),
    (docker_save(tar(folder("bin"))), ["neither python3 nor sh", "--interpreter"]),
])
def test_an_archive_that_is_no_image_is_refused(take, store, archive, parts):
    refused(take(archive), *parts)
    nothing_is_left(store)


def test_who_has_failed_is_told(take_slowly, store):
    """Not what mksquashfs says of a tar that is cut short."""
    process = take_slowly()
    reader = wait_for("the imager", lambda: workers(process.pid).get("glovebox"))
    wait_for("it to write", lambda: list(store.glob(".new-*/root.squashfs")))
    os.kill(reader, signal.SIGKILL)
    said = process.communicate(timeout=60)[1]
    assert b"has ended without an answer" in said and b"mksquashfs" not in said, said
    nothing_is_left(store)


@pytest.mark.parametrize("control", ["\x1b]0;x\x07", "\x1b[31m", "\n", "\u009b31m"])
def test_no_image_writes_to_roots_terminal(take, store, control):
    place = "x" + control
    refused(take(docker_save(busybox(folder(place), link(f"{place}/sh", "/bin/busybox")), env=[f"PATH=/{place}"])),
            "a control character", "--interpreter")
    nothing_is_left(store)


@pytest.mark.parametrize("name", ["a/b", "..", ".x", "-x", "x" * 32, "a b", ""])
def test_a_name_that_no_image_can_have_is_refused(image, tmp_path, name):
    (tmp_path / "a.tar").write_bytes(docker_save(busybox()))
    done = image("import", "--", tmp_path / "a.tar", name)
    assert done.returncode == 1 and b"is no name for an image" in done.stderr, done


# Of the uid as which mksquashfs runs: opens the squashfs for writing, by its name or through a process
# that has it, says so and holds it until its stdin ends.
WRITER = """
import glob, os, sys, time
store, how = sys.argv[1:]
os.setgroups([]); os.setgid(2000003); os.setuid(2000003)
end = time.monotonic() + 20
while time.monotonic() < end:
    for path in glob.glob(store + "/.new-*/root.squashfs" if how == "name" else "/proc/[0-9]*/fd/1"):
        try:
            if how == "name" or os.readlink(path).startswith(store + "/.new-"):
                held = os.open(path, os.O_WRONLY)
                print(path, flush=True)
                sys.stdin.read()
                sys.exit()
        except OSError:
            continue
"""


@pytest.fixture(name="writer")
def _writer():
    """writer(HOW, STORE): such a process, which is killed at the end."""
    started = []

    def start(how, store):
        started.append(subprocess.Popen([sys.executable, "-c", WRITER, store, how], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE))
        return started[0]
    yield start
    for process in started:
        process.kill()
        process.communicate()


def test_nobody_finds_the_file_of_an_image_while_it_is_made(writer):
    archive = docker_save(busybox(entry("noise", os.urandom(20 << 20))))
    with tempfile.TemporaryDirectory() as store:  # pytest's own are closed to others
        os.chmod(store, 0o755)
        watch = writer("name", store)
        assert glovebox("image", "--image-dir", store, "import", "-", "test", input=archive).returncode == 0
        watch.kill()
        assert watch.communicate()[0] == b""
        assert os.stat(f"{store}/test").st_mode & 0o777 == 0o755


def test_an_image_that_somebody_could_still_write_to_is_refused(take, writer, store):
    watch = writer("descriptor", store)
    done = take(docker_save(busybox(entry("noise", os.urandom(20 << 20)))))
    watch.kill()
    assert watch.communicate()[0] != b""
    refused(done, "open for writing", "uid 2000003")
    nothing_is_left(store)


@pytest.mark.parametrize("file, line", [
    ("/etc/passwd", "x:x:2000003:5::/:/bin/sh"), ("/etc/passwd", "x:x:5:2000002::/:/bin/sh"),
    ("/etc/subuid", "x:1935008:65536"), ("/etc/subuid", "x:2000003:1")])
def test_uids_that_are_somebodys_are_not_used(store, tmp_path, file, line):
    (tmp_path / "archive.tar").write_bytes(docker_save(busybox()))
    (tmp_path / "ids").write_text(f"root:x:0:0::/:/bin/sh\n# x\n{line}\n")
    script = 'mount --bind "$2" "$1"; exec "$0" image --image-dir "$3" import "$4" test'
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, PROGRAM, file, tmp_path / "ids", store,
                           tmp_path / "archive.tar"], capture_output=True, check=False)
    refused(done, file, "2000002 and 2000003")
    nothing_is_left(store)


def test_an_interpreter_that_the_image_does_not_have_is_told(take, store):
    for path in ("/bin/lacking", "/bin", "/etc/motd"):
        refused(take(docker_save(busybox(entry("etc/motd", "x"))), "--interpreter", path, "--main-file", "x"),
                f"the image has no program {path}")
    nothing_is_left(store)


def test_a_full_disk_is_told_and_leaves_the_store_as_it_was(store, tmp_path):
    (tmp_path / "archive.tar").write_bytes(docker_save(busybox(entry("noise", os.urandom(2 << 20)))))
    store.mkdir()
    script = ('mount -t tmpfs -o size=1m,mode=755 none "$1" && "$0" image --image-dir "$1" import "$2" test; '
              'echo $? $(ls -A "$1")')
    done = subprocess.run(["unshare", "-m", "sh", "-c", script, PROGRAM, store, tmp_path / "archive.tar"],
                          capture_output=True, check=True)
    assert done.stdout == b"1\n", done
    assert b"mksquashfs failed: " in done.stderr and b"No space left" in done.stderr, done
