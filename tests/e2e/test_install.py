"""What `make install` puts where."""
import os
import subprocess
from pathlib import Path

import pytest

BUILD = Path(os.environ.get("GLOVEBOX_BUILD", Path(__file__).resolve().parents[2] / "build"))


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
