"""The short form of `make soak`: two thousand runs in a row, and nothing in the server grows."""
import subprocess
import sys

from harness.life import need_program
from harness.poll import PATIENCE
from harness.server import PROGRAM, ROOT


def test_two_thousand_runs_in_a_row_are_right_and_leave_the_census_flat():
    need_program()
    done = subprocess.run([sys.executable, f"{ROOT}/tools/soak", "--runs", "2000", "--warm-up", "200", "--censuses", "3",
                           "--no-timing", "--program", PROGRAM], stdin=subprocess.DEVNULL, capture_output=True,
                          text=True, check=False, timeout=600 * PATIENCE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "good: 2000 runs" in done.stdout
