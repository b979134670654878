"""Each kernel call that the supervisor makes while it starts fails in its turn (tests/lib/flaky_page.h):
it says what it could not do and ends with 1, or it starts and is as ever; nothing is left behind."""
import re
import signal
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import census
from harness.flaky import Kernel
from harness.poll import wait_for

FLAGS = ["--cold", "--pool-size", "0"]
CALLS = 1400  # some more or less, with the host's mounts and files
STEP = 7      # so many are made between two that fail: the walks together take every seventh
WALKS = 4
CODES = ["EIO", "ENOMEM", "EMFILE"]
# What was attempted, and the kernel's word; or the layer that is missing, its loss and a remedy.
SAYS_WHY = re.compile(r"^glovebox: [^:]+: .+", re.M)
# One that cannot be itself again must not go on, nor tidy up.
LOST = re.compile(r"ev=lost failed=\".+\" why=\".+\"")


def comes_up(server):
    """Whether it starts: False once it has ended."""
    def done():
        return server.process.poll() is not None or (server._listening() and server.is_ready())  # pylint: disable=protected-access
    try:
        wait_for("it to start or to end", done)
    except AssertionError:
        if server.process.poll() is None:
            raise
    return server.process.poll() is None


def lost_itself(kernel, server):
    """Whether the start could not become itself again, which leaves no way to tidy up: it says so,
    and the next start does what it could not."""
    if server.process.returncode != -signal.SIGABRT:
        return False
    assert LOST.search(server.log()), server.log()
    kernel.heal()
    after = kernel.server(*FLAGS).start()
    try:
        assert after.run("print(6 * 7)").stdout == "42\n"
    finally:
        after.stop()
    return True


def step(kernel, n, code):
    """What failed, and whether it started all the same."""
    kernel.fail_nth("supervisor", n, code)
    s = kernel.server(*FLAGS)
    s.launch()
    try:
        started = comes_up(s)
        hits = kernel.hits()
        kernel.heal()
        where = f"call {n}, {hits}: {s.log()[-1500:]}"
        if started:
            r = s.run("print(6 * 7)")
            assert r.stdout == "42\n", where
            s.groups = census.instance_groups(s.pid)
            assert s.stop() == 0, where
        else:
            assert hits, where
            if not lost_itself(kernel, s):
                assert s.process.returncode == 1, where
                assert SAYS_WHY.search(s.log()), where
        s.must_leave_nothing()
        return hits, started
    finally:
        kernel.heal()
        s.stop()


def walk(first):
    kernel = Kernel()
    # EINTR and the like are no failures there.
    kernel.spare("recvmsg", "epoll_wait")
    refused, names = 0, set()
    try:
        for n in range(first * STEP, CALLS, WALKS * STEP):
            hits, started = step(kernel, n, CODES[n // (WALKS * STEP) % len(CODES)])
            refused += not started
            names |= {name for _, name in hits}
        return refused, names
    finally:
        kernel.folder.cleanup()


@pytest.fixture(scope="module")
def walks():
    with ThreadPoolExecutor(WALKS) as pool:
        yield [pool.submit(walk, first) for first in range(WALKS)]


@pytest.mark.parametrize("first", range(WALKS))
def test_whichever_call_of_the_start_fails_it_says_why_or_starts(walks, first):
    refused, names = walks[first].result()
    assert refused > 20 and {"openat", "mkdirat", "symlinkat"} <= names, names


def ends(kernel, call, nth):
    """What a start says whose call of that name, of that number, fails; "" if it starts."""
    kernel.spare(call, only=True)
    kernel.fail_nth("supervisor", nth, "EIO")
    s = kernel.server(*FLAGS)
    s.launch()
    try:
        if comes_up(s):
            return ""
        assert kernel.hits() == [("supervisor", call)] and s.process.returncode == 1, s.log()
        s.must_leave_nothing()
        return s.log()
    finally:
        kernel.heal()
        s.stop()


@pytest.mark.parametrize("call, most, said", [
    ("setgroups", 1, "drop supplementary groups"), ("prlimit", 1, "open files limit"),
    ("memfd_create", 1, "memfd_create"), ("io_seal", 1, "seal"),
    ("unshare", 1, "unshare the mount namespace"), ("openat", 40, "control groups")])
def test_a_start_names_what_it_could_not_do(call, most, said):
    """The walks above take every seventh call; these are the steps of engine.c before there is a view."""
    kernel = Kernel()
    words = re.compile(f"^glovebox: .*{said}.*: Input/output error", re.M)
    try:
        assert any(words.search(ends(kernel, call, nth)) for nth in range(most))
    finally:
        kernel.folder.cleanup()


@pytest.mark.parametrize("call", ["setns", "setresuid", "prctl"])
def test_a_start_that_cannot_be_itself_again_says_so_and_ends(call):
    """While it makes the first cell: the way back of clone_as_owner() and clone_in_pidns()."""
    kernel = Kernel()
    kernel.spare(call, only=True)
    try:
        for nth in range(20):
            kernel.fail_nth("supervisor", nth, "EIO")
            s = kernel.server(*FLAGS)
            s.launch()
            try:
                started = comes_up(s)
                kernel.heal()
                if not started and lost_itself(kernel, s):
                    return s.must_leave_nothing()
            finally:
                kernel.heal()
                s.stop()
        assert False, "no failure of the call was one"
    finally:
        kernel.folder.cleanup()
