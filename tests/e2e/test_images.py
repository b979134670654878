"""Images: archives that others made, taken in safely, and programs that run in them."""
import gzip
import json
import lzma
import os
import pty
import re
import select
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time

import pytest

from harness.cli import glovebox
from harness.images import (ARCH, blobs_of, busybox, config, docker_save, entry, folder, hard_link, link, oci,
                            sha256, tar)
from harness.poll import wait_for
from harness.server import PROGRAM

# glibc's and musl's loaders differ in name and in place.
MUSL_LOADER = f"/lib/ld-musl-{os.uname().machine}.so.1"
# Programs start as they do without a word. What is imported starts cold in any case.
FLAGS = ["--cold=false"]


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


def workers(parent):
    """{first word of its command line: pid} of the children of a process."""
    found = {}
    for pid in subprocess.run(["pgrep", "-P", str(parent)], capture_output=True, check=False).stdout.split():
        try:
            with open(f"/proc/{int(pid)}/cmdline", "rb") as f:
                found[os.path.basename(f.read().split(b"\0")[0].decode())] = int(pid)
        except OSError:
            continue
    return found


def is_at_work(pid):
    """Not one that has ended, and that pid 1 has not heard of yet."""
    try:
        with open(f"/proc/{pid}/stat", encoding="ascii") as f:
            return f.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def refused(done, *parts):
    assert done.returncode == 1 and done.stdout == b"", done
    said = done.stderr.decode()
    assert said.startswith("glovebox: image import: ") and said.count("\n") == 1, said
    for part in parts:
        assert part in said, said


def on_a_terminal(store, *args):
    """What `glovebox image` writes to its standard error, if that is a terminal; and its exit status."""
    master, slave = pty.openpty()
    said = []

    def read():
        try:
            while data := os.read(master, 4096):
                said.append(data)
        except OSError:  # EIO: nobody has it open any more
            pass

    with subprocess.Popen([PROGRAM, "image", "--image-dir", store, *args], stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=slave) as process:
        os.close(slave)
        reader = threading.Thread(target=read)
        reader.start()
        process.wait(timeout=120)
        reader.join()
    os.close(master)
    return b"".join(said).decode(), process.returncode


def listing(image):
    done = image("list", "--json")
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def nothing_is_left(store):
    """A refusal leaves neither an image nor a half of one."""
    assert sorted(os.listdir(store)) == []


def xz(data):
    return lzma.compress(data, preset=0)


# Taken in ------------------------------------------------------------------------


@pytest.mark.parametrize("pack", [docker_save, oci])
def test_a_program_runs_in_an_image_of_either_form(take, inside, pack):
    assert take(pack(busybox(entry("etc/motd", "of the image\n")))).returncode == 0
    done = inside("cat /etc/motd; id -u; echo $0; ls /")
    assert done.returncode == 0, done
    assert done.stdout.decode().split() == ["of", "the", "image", "1000", "main.sh", "bin", "dev", "etc", "proc",
                                            "run", "tmp", "var", "workspace"]


@pytest.mark.parametrize("compress", [gzip.compress, xz])
def test_layers_and_archives_may_be_compressed(take, inside, compress):
    layer = busybox()
    for archive in (docker_save(layer, packed=[compress(layer)]), oci(layer, packed=[compress(layer)]),
                    compress(docker_save(layer))):
        assert take(archive, "--replace").returncode == 0
    assert inside("echo ok").stdout == b"ok\n"


def test_an_archive_may_come_through_a_pipe_or_lie_in_a_folder(image, inside, tmp_path):
    assert image("import", "-", "test", input=docker_save(busybox())).returncode == 0
    assert inside("echo ok").stdout == b"ok\n"
    for path, data in blobs_of(busybox()).items():
        (tmp_path / "layout" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "layout" / path).write_bytes(data)
    assert image("import", "--replace", tmp_path / "layout", "test").returncode == 0
    assert inside("echo ok").stdout == b"ok\n"


def saved_by_docker_24(target):
    """Its third layer is the second once more, by a link."""
    layers = [busybox(), tar(entry("which", "second")), tar(entry("which", "second"))]
    names = [f"{i}/layer.tar" for i in range(3)]
    return tar(entry(names[0], layers[0]), entry(names[1], layers[1]), link(names[2], target),
               entry("c.json", config(layers)), entry("manifest.json", json.dumps([{"Config": "c.json", "Layers": names}])))


@pytest.mark.parametrize("target", ["../1/layer.tar", ".././1//layer.tar"])
def test_a_layer_that_comes_twice_may_be_a_link(take, inside, target):
    done = take(saved_by_docker_24(target))
    assert done.returncode == 0, done
    assert inside("cat /which").stdout == b"second"


@pytest.mark.parametrize("target, part", [
    ("/1/layer.tar", "2/layer.tar is no file"), ("../../1/layer.tar", "2/layer.tar is no file"),
    ("../3/layer.tar", "is a link to 3/layer.tar, which"), ("layer.tar", "is a link to 2/layer.tar, which"),
    ("../" + "x" * 256, "2/layer.tar is no file"), ("../0", "is a link to 0, which")])
def test_a_layer_that_is_a_link_elsewhere_is_refused(take, store, target, part):
    refused(take(saved_by_docker_24(target)), "layer 3 of 3", part)
    nothing_is_left(store)


def test_what_umoci_packs_is_taken_in(image, inside, tmp_path):
    layout, bundle = tmp_path / "layout", tmp_path / "bundle"
    for args in (["init", "--layout", layout], ["new", "--image", f"{layout}:latest"],
                 ["unpack", "--image", f"{layout}:latest", bundle]):
        subprocess.run(["umoci", *map(str, args)], check=True, capture_output=True)
    (bundle / "rootfs/bin").mkdir()
    for info, data in [entry("bin/sh", open("/bin/busybox", "rb").read(), 0o755)]:
        (bundle / "rootfs" / info.name).write_bytes(data)
        (bundle / "rootfs" / info.name).chmod(0o755)
    subprocess.run(["umoci", "repack", "--image", f"{layout}:latest", str(bundle)], check=True, capture_output=True)
    done = image("import", layout, "test")
    assert done.returncode == 0, done
    assert inside("echo ok").stdout == b"ok\n"


def test_layers_add_up_with_whiteouts_and_hard_links(take, inside):
    lower = busybox(folder("d"), entry("d/a", "1"), entry("d/b", "old"), hard_link("d/c", "d/b"),
                    entry("gone/x", "1"), entry("o/old", "1"), entry("file", "1"), link("to", "d"))
    upper = tar(entry("d/b", "new"), entry("d/.wh.a", ""), entry(".wh.gone", ""), entry("o/.wh..wh..opq", ""),
                entry("o/new", "2"), entry(".wh..wh.plnk", ""), folder("file"), entry("file/in", "3"),
                entry(".wh.never-there", ""))
    assert take(docker_save(lower, upper)).returncode == 0
    done = inside("cd /; cat d/b d/c; echo; ls d gone o file to 2>&1")
    assert done.stdout.decode().split("\n") == [
        "newold", "ls: gone: No such file or directory", "d:", "b", "c", "", "file:", "in", "", "o:", "new", "",
        "to:", "b", "c", ""], done


def test_names_of_any_bytes_and_long_ones_come_through(take, inside):
    deep = "/".join(["a" * 100] * 6)
    assert take(docker_save(busybox(entry("d/ä€\U0001f600", "1"), entry(f"{deep}/{'b' * 200}", "2")))).returncode == 0
    done = inside(f"cd /; echo d/*; cat {deep}/*")
    assert done.stdout.decode() == "d/ä€\U0001f600\n2", done


def test_the_longest_path_comes_through(take, inside):
    path = "/".join(c * 255 for c in "abcd")
    assert len(path) == 1023
    assert take(docker_save(busybox(entry(path, "here")))).returncode == 0
    assert inside("cd /a*; cd b*; cd c*; cat d*").stdout == b"here"


def test_nothing_that_gives_power_comes_in(take, inside):
    done = take(docker_save(busybox(
        entry("suid", "x", 0o6755), entry("null", type=tarfile.CHRTYPE, devmajor=1, devminor=3),
        entry("sda", type=tarfile.BLKTYPE), entry("fifo", type=tarfile.FIFOTYPE),
        entry("secret", "x", 0o600, uid=7, gid=8), folder("t", 0o1777))))
    assert done.returncode == 0
    said = done.stderr.decode()
    assert "note: 3 device nodes, sockets or pipes were left out" in said
    assert "note: 1 files have lost their set-user-ID or set-group-ID bit" in said
    done = inside("cd /; ls -ln suid secret; ls -ldn t; ls null sda fifo; cat secret; touch t/x; touch /etc/x; echo > /bin/sh")
    rows = done.stdout.decode().split("\n")
    assert [row.split()[0] for row in rows[:3]] == ["-rw-r--r--", "-rwxr-xr-x", "drwxr-xr-x"], rows
    assert {tuple(row.split()[2:4]) for row in rows[:3]} == {("65534", "65534")}
    assert rows[3] == "x"
    errors = done.stderr.decode()
    assert errors.count("No such file") == 3 and errors.count("Read-only file system") == 3, errors


def test_no_capability_or_other_attribute_comes_in(take, store, inside, tmp_path):
    attributes = {"security.capability": "\x01\x01\x01\x02" + "\x01" * 16, "user.x": "y"}
    layer = tar(entry("cap", "x", 0o755, pax_headers={f"SCHILY.xattr.{k}": v for k, v in attributes.items()}),
                entry("none", "x"), form=tarfile.PAX_FORMAT)
    assert all(f"SCHILY.xattr.{k}=".encode() in layer for k in attributes)
    done = take(docker_save(busybox(), layer))
    assert done.returncode == 0, done
    assert b"note: 1 files have lost capabilities or other attributes" in done.stderr, done
    assert inside("cat /cap").stdout == b"x"
    subprocess.run(["unsquashfs", "-quiet", "-no-progress", "-xattrs", "-dest", tmp_path / "root",
                    store / "test/root.squashfs"], check=True, capture_output=True)
    assert os.listxattr(tmp_path / "root/cap") == []


def test_a_program_of_musl_runs_with_its_own_loader(take, inside, tmp_path):
    source = tmp_path / "reader.c"
    source.write_text("#include <stdio.h>\nint main(int n, char **a) { char t[99]; FILE *f = fopen(a[1], \"r\");\n"
                      "return !f || !fgets(t, 99, f) || printf(\"musl read %s\", t) < 0; }\n")
    subprocess.run(["musl-gcc", "-o", tmp_path / "reader", source], check=True)
    assert MUSL_LOADER.encode() in (tmp_path / "reader").read_bytes()
    with open(MUSL_LOADER, "rb") as loader:
        layer = tar(entry(MUSL_LOADER[1:], loader.read(), 0o755),
                    entry("bin/reader", (tmp_path / "reader").read_bytes(), 0o755))
    done = take(docker_save(layer), "--interpreter", "/bin/reader", "--main-file", "main.txt")
    assert done.returncode == 0, done
    assert inside("this\n").stdout == b"musl read this\n"


def test_the_images_environment_is_the_programs(take, inside):
    long = "LONG=" + "x" * 200
    done = take(docker_save(busybox(), env=["PATH=/bin", "A=1 2", "HOME=/nowhere", long]))
    assert b"note: 1 variables of its environment" in done.stderr
    assert inside("echo $A $HOME $LANG [$LONG]").stdout == b"1 2 /nowhere C.UTF-8 []\n"


def test_path_home_and_lang_have_a_place_however_many_there_are(take, inside):
    many = [f"V{i}=1" for i in range(15)]
    done = take(docker_save(busybox(), env=[*many, "PATH=/bin", "PATH=/nowhere"]))
    assert done.returncode == 0 and b"note: 4 variables of its environment" in done.stderr, done
    assert inside("echo $PATH $HOME $LANG $V11 [$V12]").stdout == b"/bin /workspace C.UTF-8 1 []\n"
    assert take(docker_save(busybox(), env=many), "--replace").returncode == 0
    assert inside("echo $PATH").stdout.startswith(b"/usr/local/sbin:")


def test_on_a_terminal_a_line_says_how_far_an_import_is(store, image, tmp_path):
    (tmp_path / "archive.tar").write_bytes(docker_save(busybox(), tar(*(entry(f"noise{i}", os.urandom(24 << 20)) for i in range(2)))))
    said, status = on_a_terminal(store, "import", tmp_path / "archive.tar", "test")
    steps = re.findall(r"\rtest: (reading|packing) layer (\d) of 2, (\d+) MB\033\[K", said)
    assert status == 0 and {s[:2] for s in steps} == {(p, n) for p in ("reading", "packing") for n in "12"}, said
    assert max(int(megabytes) for _, _, megabytes in steps) >= 8, said
    assert "\n" not in said.split("\r\033[K")[0] and said.count("\r\033[K") == 1, said  # one line, which goes
    done = image("import", "--replace", tmp_path / "archive.tar", "test")
    assert b"\r" not in done.stderr, done


# Refused -------------------------------------------------------------------------


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


# The store -----------------------------------------------------------------------


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
])
def test_wrong_usage_is_told(image, args, part):
    done = image(*args)
    assert done.returncode == 2 and part in done.stderr.decode(), done


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


# Built ---------------------------------------------------------------------------

TINY = """\
name: test
variant: extract
packages: [busybox-static]
argv: [/bin/busybox, sh, main.sh]
main-file: main.sh
env: [GREETING=hello]
"""


@pytest.fixture(name="build")
def _build(image, tmp_path):
    def build(manifest, *flags):
        path = tmp_path / "manifest.yaml"
        path.write_text(manifest)
        return image("build", *flags, path)
    return build


def test_an_image_is_built_of_debians_packages_as_a_manifest_says(build, inside, image):
    done = build(TINY)
    assert done.returncode == 0, done
    assert inside("echo $GREETING; busybox id -u").stdout == b"hello\n1000\n"
    assert listing(image)[0]["argv"] == ["/bin/busybox", "sh", "main.sh"]
    assert b"--replace takes its place" in build(TINY).stderr


def test_on_a_terminal_a_line_says_how_far_a_build_is(store, tmp_path):
    (tmp_path / "manifest.yaml").write_text(TINY)
    said, status = on_a_terminal(store, "build", tmp_path / "manifest.yaml")
    seconds = [int(s) for s in re.findall(r"\rtest: fetching and unpacking packages, (\d+) s\033\[K", said)]
    assert status == 0 and seconds == list(range(1, len(seconds) + 1)) != [], said
    assert "\rtest: packing layer 1 of 1, " in said, said


@pytest.mark.parametrize("good, bad, parts", [
    ("packages:", "packges:", ["line 3", '"packges"']),
    ("busybox-static", "busybox-static, -o", ["line 3", '"-o" is no name of a package']),
    ("busybox-static", "../x", ["line 3", '"../x" is no name of a package']),
    ("busybox-static", "", ["line 3"]),
    ("name: test", "name: a/b", ["line 1", '"a/b" is no name for an image']),
    ("name: test\n", "", ["name"]),
    ("[GREETING=hello]", "[GREETING]", ["line 6", '"GREETING" is not NAME=VALUE']),
    ("[GREETING=hello]", "[[a]]", ["line 6"]),
    ("[GREETING=hello]", f"[PATH=/bin, {', '.join(f'V{i}=1' for i in range(13))}]",
     ["line 6", '"V12=1" is one too many', "PATH, HOME and LANG"]),
    ("/bin/busybox", "busybox", ["line 4", '"busybox" is no absolute path']),
    ("main-file: main.sh", "main-file: ../main.sh", ["line 5", "no plain name of a file"]),
    ("main-file: main.sh", "main-file: main.sh\npreload: [os;x]", ["line 6", '"os;x" is no name of a module']),
    ("extract", "--help", ["line 2", '"--help"']),
    ("extract", "extract\nsuite: -x", ["line 3", '"-x"']),
    ("packages: [busybox-static]", "packages: {a: b}", ["line 3"]),
    ("name: test", "name: test\nname: test", ["line 2", '"name" is there twice']),
    ("name: test", "name: 'test", ["line"]),
])
def test_a_manifest_with_a_fault_is_refused_by_its_line_and_column(build, store, good, bad, parts):
    done = build(TINY.replace(good, bad))
    assert done.returncode == 1 and done.stdout == b"", done
    said = done.stderr.decode()
    assert said.startswith("glovebox: image build: ") and "manifest.yaml: " in said, said
    for part in parts:
        assert part in said, said
    assert re.search(r" line \d+, column \d+: ", said) or "name" in parts, said
    assert not store.exists()


def test_a_manifest_that_is_not_there_and_packages_that_are_not_are_told(image, build, store):
    done = image("build", "no-such")
    assert done.returncode == 1 and b"neither a manifest that is shipped (python-data) nor a file" in done.stderr
    done = build(TINY.replace("busybox-static", "no-such-package-anywhere"))
    assert done.returncode == 1 and b"glovebox: image build: test: mmdebstrap failed: " in done.stderr, done
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


# Picked by a request -------------------------------------------------------------


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
