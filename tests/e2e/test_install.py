"""What `make install` puts where."""
import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GLOVEBOX_BUILD", TOP / "build"))


@pytest.fixture(scope="module")
def tree(tmp_path_factory):
    to = tmp_path_factory.mktemp("install")
    subprocess.run(["meson", "install", "-C", str(BUILD), "--no-rebuild", "--quiet",
                    "--destdir", str(to)], check=True, stdin=subprocess.DEVNULL)
    return {str(p.relative_to(to)): p for p in to.rglob("*") if not p.is_dir()}


def only(tree, end):
    (name,) = [name for name in tree if name.endswith(end)]
    return name, tree[name]


def test_the_unit_starts_the_program_that_was_installed_with_it(tree):
    program, _path = only(tree, "bin/glovebox")
    name, unit = only(tree, ".service")
    assert name.endswith("lib/systemd/system/glovebox.service")
    starts = [line for line in unit.read_text().splitlines() if line.startswith("ExecStart")]
    assert len(starts) == 2 and all(line.split("=", 1)[1].split()[0] == f"/{program}" for line in starts)


def test_the_unit_keeps_the_locks_of_other_instances(tree):
    text = only(tree, ".service")[1].read_text().splitlines()
    assert "RuntimeDirectoryPreserve=yes" in text and "RuntimeDirectoryMode=0711" in text


def test_the_sample_of_the_settings_is_there_and_nothing_that_is_never_read(tree):
    assert only(tree, ".yaml")[0].endswith("share/doc/glovebox/glovebox.yaml")


# In a container -------------------------------------------------------------------

def last_stage(dockerfile):
    """{instruction: its arguments} of the stage that an image is made of; lines that go on are one."""
    text = re.sub(r"\\\n\s*", "", re.sub(r"^#.*\n", "", dockerfile.read_text(), flags=re.M))
    found = {}
    for line in text[text.rindex("FROM "):].splitlines():
        word, rest = line.split(" ", 1)
        found.setdefault(word, []).append(rest)
    return found


def needed(path):
    """Debian's packages with the shared libraries that a program names."""
    names = re.findall(r"\(NEEDED\).*\[(.*)\]", subprocess.run(["readelf", "-d", path], capture_output=True, check=True,
                                                              text=True).stdout)
    found = subprocess.run(["dpkg-query", "-S", *(f"*/{name}" for name in names)], capture_output=True, check=True,
                           text=True).stdout
    return set(re.findall(r"^([^:,\s]+):[^:]*: ", found, re.M))


def test_the_servers_container_has_the_libraries_and_tools_that_it_needs(tree):
    stage = last_stage(TOP / "deploy" / "Dockerfile")
    (run,) = stage["RUN"]
    packages = set(run.split("--no-install-recommends ")[1].split(" && ")[0].split())
    name, program = only(tree, "bin/glovebox")
    libraries = needed(program)
    for carried in ("gate", "imager"):  # programs of their own, within it
        libraries |= needed(BUILD / "src" / "edge" / carried)
    assert {"libjansson4", "libarchive13", "libslirp0"} <= libraries, libraries
    assert libraries - packages <= {"libc6", "libgcc-s1"}, libraries  # those of any Debian
    assert {"python3", "squashfs-tools", "mmdebstrap"} <= packages  # what is not linked
    (entry,) = stage["ENTRYPOINT"]
    argv = shlex.split(entry.strip("[]").replace(",", " "))
    assert argv[0] == f"/{name}" and argv[1] == "serve", argv
    done = subprocess.run([program, *argv[1:], "--config-check", "--config", ""], capture_output=True, check=False)
    assert done.returncode == 0, done
    # What is copied from the stage before is what `meson install` has put into its DESTDIR.
    assert stage["COPY"] == ["--from=build /out/ /"] and "DESTDIR=/out meson install" in \
        (TOP / "deploy" / "Dockerfile").read_text()


def test_the_runners_container_is_an_interpreter_and_nothing_that_is_started(tree):
    del tree
    stage = last_stage(TOP / "deploy" / "Dockerfile.runner")
    assert stage["FROM"][0].startswith("alpine:") and set(stage) == {"FROM", "RUN"}, stage
    assert "apk add --no-cache python3" in stage["RUN"][0]
