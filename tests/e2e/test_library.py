"""libglovebox: the example in examples/ builds against what was built, and runs."""
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from harness.server import PROGRAM, ROOT

BUILD = Path(os.environ.get("GLOVEBOX_BUILD") or Path(PROGRAM).parent)


@pytest.fixture(scope="module")
def snippet(tmp_path_factory):
    """examples/run_snippet.c, compiled with nothing but the public header."""
    lib = next(iter([*BUILD.rglob("libglovebox.so"), *BUILD.rglob("libglovebox.a")]), None)
    assert lib, f"no libglovebox below {BUILD}"
    out = tmp_path_factory.mktemp("library") / "run_snippet"
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-Wall", "-Wextra",
                    "-Werror", f"-I{ROOT / 'include'}", str(ROOT / "examples" / "run_snippet.c"),
                    "-o", str(out), f"-L{lib.parent}", "-lglovebox", f"-Wl,-rpath,{lib.parent}",
                    *(["-ljansson"] if lib.suffix == ".a" else [])],
                   check=True)
    return out


def test_the_example_builds_and_runs_a_snippet(snippet):
    done = subprocess.run([snippet], capture_output=True, timeout=120, check=False,
                          env={"PATH": "/usr/bin:/bin", "GLOVEBOX_PROGRAM": PROGRAM})
    assert done.returncode == 0, done
    assert b"success" in done.stdout, done


def test_the_library_exports_only_its_own_names():
    lib = next(BUILD.rglob("libglovebox.so"))
    names = subprocess.run(["nm", "-D", "--defined-only", str(lib)], capture_output=True,
                           text=True, check=True).stdout.split("\n")
    symbols = [line.split()[-1].split("@")[0] for line in names if line.strip()]
    foreign = [s for s in symbols if not s.startswith(("gbx_", "GLOVEBOX_"))]
    assert symbols and not foreign, foreign


def test_the_header_is_c_and_cplusplus():
    header = '#include "glovebox.h"\nint main(void) { return 0; }\n'
    for language, std in (("c", "c11"), ("c++", "c++17")):
        subprocess.run(["cc", "-x", language, f"-std={std}", "-Wall", "-Wextra", "-Werror",
                        "-fsyntax-only", f"-I{ROOT / 'include'}", "-"], input=header.encode(),
                       check=True)
