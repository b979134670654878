"""The wall clock steps, by an hour and more and in both directions: deadlines, ages and times
are of a clock that does not. In the guest, because it is nobody's clock but ours."""
import time

import pytest

from harness import census, marks
from harness.background import Background
from harness.poll import PATIENCE, wait_for

HOUR = 3600
ROOM = {"timeout_seconds": 120, "cpu_limit": 1}
# Two seconds by a clock that nobody can set, whatever the other does.
SLEEPS = "import time\ntime.sleep(2)\nprint({mark!r})"


@pytest.fixture
def step():
    """step(seconds) steps the wall clock; afterwards it is as it was, but for the time that went by."""
    offset = time.time() - time.monotonic()

    def by(seconds):
        time.clock_settime(time.CLOCK_REALTIME, time.time() + seconds)

    yield by
    time.clock_settime(time.CLOCK_REALTIME, time.monotonic() + offset)


def steps_during(job, step):
    """An hour ahead, two back, one ahead, a day ahead and back, as long as the job goes on."""
    done = 0
    for seconds in (HOUR, -2 * HOUR, HOUR, 24 * HOUR, -24 * HOUR):
        step(seconds)
        done += 1
        job.join(0.2)
    return done


def test_runs_during_which_the_clock_steps_are_answered_once_with_true_times(serve, step):
    s = serve()
    before = s.rest()
    jobs = marks.begin(s, 3, SLEEPS, **ROOM)
    wait_for("them to run", lambda: len(s.programs()) >= 3)
    assert steps_during(jobs[0], step) == 5
    for job in jobs:
        reply = job.result()
        assert 2000 <= reply["execution_time_ms"] < 60_000, reply
        assert 0 <= reply["queue_ms"] < 60_000 and reply["usage"]["setup_ms"] < 60_000, reply
    marks.must_have_answered(s, 3)
    s.settles_to(before)


@pytest.mark.parametrize("seconds", [HOUR, -HOUR])
def test_a_deadline_comes_neither_sooner_nor_later_when_the_clock_steps(serve, step, seconds):
    s = serve()
    began = time.monotonic()
    job = Background(s.execute, "import time\nprint('on', flush=True)\ntime.sleep(600)", timeout_seconds=8)
    wait_for("it to run", s.programs)
    step(seconds)
    r = job.result()
    assert (r.status, r.exit_code) == ("timeout", 124), r
    assert 8000 <= r["execution_time_ms"] < 16_000, r
    assert 8 <= time.monotonic() - began < 30 * PATIENCE


def test_ready_cells_and_their_zygote_do_not_age_when_the_clock_steps(serve, step):
    s = serve("--cold=false", "--pool-size", "2", "--cell-max-age", "1200s", "--zygote-max-age", "1200s")
    s.rest()
    before = census.processes(s.uid_base, s.pid)
    generation = s.health().json()["generation"]
    for seconds in (HOUR, -2 * HOUR, HOUR):
        step(seconds)
        # It looks at ages once a second.
        seen = time.monotonic()
        wait_for("three looks at the clock", lambda at=seen: time.monotonic() - at > 3, pause_s=0.5)
        assert census.processes(s.uid_base, s.pid) == before
        assert s.health().json()["generation"] == generation
    marks.ask(s, **ROOM)


def test_a_shutdown_is_bounded_when_the_clock_steps_back(serve, step):
    s = serve("--shutdown-grace", "4s")
    job = Background(s.post, {"code": "import time\ntime.sleep(600)", "timeout_seconds": 250})
    wait_for("it to run", s.programs)
    began = time.monotonic()
    stop = Background(s.stop)
    step(-HOUR)
    assert stop.result() == 0
    assert time.monotonic() - began < 30 * PATIENCE
    job.join()
    s.must_leave_nothing()
