"""What adds up the tests is tested too: it must not call a run good that was not."""
import os
import re
import shutil
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def tree(tmp_path):
    """A tree with copies of the runners, and what their last line says."""
    class Tree:
        def write(self, path, text):
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")

        def run(self, *command):
            # The count of an outer run must not be confused with the one that is tested.
            env = {k: v for k, v in os.environ.items() if not k.startswith(("PYTEST", "MAKE"))}
            done = subprocess.run(command, cwd=tmp_path, check=False, env=env,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return done.returncode, done.stdout

        def counts(self, *command):
            status, said = self.run(*command)
            return status, said.splitlines()[-1]

    for name in ("tools/run-tests", ".ci/run"):
        (tmp_path / name).parent.mkdir()
        shutil.copy(f"{TOP}/{name}", tmp_path / name)
    (tmp_path / "build").mkdir()
    return Tree()


GOOD = "def test_a():\n    pass\n\n\ndef test_b():\n    pass\n"


@pytest.mark.parametrize("text, status, last", [
    (GOOD, 0, "2 passed, 0 failed, 0 skipped"),
    (GOOD + "def test_c():\n    assert False\n", 1, "2 passed, 1 failed, 0 skipped"),
    (GOOD + "import pytest\ndef test_c():\n    pytest.skip('no')\n", 1,
     "2 passed, 0 failed, 1 skipped"),
    (GOOD + "import os\ndef test_c():\n    os._exit(0)\n", 1, "0 passed, 1 failed, 0 skipped"),
    ("", 1, "0 passed, 1 failed, 0 skipped"),
    ("import nothing_of_that_name\n", 1, "0 passed, 1 failed, 0 skipped"),
])
def test_run_is_good_only_if_every_test_ran_and_passed(tree, text, status, last):
    tree.write("tests/e2e/test_x.py", text)
    assert tree.counts("tools/run-tests", "e2e") == (status, last)


def test_area_without_tests_is_a_failure(tree):
    assert tree.counts("tools/run-tests", "e2e") == (1, "0 passed, 1 failed, 0 skipped")


def test_cold_runs_both_areas_once_more_and_tells_them_so(tree):
    assert tree.counts("tools/run-tests", "cold") == (1, "0 passed, 1 failed, 0 skipped")
    told = "import os\ndef test_told():\n    assert os.environ['GLOVEBOX_TEST_START'] == '%s'\n"
    for name in ("e2e/test_x", "escape/test_y"):
        tree.write(f"tests/{name}.py", told % "cold")
    tree.write("tests/e2e/test_pool.py", told % "neither")
    assert tree.counts("tools/run-tests", "cold") == (0, "2 passed, 0 failed, 0 skipped")
    tree.write("tests/e2e/test_x.py", told % "warm")
    assert tree.counts("tools/run-tests", "cold") == (1, "1 passed, 1 failed, 0 skipped")


def test_e2e_and_escape_are_told_to_start_programs_warm(tree):
    told = "import os\ndef test_told():\n    assert os.environ['GLOVEBOX_TEST_START'] == 'warm'\n"
    for area in ("e2e", "escape"):
        tree.write(f"tests/{area}/test_x.py", told)
        assert tree.counts("tools/run-tests", area) == (0, "1 passed, 0 failed, 0 skipped")


def test_what_is_left_out_of_the_cold_area_says_itself_how_programs_start():
    """Each server of these files is given a flag, or the file starts none."""
    with open(f"{TOP}/tools/run-tests", encoding="utf-8") as f:
        names = re.search(r"EITHER_WAY = (\[.*?\])", f.read(), re.S)[1]
    for name in re.findall(r"\w+", names):
        with open(f"{TOP}/tests/e2e/{name}.py", encoding="utf-8") as f:
            text = f.read()
        for args in re.findall(r"\b(?:serve|Server)\(([^)\n]*)", text):
            assert re.search("--cold|WARM|FLAGS|flags", args) or "def " in args, \
                f"{name}: a server with ({args}) starts as GLOVEBOX_TEST_START says"
        assert "def server(" in text or not re.search(r"def test_\w+\([^)]*\bserver\b", text) \
            or "FLAGS = [\"--cold" in text, f"{name}: the usual server"


def test_process_left_behind_is_a_failure_and_is_ended(tree):
    tree.write("tests/e2e/test_x.py", GOOD + "import subprocess\ndef test_c():\n"
               "    subprocess.Popen(['sleep', '987'], stdout=-3, stderr=-3)\n")
    status, said = tree.run("tools/run-tests", "e2e")
    assert status == 1
    assert "left a process behind" in said and "sleep 987" in said
    pid = said.split("left a process behind: ")[1].split()[0]
    assert not os.path.exists(f"/proc/{pid}")


MAKEFILE = """test check-asan check-clang check-vm:
\t@echo '5 passed, 0 failed, 0 skipped'
"""


@pytest.mark.parametrize("makefile, status, last", [
    (MAKEFILE, 0, "20 passed, 0 failed, 0 skipped"),
    (MAKEFILE.replace("0 failed", "1 failed"), 1, "20 passed, 4 failed, 0 skipped"),
    (MAKEFILE.replace("0 skipped", "1 skipped"), 1, "20 passed, 0 failed, 4 skipped"),
    (MAKEFILE + "\t@false\n", 1, "20 passed, 4 failed, 0 skipped"),
    ("test:\n\t@echo no count\ncheck-asan check-clang check-vm:\n\t@echo '1 passed, 0 failed, 0 skipped'\n",
     1, "3 passed, 1 failed, 0 skipped"),
    ("nothing:\n", 1, "0 passed, 4 failed, 0 skipped"),
])
def test_ci_adds_up_its_stages_and_fails_with_any_of_them(tree, makefile, status, last):
    tree.write("Makefile", makefile)
    assert tree.counts(".ci/run") == (status, last)
