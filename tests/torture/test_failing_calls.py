"""Each kernel call of each process that has a part in a run fails in its turn (tests/lib/flaky_page.h),
in a whole server with a pool, a zygote and cages that are used again: every request gets exactly one
answer, which is right or says which step failed; the next one works; nothing is left behind."""
import os
import re
import signal
import struct
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness import census
from harness.flaky import ROLES, Kernel
from harness.poll import PATIENCE, wait_for
from harness.rawhttp import Wire

# One cell at a time, so that it is known whose call it is.
NEW_CAGES = ["--cold=false", "--pool-size", "1", "--cage-runs", "1", "--max-builds", "1"]
USED_CAGES = ["--cold=false", "--pool-size", "1", "--max-builds", "1"]
COLD = ["--cold", "--pool-size", "0", "--max-builds", "1"]
COLD_POOL = ["--cold", "--pool-size", "1", "--cage-runs", "1", "--max-builds", "1"]

# After these the supervisor would be somebody or somewhere else: it aborts, and the whole server ends
# (docs/zones/kernel.md). That is tested apart.
POINTS_OF_NO_RETURN = ["setns", "setresuid", "prctl"]
SUPERVISOR_CALLS = 320  # which make a request and the next cell; what is above comes with the clock
LOAD = 150  # requests, by eight clients
# A step, or an operation with its object: never a bare errno.
SAYS_WHERE = re.compile(r"the code did not run: (cell \d+: )?[\w /.'()-]{4,}: .+")


@contextmanager
def a_server(*flags, spare=(), only=False):
    """On a kernel of its own; at the end it must leave nothing."""
    kernel = Kernel()
    kernel.spare(*spare, only=only)
    s = kernel.server("--log-level", "debug", *flags)
    try:
        s.start()
        s.run("print(1)")
        yield kernel, s
        kernel.heal()
        assert s.stop() == 0, s.log()[-2000:]
        s.must_leave_nothing()
    finally:
        kernel.heal()
        s.stop()
        kernel.folder.cleanup()


def ask(server, mark):
    """Status and text of the only answer. 200 is a right one."""
    with Wire(server, timeout=60) as w:
        w.send(w.post(f"print({mark!r})", connection="close", timeout_seconds=30))
        answer = w.answer()
        assert answer is not None, f"no answer to {mark}; {server.log()[-1500:]}"
        assert w.is_closed(), "more than one answer"
    reply = answer.json()
    if answer.status == 200:
        assert (reply["status"], reply["stdout"], reply["stderr"]) == ("success", f"{mark}\n", ""), reply
        return 200, ""
    return answer.status, reply["detail"]


class Walk:
    """Call number 0, 1, 2… of one role fails; between them, and at the end, all is as before."""

    def __init__(self, kernel, server, role, code):
        self.kernel, self.server, self.role, self.code = kernel, server, role, code
        self.before = server.rest()
        self.failed, self.refused, self.names = 0, 0, set()

    def quiet(self):
        """Until the call was reached, or what the request has caused is done without it."""
        end = time.monotonic() + 5
        calm = 0
        while time.monotonic() < end and calm < 12:
            if self.kernel.page.hits:
                break
            before = self.kernel.page.calls
            idle = self.server.is_idle()
            calm = calm + 1 if idle and self.kernel.page.calls == before else 0
            time.sleep(0.02)  # the events are somebody else's calls: nothing tells of them

    def step(self, n):
        """True if there is such a call."""
        if "--cold" not in self.server.flags:
            wait_for("a zygote", lambda: self.server.health().json()["warm"] == "on" and self.server.is_idle())
        self.kernel.fail_nth(self.role, n, self.code)
        began = time.monotonic()
        status, text = ask(self.server, f"call-{n}")
        took = time.monotonic() - began
        self.quiet()
        hits = self.kernel.hits()
        self.kernel.heal()
        where = f"{self.role}'s call {n}, {hits}: {status} {text}"
        if status != 200:
            assert status in (500, 503), where
            assert SAYS_WHERE.fullmatch(text), where
            self.refused += 1
        assert ask(self.server, f"after-{n}")[0] == 200, where
        # An end that nobody hears of would be seen by a deadline: a run's, or that of a build, 5 s.
        assert took < 4.5 * PATIENCE, f"{where} after {took:.1f} s"
        self.failed += len(hits)
        self.names |= {name for _, name in hits}
        return bool(hits)

    def settle(self):
        try:
            self.server.settles_to(self.before)
        except AssertionError as e:
            raise AssertionError(f"{self.role}, {self.names}: {e}") from None

    def all(self, least, stride=1, most=1000, patience=3):
        missed = 0
        for n in range(0, most, stride):
            missed = 0 if self.step(n) else missed + 1
            if n % 20 == 0:
                self.settle()
            if missed == patience:
                break
        self.settle()
        assert self.failed >= least, f"{self.role}: only {self.failed} calls failed: {self.names}"
        return self

    def reach(self, names):
        """Which call has which number depends on the clock: what the walk stepped over fails by its name."""
        for name in names - self.names:
            self.kernel.spare(name, only=True)
            self.step(0)
        self.settle()
        assert names <= self.names, self.names
        return self


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
        status, text = ask(s, "never")
        assert status == 500 and SAYS_WHERE.fullmatch(text), (status, text)
        kernel.heal()
        assert ask(s, "again")[0] == 200


def test_a_main_whose_report_is_refused_as_well_is_not_taken_for_its_program():
    with a_server(*NEW_CAGES, spare=["prlimit", "sendmsg"], only=True) as (kernel, s):
        wait_for("a ready cell", s.is_idle)
        kernel.fail_at_random(["child"], 1, "ENOMEM", shots=4)
        status, text = ask(s, "never")
        assert status == 503 and SAYS_WHERE.fullmatch(text) and "rlimit" in text, (status, text)
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
        assert s.process.wait(30) == -signal.SIGABRT
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

@pytest.mark.parametrize("flags, code, odds, roles", [
    (["--cold=false", "--pool-size", "4", "--max-runs", "4"], "EIO", 0.002, ROLES),
    (["--cold=false", "--pool-size", "4", "--max-runs", "4"], "ENOMEM", 0.003, ["supervisor", "python"]),
    (["--cold", "--pool-size", "2", "--max-runs", "4"], "EMFILE", 0.004, ROLES),
], ids=["all roles", "a supervisor without memory", "cold"])
def test_under_load_with_failing_calls_each_request_gets_one_right_answer_or_a_reason(flags, code, odds, roles):
    with a_server(*flags, spare=[*POINTS_OF_NO_RETURN, "recvmsg", "epoll_wait"]) as (kernel, s):
        before = s.rest()
        kernel.fail_at_random(roles, odds, code)
        with ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda n: ask(s, f"load-{n}"), range(LOAD)))
        hits = kernel.page.hits
        kernel.heal()
        assert {status for status, _ in answers} <= {200, 500, 503}, answers
        assert all(status == 200 or SAYS_WHERE.fullmatch(text) or "queue" in text for status, text in answers), \
            [a for a in answers if a[0] != 200]
        good = sum(status == 200 for status, _ in answers)
        assert hits >= 20 and good >= LOAD // 4, (hits, good)
        wait_for("it to be warm again, or cold for good", s.is_idle)
        assert all(ask(s, f"healed-{n}")[0] == 200 for n in range(4))
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
