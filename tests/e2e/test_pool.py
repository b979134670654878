"""Ready cells and warm interpreters: kept ahead, replaced, lost and found again."""
import os
import signal
import socket
import struct
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness import census
from harness.background import Background
from harness.poll import PATIENCE, wait_for
from harness.rawhttp import Wire

# Whatever GLOVEBOX_TEST_START says: later flags win.
WARM = ["--cold=false", "--pool-size", "4"]
SLOW = "import time; time.sleep(1.2); print('slow')"


@pytest.fixture
def warm(serve):
    s = serve(*WARM)
    s.rest()
    return s


def zygote(server):
    (pid,) = census.zygotes(server.pid)
    return pid


def watched(server, generation):
    """What /health says from now until a later generation is warm and the pool full again."""
    seen = []

    def again():
        h = server.health().json()
        seen.append(h)
        return h["generation"] > generation and h["status"] == "ok" and h["ready_cells"] == h["pool_size"]

    wait_for("a new generation", again)
    return seen


def says_lost(h):
    return h["status"] == "degraded" and h["warm"] == "lost" and h["generation"] == 0 and h["warm_why"]


def test_a_zygote_that_is_killed_costs_no_answer_and_is_replaced(warm):
    before = warm.rest()
    generation = warm.health().json()["generation"]
    os.kill(zygote(warm), signal.SIGKILL)
    health = Background(watched, warm, generation)
    # More than there were ready cells: some are made while there is no zygote.
    assert [warm.run(f"print({n})").stdout for n in range(12)] == [f"{n}\n" for n in range(12)]
    seen = health.result()
    assert any(says_lost(h) and "zygote" in h["warm_why"] for h in seen), seen
    assert all(h["ready"] for h in seen)
    assert warm.health().json()["warm_why"] is None and " ev=zygote_lost " in warm.log()
    warm.settles_to(before)


def test_a_zygote_that_is_stopped_costs_a_bounded_time_and_is_replaced(warm):
    before = warm.rest()
    generation = warm.health().json()["generation"]
    stopped = zygote(warm)
    os.kill(stopped, signal.SIGSTOP)
    health = Background(watched, warm, generation)
    jobs = [Background(warm.run, f"print({n})") for n in range(12)]
    replies = [j.result() for j in jobs]
    assert [r.stdout for r in replies] == [f"{n}\n" for n in range(12)]
    # The supervisor waits 3 s for a fork.
    assert max(r.wall_s for r in replies) < 8 * PATIENCE
    assert any(says_lost(h) for h in health.result())
    assert not os.path.exists(f"/proc/{stopped}")
    warm.settles_to(before)


def test_zygotes_that_are_killed_while_they_fork_leave_nothing(warm):
    idle = warm.rest()
    for n in range(4):
        generation = warm.health().json()["generation"]
        jobs = [Background(warm.run, "print('on')") for _ in range(4)]
        pid = zygote(warm)
        time.sleep(n / 500)
        os.kill(pid, signal.SIGKILL)
        assert [j.result().stdout for j in jobs] == ["on\n"] * 4
        watched(warm, generation)
    warm.settles_to(idle)


def test_a_worn_zygote_is_replaced_without_being_missed(serve):
    s = serve("--cold=false", "--pool-size", "2", "--zygote-max-forks", "5")
    idle = s.rest()
    seen = []

    def many():
        h = s.health().json()
        seen.append(h)
        assert s.run("print('on')").stdout == "on\n"
        return h["generation"] > 25

    wait_for("many generations", many)
    generations = [h["generation"] for h in seen if h["generation"]]
    assert generations == sorted(generations)
    assert not any(h["warm"] == "lost" for h in seen) and " ev=zygote_lost " not in s.log()
    # Also what the old ones had forked when they went.
    s.settles_to(idle)
    assert len(census.zygotes(s.pid)) == 1


def test_a_pool_of_none_makes_each_cell_when_it_is_needed(serve):
    s = serve("--cold=false", "--pool-size", "0")
    idle = s.rest()
    assert not census.cell_inits(s.uid_base, s.pid)
    for n in range(5):
        assert s.run(f"print({n})").stdout == f"{n}\n"
    h = s.health().json()
    assert (h["ready_cells"], h["pool_size"], h["status"], h["warm"]) == (0, 0, "ok", "on")
    s.settles_to(idle)


def test_a_pool_of_forty_is_reached_and_kept(serve):
    s = serve("--cold=false", "--pool-size", "40")
    idle = s.rest()
    assert len(census.cell_inits(s.uid_base, s.pid)) == 40
    with ThreadPoolExecutor(4) as pool:
        outs = list(pool.map(lambda n: s.run(f"print({n})").stdout, range(60)))
    assert outs == [f"{n}\n" for n in range(60)]
    s.settles_to(idle)
    assert s.health().json()["ready_cells"] == 40


def test_a_cold_server_keeps_ready_cells_too(serve):
    s = serve("--cold", "--pool-size", "3")
    idle = s.rest()
    h = s.health().json()
    assert (h["ready_cells"], h["warm"], h["status"]) == (3, "off", "ok")
    assert not census.zygotes(s.pid) and len(census.cell_inits(s.uid_base, s.pid)) == 3
    assert s.run("print('on')").stdout == "on\n"
    s.settles_to(idle)


def test_more_slow_programs_than_cells_wait_and_are_answered(serve):
    s = serve("--cold=false", "--pool-size", "2", "--max-runs", "4")
    idle = s.rest()
    jobs = [Background(s.run, SLOW) for _ in range(10)]
    wait_for("some to wait", lambda: s.health().json()["queued"] > 0)
    assert [j.result().stdout for j in jobs] == ["slow\n"] * 10
    s.settles_to(idle)


def kill_all(pids):
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    wait_for("their end to be seen", lambda: not any(os.path.exists(f"/proc/{p}") for p in pids))


def test_a_ready_cell_that_dies_is_replaced(warm):
    idle = warm.rest()
    victims = census.cell_inits(warm.uid_base, warm.pid)
    assert len(victims) == 4
    kill_all(victims)
    assert warm.run("print('on')").stdout == "on\n"
    warm.settles_to(idle)


def test_a_ready_cell_whose_interpreter_dies_is_replaced(warm):
    idle = warm.rest()
    parked = [p for p, name in census.processes(warm.uid_base, warm.pid).items()
              if name == "python3" and p != zygote(warm)]
    assert len(parked) == 4
    kill_all(parked)
    assert warm.run("print('on')").stdout == "on\n"
    warm.settles_to(idle)


def test_cells_and_cages_that_are_too_old_are_replaced_though_nobody_asks(serve):
    s = serve("--cold=false", "--pool-size", "2", "--cell-max-age", "1s")
    s.rest()
    first = set(census.cell_inits(s.uid_base, s.pid))
    assert len(first) >= 2
    wait_for("others", lambda: not first & set(census.cell_inits(s.uid_base, s.pid)))
    assert s.run("print('hello')").stdout == "hello\n" and " lvl=err " not in s.log()


def test_cells_that_were_made_in_a_hurry_are_replaced_when_there_is_time(serve):
    """What a cell was prepared less by, its program pays for in page faults."""
    s = serve(*WARM, "--log-level", "debug")
    s.rest()

    def faults():
        return s.run("print('hello')").usage["minor_faults"]

    jobs = [Background(faults) for _ in range(24)]
    assert max(j.result() for j in jobs) > 80
    wait_for("one to be replaced", lambda: " ev=hurried " in s.log())
    seen = []

    def settled():
        """Three times the same number: a replacement takes some ms, and the next follows at once."""
        time.sleep(0.1)
        seen.append(s.rest() and s.log().count(" ev=hurried "))
        return len(seen) >= 3 and len(set(seen[-3:])) == 1

    wait_for("no more to be", settled)
    assert " lvl=err " not in s.log()
    assert max(faults() for _ in range(3)) < 40


@pytest.mark.parametrize("flags", [WARM, ["--cold=false", "--pool-size", "0"]], ids=["ready", "made"])
def test_clients_that_leave_while_their_runs_are_dispatched_leave_nothing(serve, flags):
    s = serve(*flags)
    idle = s.rest()
    for n in range(60):
        with Wire(s) as w:
            w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            w.send(w.post("import time; time.sleep(60)", timeout_seconds=90))
            time.sleep(n % 12 / 2000)  # 0 to 5.5 ms: before, in and after the dispatch
    assert s.run("print('on')").stdout == "on\n"
    s.settles_to(idle)


def test_an_idle_servers_ready_cells_do_nothing(warm):
    """Nothing wakes the supervisor but the clock, once a second."""
    warm.rest()
    pids = [warm.pid, *census.zygotes(warm.pid), *census.cell_inits(warm.uid_base, warm.pid)]
    before = {p: census.cpu_seconds(p) for p in pids}
    seen = time.monotonic()
    wait_for("two seconds", lambda: time.monotonic() - seen > 2, pause_s=0.5)
    used = {p: census.cpu_seconds(p) - before[p] for p in pids}
    assert sum(used.values()) <= 0.1, used
