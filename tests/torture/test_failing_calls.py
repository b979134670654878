"""Each kernel call of each process that has a part in a run fails in its turn (tests/lib/flaky_page.h),
in a whole server with a pool, a zygote and cages that are used again: every request gets exactly one
answer, which is right or says which step failed; the next one works; nothing is left behind."""
import os
import signal
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness import census
from harness.flaky import ROLES, Kernel
from harness.poll import PATIENCE, wait_for
from harness.rawhttp import Wire
from harness.walk import (COLD, COLD_POOL, NEW_CAGES, POINTS_OF_NO_RETURN, SAYS_WHERE, USED_CAGES, Walk, a_server, ask,
                          bash, compiled, files, text)

SUPERVISOR_CALLS = 320  # which make a request and the next cell; what is above comes with the clock
LOAD = 150  # requests, by eight clients

# ---- The walks: several at a time, because a server that could not make a cell waits 200 ms ----

# Whose call, in which server, with what, how many at least, and which among others. The steps of a cold
# start and those of the zygote's child are the same ones.
BOX = {
    "init": ("init", NEW_CAGES, "ENOMEM", 60,
             {"mount", "move_mount", "pivot_root", "fsopen", "unshare", "seccomp", "capset"}),
    "enter": ("enter", COLD_POOL, "EIO", 40,
              {"setns", "unshare", "move_mount", "seccomp", "capset", "execveat", "dup3"}),
    "the zygote's child": ("child", NEW_CAGES, "EINTR", 40, {"setns", "unshare", "move_mount", "dup3", "prlimit"}),
    "the zygote": ("python", NEW_CAGES, "EAGAIN", 7, {"setns", "clone3", "sendmsg"}),
    "between clone and exec": ("spawn", NEW_CAGES, "EMFILE", 12, {"read", "setresuid", "openat", "fcntl", "dup3"}),
}
ALWAYS = {"fchmod", "fchown", "sendmsg", "epoll_ctl", "openat", "write", "pread", "pidfd_send_signal"}
SUPERVISOR = {
    "new cages": (NEW_CAGES, "EIO", 150, {"clone3", "fsopen", "fsmount", "unlinkat", *ALWAYS}),
    "used cages": (USED_CAGES, "ENOMEM", 80, {"fstatfs", *ALWAYS}),
    "cold": (COLD, "EMFILE", 100, {"clone3", "fsopen", "fsmount", *ALWAYS}),
}


def walk_through_box(role, flags, code, least, names):
    # Most of these drop capabilities, one by one.
    with a_server(*flags, spare=["prctl"]) as (kernel, s):
        walk = Walk(kernel, s, role, code).all(least).reach(names)
    if role in ("init", "enter", "child"):
        with a_server(*flags, spare=["prctl"], only=True) as (kernel, s):
            Walk(kernel, s, role, code).all(10, stride=13)
    return walk.failed


def walk_through_supervisor(flags, code, least, names):
    with a_server(*flags, spare=[*POINTS_OF_NO_RETURN, "recvmsg", "epoll_wait"]) as (kernel, s):
        walk = Walk(kernel, s, "supervisor", code).all(least, patience=8, most=SUPERVISOR_CALLS).reach(names)
        return walk.failed


@pytest.fixture(scope="module")
def walks():
    with ThreadPoolExecutor(6) as pool:
        begun = {name: pool.submit(walk_through_supervisor, *SUPERVISOR[name]) for name in SUPERVISOR}
        begun |= {name: pool.submit(walk_through_box, *BOX[name]) for name in BOX}
        yield begun
        for future in begun.values():
            future.cancel()


@pytest.mark.parametrize("who", BOX)
def test_whichever_call_in_a_box_fails_no_program_runs_wrongly_and_nothing_is_left(walks, who):
    assert walks[who].result() > 0


@pytest.mark.parametrize("what", SUPERVISOR)
def test_whichever_call_of_the_supervisor_fails_the_server_goes_on(walks, what):
    assert walks[what].result() > 0


# ---- Somebody kills what is being made ----

def test_cells_that_are_killed_while_they_are_made_cost_no_answer_unless_it_goes_on():
    """A process cannot be made in a cell whose init was killed a moment ago."""
    with a_server(*COLD, spare=["clone3"], only=True) as (kernel, s):
        kernel.fail_at_random(["supervisor"], 1, "ESRCH", shots=5)
        assert ask(s, "in spite of five") == (200, "")
        assert len(kernel.hits()) == 5
        kernel.fail_at_random(["supervisor"], 1, "ESRCH")
        status, why = ask(s, "never")
        assert status == 500 and SAYS_WHERE.fullmatch(why), (status, why)
        kernel.heal()
        assert ask(s, "again")[0] == 200


def test_a_main_whose_report_is_refused_as_well_is_not_taken_for_its_program():
    with a_server(*NEW_CAGES, spare=["prlimit", "sendmsg"], only=True) as (kernel, s):
        wait_for("a ready cell", s.is_idle)
        kernel.fail_at_random(["child"], 1, "ENOMEM", shots=4)
        status, why = ask(s, "never")
        assert status == 503 and SAYS_WHERE.fullmatch(why) and "rlimit" in why, (status, why)
        assert [name for _, name in kernel.hits()] == ["prlimit", "sendmsg", "sendmsg", "sendmsg"]
        kernel.heal()
        assert ask(s, "again")[0] == 200


# ---- What cannot be undone ----

@pytest.mark.parametrize("call", POINTS_OF_NO_RETURN)
def test_a_supervisor_that_cannot_come_back_ends_and_leaves_nothing_running(call):
    """From a cell's pid namespace, or from a cell's user: the next child would be made there."""
    kernel = Kernel()
    kernel.spare(call, only=True)
    flags = ["--cold", "--pool-size", "0", "--cage-runs", "1"]
    s = kernel.server(*flags).start()
    try:
        assert ask(s, "before")[0] == 200
        groups = census.instance_groups(s.pid)
        kernel.fail_nth("supervisor", 1)  # the second of the two is the way back
        with Wire(s, timeout=60) as w:
            w.send(w.post("print(1)", connection="close"))
            assert w.is_closed()
        assert s.process.wait(30) == -signal.SIGABRT and " ev=lost failed=" in s.log()
        kernel.heal()
        wait_for("its processes to go", lambda: not census.processes(s.uid_base, s.pid))
        after = kernel.server(*flags).start()
        assert not census.living_groups(groups) and " ev=swept " in after.log()
        assert ask(after, "after")[0] == 200
        assert after.stop() == 0
        after.must_leave_nothing()
    finally:
        kernel.heal()
        s.stop(signal.SIGKILL)
        kernel.folder.cleanup()


# ---- At random, under load ----

@pytest.mark.parametrize("flags, code, odds, roles, kinds", [
    (["--cold=false", "--pool-size", "4", "--max-runs", "4"], "EIO", 0.002, ROLES, [text]),
    (["--cold=false", "--pool-size", "4", "--max-runs", "4"], "ENOMEM", 0.003, ["supervisor", "python"], [text]),
    (["--cold", "--pool-size", "2", "--max-runs", "4"], "EMFILE", 0.004, ROLES, [text]),
    (["--cold=false", "--pool-size", "4", "--max-runs", "4"], "EIO", 0.001, ROLES, [files, text, bash, files, compiled]),
], ids=["all roles", "a supervisor without memory", "cold", "all that can be asked for"])
def test_under_load_with_failing_calls_each_request_gets_one_right_answer_or_a_reason(flags, code, odds, roles, kinds):
    with a_server(*flags, spare=[*POINTS_OF_NO_RETURN, "recvmsg", "epoll_wait"]) as (kernel, s):
        assert all(ask(s, "first", what) == (200, "") for what in kinds)
        before = s.rest()
        kernel.fail_at_random(roles, odds, code)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n: ask(s, f"load-{n}", kinds[n % len(kinds)], whole=False), range(LOAD)))
        hits = kernel.page.hits
        kernel.heal()
        assert {status for status, _ in answers} <= {200, 500, 503}, answers
        assert all(status == 200 or SAYS_WHERE.fullmatch(why) or "queue" in why for status, why in answers), \
            [a for a in answers if a[0] != 200]
        good = sum(status == 200 for status, _ in answers)
        assert hits >= 20 and good >= LOAD // 4, (hits, good)
        wait_for("it to be warm again, or cold for good", s.is_idle)
        assert all(ask(s, f"healed-{n}", what) == (200, "") for n in range(4) for what in kinds)
        s.settles_to(before)


# ---- Signals ----

def test_a_terminal_that_goes_does_not_end_a_server():
    with a_server(*COLD) as (_, s):
        os.kill(s.pid, signal.SIGHUP)
        assert ask(s, "still there")[0] == 200


def test_without_a_front_a_server_ends_at_once():
    kernel = Kernel()
    s = kernel.server(*COLD).start()
    try:
        os.kill(s.front, signal.SIGKILL)
        wait_for("its end to be seen", lambda: " ev=front_lost " in s.log())
        began = time.monotonic()
        assert s.stop() == 0
        assert time.monotonic() - began < 10 * PATIENCE  # and not after the grace of 30 s
        s.must_leave_nothing()
    finally:
        s.stop(signal.SIGKILL)
        kernel.folder.cleanup()


# ---- A channel that is full for a moment ----

def test_a_drain_that_finds_the_channel_full_is_sent_again_and_programs_finish():
    kernel = Kernel()
    kernel.spare("sendmsg", only=True)
    s = kernel.server(*COLD).start()
    try:
        with ThreadPoolExecutor(1) as pool:
            asked = pool.submit(s.run, "import time\nprint('in', flush=True)\ntime.sleep(2)\nprint('out')")
            wait_for("the program to run", lambda: s.health().json()["running"] == 1)
            kernel.fail_nth("supervisor", 1, "EAGAIN")  # HEALTH, then DRAIN
            assert s.stop() == 0
            assert kernel.hits() == [("supervisor", "sendmsg")]
            assert asked.result().stdout == "in\nout\n"
        s.must_leave_nothing()
    finally:
        kernel.heal()
        s.stop()
        kernel.folder.cleanup()


def test_news_of_the_self_test_that_find_the_channel_full_are_sent_again():
    saved, new = Path("/run/glovebox/selftest"), Path("/run/glovebox/selftest.torture")
    before = saved.read_bytes() if saved.exists() else None
    with a_server(*COLD, spare=["sendmsg"], only=True) as (kernel, s):
        # struct selftest_record (src/wire/selftest.h)
        new.write_bytes(struct.pack("<IIII20s24s64s", 0x31745367, 4711, 1, 0, b"x" * 20,
                                    b"2026-01-31T12:00:00Z", b"a-probe"))
        new.chmod(0o644)
        try:
            kernel.fail_nth("supervisor", 0, "EAGAIN")
            new.rename(saved)
            told = wait_for("the news", lambda: (h := s.health().json()["selftest"])["probes"] == 4711 and h)
            assert (told["result"], told["first_failed"]) == ("failed", "a-probe")
            assert kernel.hits() == [("supervisor", "sendmsg")]
        finally:
            if before:
                saved.write_bytes(before)
            else:
                saved.unlink(missing_ok=True)


# ---- The front's restart ----

@pytest.mark.parametrize("n", range(0, 40, 4))
def test_whichever_call_of_the_fronts_restart_fails_there_is_a_front_again(restarted, n):
    kernel, s = restarted
    before = s.rest()
    front = s.front
    kernel.fail_nth("supervisor", n, "EMFILE")
    os.kill(front, signal.SIGKILL)
    wait_for("the next one", s.is_ready)
    kernel.heal()
    assert ask(s, "again")[0] == 200
    s.settles_to(before)


@pytest.fixture(scope="module")
def restarted():
    with a_server("--cold", "--pool-size", "0", spare=[*POINTS_OF_NO_RETURN, "epoll_wait"]) as both:
        yield both
