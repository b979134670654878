"""`glovebox serve` in every place that a host without systemd can give it."""
import os
from pathlib import Path

import harness.server
from conftest import TOP
from harness import census
from harness.poll import wait_for
from harness.server import START

# Everything starts up to twenty times slower here; what is not about time gets enough.
ROOM = {"timeout_seconds": 120, "cpu_limit": 1}
BOMB = "import os\nwhile 1:\n  try: os.fork()\n  except OSError: pass"
ESCAPES = """
import os
def fails(f, *a, **k):
    try: f(*a, **k)
    except OSError: return True
    return False
print(fails(open, '/etc/shadow'), fails(open, '/proc/1/environ'), fails(os.listdir, '/root'),
      fails(os.setuid, 0), fails(os.mkdir, '/sys/fs/cgroup/x'),
      len([p for p in os.listdir('/proc') if p.isdigit()]),
      open('/proc/self/cgroup').read().strip())
"""


def group_of(pid):
    return Path("/proc", str(pid), "cgroup").read_text().strip().removeprefix("0::")


# Page faults of a trivial program, and what of it is the program's own memory.
FAULTS_OF_A_COLD_START = 400
TRIVIAL_MB = {"warm": 4, "cold": 30}


def check_service(s):
    """A handful of requests: work, and three kinds of attack."""
    before = s.rest()
    assert s.health().json()["warm"] == {"warm": "on", "cold": "off"}[START]
    r = s.execute("print(sum(range(10)))", **ROOM)
    assert (r.status, r.stdout, r.isolation["cgroup"]) == ("success", "45\n", "v2"), r
    assert (r.usage["minor_faults"] > FAULTS_OF_A_COLD_START) == (START == "cold"), r
    assert r.memory_used_mb < TRIVIAL_MB[START], r
    r = s.execute("b = []\nwhile 1: b.append(bytearray(b'x' * (1 << 20)))", memory_limit_mb=48, **ROOM)
    assert (r.status, r.exit_code, r.cause) == ("memory_exceeded", 137, "oom_kill"), r
    r = s.execute(BOMB, timeout_seconds=5, memory_limit_mb=128)
    assert (r.status, r.exit_code) == ("timeout", 124), r
    assert r.usage["pids_refused"] > 0
    wait_for("the bomb's processes to go", lambda: not s.programs())
    r = s.execute(ESCAPES, **ROOM)
    assert r.status == "success", r
    words = r.stdout.split()
    assert words[:5] == ["True"] * 5 and int(words[5]) <= 2 and words[6:] == ["0::/"], r
    s.settles_to(before)


def finish(s):
    assert s.stop() == 0, s.log()
    s.must_leave_nothing()


def test_it_serves_from_the_root_group(serve):
    s = serve()
    assert group_of(s.pid) == "/"
    assert [Path(g).parent for g in s.groups] == [TOP]
    check_service(s)
    finish(s)


def test_in_a_group_with_others_it_goes_to_the_top(crowd, serve):
    s = serve()
    assert group_of(s.pid) == group_of(os.getpid()) == "/crowd"
    assert [Path(g).parent for g in s.groups] == [TOP]
    check_service(s)
    finish(s)


def test_in_a_group_with_others_it_goes_where_it_is_told(crowd, given, serve):
    s = serve("--cgroup", "/given/cells")
    assert group_of(s.pid) == "/crowd"
    assert [Path(g).parent for g in s.groups] == [given]
    check_service(s)
    finish(s)


def test_a_path_below_a_group_with_processes_is_refused_with_a_remedy(crowd, serve):
    s = serve("--cgroup", "/crowd/below", ready=False)
    assert s.process.wait(400) == 1
    assert "/crowd/below" in s.log() and "processes are in the group" in s.log()
    assert "--cgroup" in s.log()
    assert not (crowd / "below").exists()


def test_alone_in_its_group_it_moves_into_a_leaf_and_back(serve, tmp_path, monkeypatch):
    alone = TOP / "alone"
    alone.mkdir()
    starter = tmp_path / "starter"
    starter.write_text(f"#!/bin/sh\necho $$ >{alone}/cgroup.procs\nexec {harness.server.PROGRAM} \"$@\"\n")
    starter.chmod(0o755)
    monkeypatch.setattr(harness.server, "PROGRAM", str(starter))
    s = serve()
    (group,) = s.groups
    assert Path(group).parent == alone
    assert group_of(s.pid) == f"/alone/{Path(group).name}/supervisor"
    check_service(s)
    finish(s)
    assert not list(alone.glob("*/"))
    alone.rmdir()


def cpu_s(pid):
    """CPU time that the process has used."""
    words = Path("/proc", str(pid), "stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def test_a_run_that_sleeps_costs_the_supervisor_nothing(serve):
    """Its loop must wait: an event that is never taken note of would make it spin."""
    s = serve()
    s.execute("pass", **ROOM)
    used = [cpu_s(s.pid)]
    for code in ("pass", "import time; time.sleep(4)"):
        assert s.execute(code, **ROOM).status == "success"
        used.append(cpu_s(s.pid))
    nothing, idle = used[1] - used[0], used[2] - used[1]
    # 80 looks at the clock and the memory; a spinning loop would take all of the 4 s.
    assert idle - nothing < 1.5, (nothing, idle)
    finish(s)
