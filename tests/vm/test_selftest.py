"""What an operator would run on such a host."""
import json
import subprocess

from harness.server import PROGRAM
from harness.poll import PATIENCE


def test_everything_is_contained_here():
    done = subprocess.run([PROGRAM, "selftest", "--json", "--no-record"], capture_output=True,
                          timeout=60 * PATIENCE, check=False)
    assert done.returncode in (0, 1), done.stderr
    told = json.loads(done.stdout)
    assert [r for r in told["results"] if r["outcome"] not in ("ok", "not possible here")] == []
    assert told["probes"] >= 100
    # Cold and warm, and what both have in common: the layers of pure v2 are all there.
    assert [r["got"] for r in told["results"] if r["probe"] == "seen.start"] == ["as meant"]
    print(f"{told['probes']} probes in {told['seconds']} s, not possible: {told['not_possible']}")
