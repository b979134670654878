"""Who gets a processor first: the supervisor while at most one run is going on, and nothing of a program ever."""
import os

import pytest

from harness import census, marks
from harness.poll import wait_for
from harness.rawhttp import Wire
from harness.reply import Reply
from harness.server import PROGRAM

CPUS = os.sched_getaffinity(0)
NICE = os.getpriority(os.PRIO_PROCESS, 0)
WHO_AM_I = """
import os
print(os.sched_getscheduler(0) == os.SCHED_OTHER, os.getpriority(os.PRIO_PROCESS, 0), sorted(os.sched_getaffinity(0)))
"""
HOLD = "import time; print({mark!r}, flush=True); time.sleep(2)"


def fronts(s):
    return census.role_pids(s.pid, "front")


def front_of(s):
    (pid,) = fronts(s)
    return pid


def policy(pid):
    return os.sched_getscheduler(pid) & ~os.SCHED_RESET_ON_FORK


def is_urgent(s):
    return policy(s.pid) == os.SCHED_RR and len(os.sched_getaffinity(s.pid)) == 1


def test_it_has_real_time_priority_while_it_is_calm_and_the_front_is_on_its_processor(serve):
    s = serve("--pool-size", "2")
    wait_for("real-time priority", lambda: is_urgent(s))
    front = front_of(s)
    assert os.sched_getaffinity(front) == os.sched_getaffinity(s.pid)
    assert policy(front) == os.SCHED_OTHER and os.getpriority(os.PRIO_PROCESS, front) == -10
    marks.ask(s)
    wait_for("real-time priority again", lambda: is_urgent(s))


def test_programs_run_with_the_usual_priority_on_all_processors(serve):
    s = serve("--pool-size", "2", "--cage-runs", "1")  # also those whose cage is made in the calm
    for _ in range(4):
        wait_for("real-time priority", lambda: is_urgent(s))
        assert s.run(WHO_AM_I).stdout == f"True {NICE} {sorted(CPUS)}\n"
    s.rest()  # nobody is about to end
    own = {s.pid, front_of(s)}
    for pid in set(census.processes(s.uid_base, s.pid)) - own:
        assert (policy(pid), os.getpriority(os.PRIO_PROCESS, pid)) == (os.SCHED_OTHER, NICE), pid
        assert os.sched_getaffinity(pid) == CPUS, census.cmdline(pid)


def test_with_two_runs_it_is_as_everybody_else(serve):
    s = serve("--pool-size", "2", "--max-runs", "4")
    wait_for("real-time priority", lambda: is_urgent(s))
    jobs = marks.begin(s, 2, HOLD)
    wait_for("the usual priority", lambda: policy(s.pid) == os.SCHED_OTHER)
    wait_for("all processors", lambda: os.sched_getaffinity(s.pid) == os.sched_getaffinity(front_of(s)) == CPUS)
    for j in jobs:
        j.result()
    wait_for("real-time priority again", lambda: is_urgent(s))


def test_a_restarted_front_is_placed_too(serve):
    s = serve("--pool-size", "2")
    wait_for("real-time priority", lambda: is_urgent(s))
    old = front_of(s)
    os.kill(old, 9)
    wait_for("a new front", lambda: set(fronts(s)) - {old})
    wait_for("it beside the supervisor", lambda: is_urgent(s) and os.sched_getaffinity(front_of(s)) == os.sched_getaffinity(s.pid))
    marks.ask(s)


@pytest.mark.parametrize("flags", [["--cold"], ["--cold=false"]])
def test_it_sleeps_while_it_waits(serve, flags):
    s = serve("--pool-size", "2", *flags)
    wait_for("real-time priority", lambda: is_urgent(s))
    used = census.cpu_seconds(s.pid)
    with Wire(s, timeout=60) as w:  # on one connection, so that a run begins while the last one's cell is renewed
        for _ in range(50):
            w.send(w.post("print(1)", timeout_seconds=20, memory_limit_mb=128))
            assert Reply(w.answer().json()).check().stdout == "1\n"
    # A run takes it some milliseconds. Waiting for a process that it kept from running took a second each time.
    assert census.cpu_seconds(s.pid) - used < 2
    assert "does not sleep" not in s.log()


@pytest.mark.parametrize("flags, without", [(["--urgent=false"], []), ([], ["setpriv", "--bounding-set", "-sys_nice"])])
def test_switched_off_or_not_allowed_nothing_is_changed(serve, monkeypatch, tmp_path, flags, without):
    if without:
        shim = tmp_path / "glovebox"
        shim.write_text(f"#!/bin/sh\nexec {' '.join(without)} {PROGRAM} \"$@\"\n")
        shim.chmod(0o755)
        monkeypatch.setattr("harness.server.PROGRAM", str(shim))
    s = serve("--pool-size", "2", *flags)
    marks.ask(s)
    if without:
        wait_for("a line that says why", lambda: "ev=urgency on=0 what=real_time_priority" in s.log())
    else:
        assert "ev=urgency" not in s.log()
    for pid in (s.pid, front_of(s)):
        assert policy(pid) == os.SCHED_OTHER and os.getpriority(os.PRIO_PROCESS, pid) == NICE
        assert os.sched_getaffinity(pid) == CPUS
