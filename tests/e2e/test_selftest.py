"""glovebox selftest: all is contained here, and whichever layer is really missing is found out."""
import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from harness import census
from harness.cli import glovebox
from harness.poll import wait_for
from harness.server import PROGRAM

BUILD = Path(os.environ.get("GLOVEBOX_BUILD") or Path(PROGRAM).parent)
BROKEN = BUILD / "tests" / "unit" / "glovebox_broken"
HEADER = Path(__file__).resolve().parents[2] / "src" / "wire" / "layer.h"
WORDS = re.findall(r'X\([A-Z_]+, +"([a-z-]+)"', HEADER.read_text())
MAGIC = b"broken layer 1\n\0"

# What else fails when a layer is not there, because it rests on it: without a user namespace
# there is no user 1000 of one's own; in v1 groups swap is bounded together with memory; what
# never ends is ended by nobody's clock, also where children mean to stay.
WITH = {
    "user-namespace": {"uid-range"},
    "pid-namespace": {"replies"},  # "its processes are numbered as the first one's were"
    "mount-namespace": {"read-only-root", "proc", "ipc-namespace", "replies", "cgroup-namespace",
                        "landlock", "cgroup-memory", "pid-namespace"},
    "cgroup-memory": {"swap-off"},
    "cgroup-kill": {"replies"},
    "watchdog": {"cgroup-kill", "rlimits"},
}

# A root of its own in which /workspace exists, for the program that never joins its cell's mount
# namespace: what it writes and finds there is nobody's.
OWN_ROOT = """\
set -e
mount -t tmpfs -o mode=755 none "$1"
cd "$1"
mkdir u w r
mount -t overlay none -o lowerdir=/,upperdir=u,workdir=w r
for x in proc sys run dev; do mount --rbind /$x r/$x; done
mount -t tmpfs none r/dev/shm
mount -t tmpfs none r/tmp
mkdir r/workspace
chmod 1777 r/tmp r/dev/shm
chmod 777 r/workspace
cp "$2" r/tmp/glovebox
cd r
pivot_root . mnt
cd /
umount -l mnt
exec /tmp/glovebox selftest --json --no-record --cold
"""
# A network of its own, in which the program without one may look round.
OWN_NETWORK = 'ip link set lo up; exec "$2" selftest --json --no-record --cold'
# A host on which somebody has the whole range.
TAKEN_RANGE = """\
set -e
printf 'somebody:2000000:65536\\n' >"$1/subuid"
mount --bind "$1/subuid" /etc/subuid
exec "$2" selftest --json --no-record --allow-degraded uid-range
"""


def found(done):
    """The answer, as {layer: [names of its failed probes]}."""
    assert done.returncode in (0, 1), done
    d = json.loads(done.stdout)
    failed = {}
    for r in d["results"]:
        if r["outcome"] == "FAILED":
            failed.setdefault(r["layer"], []).append((r["probe"], r["got"]))
    assert d["failed"] == sum(map(len, failed.values()))
    assert d["contained"] == (not failed) == (done.returncode == 0)
    return failed


def without(layer, folder):
    """The program in which that layer is not there; None: nothing is broken in it."""
    image = BROKEN.read_bytes()
    number = WORDS.index(layer) + 1 if layer else 0
    assert image.count(MAGIC + bytes(4)) == 2, "the program's own block and its box's"
    path = folder / "glovebox"
    path.write_bytes(image.replace(MAGIC + bytes(4), MAGIC + number.to_bytes(4, "little")))
    path.chmod(0o755)
    return path


def run(argv):
    # It is quiet but for what the broken program's supervisors say about each other's remains.
    return subprocess.run(argv, capture_output=True, timeout=300, check=False, stdin=subprocess.DEVNULL,
                          env={"PATH": os.environ["PATH"]})


def run_without(layer, folder):
    if layer == "uid-range":
        return run(["unshare", "-m", "sh", "-c", TAKEN_RANGE, "sh", folder, PROGRAM])
    program = without(layer, folder)
    if layer == "mount-namespace":
        (folder / "top").mkdir()
        return run(["unshare", "-m", "sh", "-c", OWN_ROOT, "sh", folder / "top", program])
    if layer == "network-namespace":
        return run(["unshare", "-n", "sh", "-c", OWN_NETWORK, "sh", folder, program])
    # What is broken is broken in a cold start.
    return run([program, "selftest", "--json", "--no-record", "--cold"])


def test_here_everything_is_contained_in_less_than_a_minute():
    done = glovebox("selftest", "--json", "--no-record")
    assert found(done) == {}
    d = json.loads(done.stdout)
    assert d["probes"] == len(d["results"]) >= 100 and d["seconds"] < 60
    assert {r["layer"] for r in d["results"]} == {*WORDS, "replies"}
    (start,) = [r for r in d["results"] if r["probe"] == "seen.start"]
    assert (start["start"], start["got"]) == ("warm", "as meant")
    assert len({(r["layer"], r["checks"]) for r in d["results"]}) == d["probes"]


def test_the_report_has_a_sentence_for_each_probe_and_a_sum():
    done = glovebox("selftest", "--no-record")
    lines = done.stdout.decode().splitlines()
    assert done.returncode == 0 and lines[-1] == "All that was tried is contained."
    probes, ok = map(int, re.match(r"(\d+) probes, each cold and warm, in [\d.]+ s: (\d+) ok, 0 FAILED, ", lines[-2]).groups())
    assert probes == sum(line.startswith("  ") for line in lines if "not possible here" not in line)
    assert ok == sum(line.startswith("  ok ") for line in lines)
    assert [line for line in lines[:-3] if line and line[0] != " "] == [*WORDS, "replies"]


def test_it_leaves_nothing_behind():
    before = set(os.listdir("/run/glovebox")) if os.path.isdir("/run/glovebox") else set()
    assert glovebox("selftest", "--no-record").returncode == 0
    left = {n for n in set(os.listdir("/run/glovebox")) - before if n.startswith(("canary", "selftest."))}
    assert left == set()


def test_the_test_program_in_which_nothing_is_broken_passes(tmp_path):
    assert found(run([without(None, tmp_path), "selftest", "--json", "--no-record", "--cold"])) == {}


@pytest.mark.parametrize("layer", WORDS)
def test_a_layer_that_is_not_there_is_found_out(layer, tmp_path):
    failed = found(run_without(layer, tmp_path))
    assert layer in failed, failed
    assert set(failed) <= {layer} | WITH.get(layer, set()), failed


def test_without_a_warm_interpreter_that_is_said_and_the_rest_is_tried_from_cold():
    done = glovebox("selftest", "--json", "--no-record", env={"GLOVEBOX_COLD": "true"})
    assert found(done) == {}
    d = json.loads(done.stdout)
    (other,) = [r for r in d["results"] if r["outcome"] != "ok"]
    assert (other["probe"], other["outcome"], d["not_possible"]) == ("seen.start", "not possible here", 1)


def test_what_is_shipped_has_no_switch_to_leave_a_layer_out():
    assert MAGIC not in Path(PROGRAM).read_bytes()


def test_a_layer_that_the_operator_allows_to_be_missing_is_a_failure(tmp_path):
    """uid-range above is one; here the report says which probe it was."""
    done = run(["unshare", "-m", "sh", "-c", TAKEN_RANGE.replace("--json ", ""), "sh", tmp_path, PROGRAM])
    text = done.stdout.decode()
    assert done.returncode == 1 and "seen.subuid (cold): somebody's; it must be nobody's" in text
    assert text.endswith("NOT everything is contained: see FAILED above.\n")


def test_without_the_rights_nothing_is_known():
    done = subprocess.run([PROGRAM, "selftest"], capture_output=True, timeout=60, user=65534, group=65534,
                          extra_groups=[], check=False, env={})
    assert (done.returncode, done.stdout) == (125, b"") and b"root" in done.stderr


@pytest.mark.parametrize("flag", ["--no-such-flag", "argument"])
def test_wrong_usage_is_125(flag):
    assert glovebox("selftest", flag).returncode == 125


def test_health_shows_the_last_result(serve):
    saved = Path("/run/glovebox/selftest")
    before = saved.read_bytes() if saved.exists() else None
    server = serve("--cold")
    try:
        began = server.health().json()["selftest"]
        assert glovebox("selftest").returncode == 0
        told = wait_for("the news", lambda: (h := server.health().json()["selftest"]) != began and h)
        assert (told["result"], told["failed"], told["first_failed"]) == ("contained", 0, None)
        assert told["this_build"] is True and told["probes"] >= 100
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", told["at"])
        # A server that starts later knows it too.
        assert serve("--cold").health().json()["selftest"] == told
    finally:
        if before:
            saved.write_bytes(before)
        else:
            saved.unlink(missing_ok=True)


def test_health_tells_a_failure_of_another_build(serve, tmp_path):
    saved = Path("/run/glovebox/selftest")
    before = saved.read_bytes() if saved.exists() else None
    server = serve("--cold")
    try:
        assert run([without("uts-namespace", tmp_path), "selftest", "--cold"]).returncode == 1
        told = wait_for("the news",
                        lambda: (h := server.health().json()["selftest"])["result"] == "failed" and h)
        assert told["this_build"] is False and told["failed"] >= 1 and told["first_failed"] == "ns.uts"
        # Nobody else can say such a thing: what is not root's own is not believed.
        forged = Path("/run/glovebox/forged")
        shutil.copy(saved, forged)
        forged.chmod(0o666)
        forged.rename(saved)
        wait_for("it to be dropped", lambda: server.health().json()["selftest"]["result"] == "unknown")
        assert "not believed" in server.log()
    finally:
        saved.unlink(missing_ok=True)
        if before:
            saved.write_bytes(before)
            saved.chmod(0o600)


def test_beside_a_running_server_nothing_of_it_is_touched(serve):
    server = serve("--cold")
    held = server.rest()
    assert glovebox("selftest", "--no-record").returncode == 0
    server.settles_to(held)
    assert server.run("print(1)").stdout == "1\n"
    assert census.living_groups(server.groups)
