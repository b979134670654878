"""Images that are built of Debian's packages as a manifest says."""
import re

import pytest

from harness.image_command import listing, nothing_is_left, on_a_terminal

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


def test_a_manifests_limits_are_the_images_unless_the_command_line_has_others(build, image):
    done = build(TINY + "limits: {timeout: 20s, memory: 256M, cpu: 1}\n", "--memory", "300", "--pids", "9")
    assert done.returncode == 0, done
    assert listing(image)[0]["limits"] == {"timeout_seconds": 20, "memory_limit_mb": 300, "cpu_limit": 1, "pids_limit": 9}


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
    ("[GREETING=hello]", "[]\nlimits: {memory: 64}\n", ["line 7, column 1", 'limits: memory: "64" is not a size']),
    ("[GREETING=hello]", "[]\nlimits:\n  pids: 0\n", ["line 8, column 3", 'limits: pids: "0" is not']),
    ("[GREETING=hello]", "[]\nlimits:\n  disk: 1G\n", ["line 8, column 3", '"disk" is no key that is known here']),
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
