"""Two hundred ready cells: they come, they stay, they work, and they go."""
import os
import re
import resource
import select

from harness import census, marks
from harness.life import finish
from harness.poll import PATIENCE, wait_for

MANY = 200
FLAGS_OF_MANY = ["--cold=false", "--pool-size", str(MANY)]


def fill(server):
    def full():
        h = server.health().json()
        return (h["status"], h["warm"], h["ready_cells"]) == ("ok", "on", MANY)

    wait_for(f"{MANY} ready cells", full, 120 * PATIENCE)


def any_end(pids, seconds):
    """Those of these processes that end within so many seconds."""
    poll, of = select.poll(), {}
    try:
        for pid in pids:
            fd = os.pidfd_open(pid)
            of[fd] = pid
            poll.register(fd, select.POLLIN)
        return [of[fd] for fd, _ in poll.poll(seconds * 1000)]
    finally:
        for fd in of:
            os.close(fd)


def run_many(server, count):
    return [j.result() for _ in range(count // 4) for j in marks.begin(server, 4)]


def test_two_hundred_ready_cells_start_and_stay_healthy(serve):
    s = serve(*FLAGS_OF_MANY)
    fill(s)
    idle = s.rest()
    held = census.processes(s.uid_base, s.pid)
    assert len(held) == 2 * MANY + 3 and len(census.cell_inits(s.uid_base, s.pid)) == MANY
    assert idle["leaves"] >= MANY
    used = census.cpu_seconds(s.pid)
    assert any_end(held, 5) == []
    assert census.cpu_seconds(s.pid) - used <= 0.2
    h = s.health().json()
    assert (h["status"], h["ready_cells"], h["generation"]) == ("ok", MANY, 1), h
    assert all(r["usage"]["minor_faults"] < 100 for r in run_many(s, 60))
    marks.must_have_answered(s, 60)
    s.settles_to(idle)
    assert s.health().json()["ready_cells"] == MANY
    assert not re.search(r" lvl=(err|warn) (?!.*layer_missing|.*core_pattern)", s.log()), s.log()[-2000:]
    finish(s)


def with_files(count):
    return lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))


def test_a_pool_for_which_there_are_too_few_descriptors_is_refused_and_told_how_many_it_takes(serve):
    s = serve(*FLAGS_OF_MANY, ready=False, preexec=with_files(1024))
    assert s.process.wait(60 * PATIENCE) == 1
    told = re.search(r"open files is 1024; max-runs \d+ and pool-size 200 need (\d+)", s.log())
    assert told, s.log()
    s = serve(*FLAGS_OF_MANY, preexec=with_files(int(told[1])))
    fill(s)
    for j in marks.begin(s, 16, marks.SLOW):
        j.result()
    fill(s)
    assert "Too many open files" not in s.log()
    finish(s)
