"""Archives that others made, taken in as images."""
import gzip
import json
import os
import re
import subprocess
import tarfile

import pytest

from harness.image_command import listing, nothing_is_left, on_a_terminal, refused, xz
from harness.images import blobs_of, busybox, config, docker_save, entry, folder, hard_link, link, oci, tar

# glibc's and musl's loaders differ in name and in place.
MUSL_LOADER = f"/lib/ld-musl-{os.uname().machine}.so.1"


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


def metadata(name, version):
    return entry(f"usr/lib/python3/dist-packages/{name}-{version}.dist-info/METADATA",
                 f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n\nName: not-this\n")


def test_what_is_installed_is_what_the_package_managers_have_written_down(take, image):
    status = ("Package: busybox-static\nStatus: install ok installed\nVersion: 1:1.35.0-4\nDescription: x\n Version: 9\n\n"
              "Package: gone\nStatus: deinstall ok config-files\nVersion: 1\n\n")
    lower = busybox(entry("var/lib/dpkg/status", "Package: old\nStatus: install ok installed\nVersion: 1\n"))
    upper = tar(entry("var/lib/dpkg/status", status), metadata("six", "1.16.0"))
    assert take(docker_save(lower, upper), name="a").returncode == 0
    assert take(docker_save(busybox(entry("lib/apk/db/installed", "C:Q1\nP:busybox\nV:1.36.1-r2\nF:bin\n\nP:musl\nV:1.2\n\n"))),
                name="b").returncode == 0
    assert take(docker_save(busybox()), name="c").returncode == 0
    debian, alpine, none = ([row["version"], row["packages"]] for row in listing(image))
    assert debian == ["1.35.0", [{"name": "busybox-static", "version": "1:1.35.0-4", "from": "dpkg"},
                                 {"name": "six", "version": "1.16.0", "from": "python"}]]
    assert alpine == ["1.36.1", [{"name": "busybox", "version": "1.36.1-r2", "from": "apk"},
                                 {"name": "musl", "version": "1.2", "from": "apk"}]]
    assert none == [None, None]


def test_of_more_packages_than_are_listed_the_number_is_told(take, image):
    done = take(docker_save(busybox(entry("lib/apk/db/installed", "".join(
        f"P:{name}\nV:1\n\n" for name in [f"p{i:04}" for i in range(2050)] + ["two words", "\x1b[31m"])))))
    assert done.returncode == 0 and b"note: 4 of its packages are not listed" in done.stderr, done
    assert len(listing(image)[0]["packages"]) == 2048


def test_on_a_terminal_a_line_says_how_far_an_import_is(store, image, tmp_path):
    (tmp_path / "archive.tar").write_bytes(docker_save(busybox(), tar(*(entry(f"noise{i}", os.urandom(24 << 20)) for i in range(2)))))
    said, status = on_a_terminal(store, "import", tmp_path / "archive.tar", "test")
    steps = re.findall(r"\rtest: (reading|packing) layer (\d) of 2, (\d+) MB\033\[K", said)
    assert status == 0 and {s[:2] for s in steps} == {(p, n) for p in ("reading", "packing") for n in "12"}, said
    assert max(int(megabytes) for _, _, megabytes in steps) >= 8, said
    assert "\n" not in said.split("\r\033[K")[0] and said.count("\r\033[K") == 1, said  # one line, which goes
    done = image("import", "--replace", tmp_path / "archive.tar", "test")
    assert b"\r" not in done.stderr, done
