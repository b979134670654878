"""The short form of the second half of `make soak`: good and hostile programs, and processes killed at random."""
import subprocess
import sys

import pytest

from harness.life import need_program
from harness.poll import PATIENCE
from harness.server import PROGRAM, ROOT


@pytest.mark.parametrize("seconds, flags", [(100, "--cold=false"), (20, "--cold")])
def test_whatever_is_killed_each_request_gets_its_one_answer_or_a_cut_connection(seconds, flags):
    need_program()
    done = subprocess.run([sys.executable, f"{ROOT}/tools/storm", "--seconds", str(seconds), "--parts", "2", f"--serve={flags}",
                           "--program", PROGRAM], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                          timeout=600 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "nothing lost, nothing grew" in done.stdout
