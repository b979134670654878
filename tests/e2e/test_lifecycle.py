"""Start, stop and sudden death: nothing is left running, and the next start sweeps."""
import http.client
import os
import resource
import signal

import pytest

from harness import census
from harness.background import Background
from harness.poll import wait_for
from harness.reply import Reply

SLEEPER = "import os, time\nif os.fork() == 0: os.setsid()\nprint('on', flush=True)\ntime.sleep(200)"


def quietly(fn, *args, **kw):
    """A request that may end without an answer: the server's answer or None."""
    try:
        return fn(*args, **kw)
    except (OSError, http.client.HTTPException):
        return None


def running(server, n=1):
    """A server with n programs asleep in it: the requests, in the background."""
    jobs = [Background(quietly, server.post, {"code": SLEEPER, "timeout_seconds": 250})
            for _ in range(n)]
    wait_for("the programs to run", lambda: len(server.programs()) >= 2 * n)
    server.groups.update(census.instance_groups(server.pid))
    return jobs


def test_sigterm_lets_running_requests_finish_and_leaves_nothing(serve):
    s = serve()
    job = Background(s.post, {"code": "import time; time.sleep(1); print('finished')",
                              "timeout_seconds": 60, "cpu_limit": 1})
    wait_for("the program to run", s.programs)
    assert s.stop(signal.SIGTERM) == 0, s.log()
    reply = Reply(job.result().json()).check()
    assert (reply.status, reply.stdout) == ("success", "finished\n")
    s.must_leave_nothing()


def test_sigterm_is_bounded_by_the_grace(serve):
    s = serve("--shutdown-grace", "1s")
    jobs = running(s, 2)
    assert s.stop(signal.SIGTERM) == 0, s.log()
    for job in jobs:
        job.result()
    s.must_leave_nothing()


def test_sigterm_on_an_idle_server_ends_it(serve):
    s = serve()
    assert s.stop(signal.SIGTERM) == 0
    s.must_leave_nothing()


@pytest.mark.parametrize("listen", ["127.0.0.1:0", "unix:{}/socket"])
def test_a_client_that_comes_while_it_drains_is_refused_at_once(serve, tmp_path, listen):
    s = serve(listen=listen.format(tmp_path))
    (job,) = running(s)
    s.process.send_signal(signal.SIGTERM)
    wait_for("the drain of the front", lambda: " proc=front ev=drain " in s.log())

    def refused():
        try:
            s.request("GET", "/health", timeout=5)
        except (ConnectionRefusedError, FileNotFoundError):
            return True
        return False

    wait_for("a refused connection", refused)
    assert s.programs() and s.process.poll() is None
    assert s.stop(signal.SIGTERM) == 0  # the second one: at once
    job.result()
    s.must_leave_nothing()


def test_sigint_ends_it_like_sigterm(serve):
    s = serve()
    s.run("pass")
    assert s.stop(signal.SIGINT) in (0, 130)
    s.must_leave_nothing()


def test_the_end_of_the_terminal_that_started_it_is_not_the_servers(serve):
    s = serve()
    os.kill(s.pid, signal.SIGHUP)
    assert s.run("print('hi')").stdout == "hi\n"
    assert "ev=drain" not in s.log() and s.process.poll() is None


def test_sigterm_while_there_is_no_front_ends_it_at_once(serve):
    s = serve()
    nofile = resource.prlimit(s.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (3, nofile[1]))
    os.kill(s.front, signal.SIGKILL)
    wait_for("the failed try", lambda: "ev=front_restart " in s.log())
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, nofile)
    assert s.stop(signal.SIGTERM) == 0, s.log()
    assert "ev=front_restarted" not in s.log()


def test_sigkill_of_the_supervisor_leaves_nothing_running_and_the_next_start_sweeps(serve):
    s = serve()
    jobs = running(s, 2)
    leaves = {path: os.stat(path).st_ino for path in census.leaves(s.groups)}
    assert s.groups and leaves
    s.stop(signal.SIGKILL)
    wait_for("every process to go", lambda: not census.processes(s.uid_base, s.pid))
    for job in jobs:
        job.result()
    # Who has root's uid still, a cell in the making, is known by its group only.
    wait_for("every group to be empty", lambda: not census.populated(census.living_groups(s.groups)))
    again = serve()
    wait_for("the old cells' groups to go", lambda: not census.living_groups(leaves))
    # The new instance may have taken the old one's number, and with it its groups.
    assert set(census.living_groups(s.groups)) <= set(again.groups)
    assert again.run("print('hi')").stdout == "hi\n"


def test_what_a_dead_server_left_is_swept_by_a_start_that_lives_elsewhere(serve):
    name = f"gbx-e2e-{os.getpid()}"
    s = serve("--cgroup", f"/{name}/there")
    jobs = running(s)
    assert s.groups and all(f"/{name}/there/glovebox." in path for path in s.groups)
    s.stop(signal.SIGKILL)
    wait_for("every process to go", lambda: not census.processes(s.uid_base, s.pid))
    for job in jobs:
        job.result()
    assert census.living_groups(s.groups)
    again = serve()
    assert not census.living_groups(s.groups)
    assert not any(os.path.exists(f"{base}/{name}") for base in census.instance_bases())
    assert again.run("print('hi')").stdout == "hi\n"


def test_sigkill_of_the_front_leaves_no_program_running(serve):
    s = serve()
    jobs = running(s, 2)
    os.kill(s.front, signal.SIGKILL)
    wait_for("the programs to go", lambda: not s.programs())
    for job in jobs:
        job.result()

    def settled():
        return s.process.poll() is not None or s.is_ready()

    wait_for("the server to end or to recover", settled)
    if s.process.poll() is None:
        assert s.run("print('hi')").stdout == "hi\n"
        assert s.stop() == 0
    else:
        assert s.process.returncode != 0
    s.must_leave_nothing()


def test_a_front_that_could_not_be_started_again_is_tried_again_later(serve):
    s = serve()
    nofile = resource.prlimit(s.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, (3, nofile[1]))
    os.kill(s.front, signal.SIGKILL)
    wait_for("the failed try", lambda: "ev=front_restart " in s.log())
    resource.prlimit(s.pid, resource.RLIMIT_NOFILE, nofile)
    wait_for("the next one", lambda: "ev=front_restarted" in s.log() and s.is_ready(), 20)
    assert s.run("print('hi')").stdout == "hi\n"


def test_sigkill_of_a_cells_init_ends_that_run_only(serve):
    s = serve()
    s.run("pass")
    idle = s.rest()
    (job,) = running(s)
    inits = census.cell_inits(s.uid_base, s.pid)
    for pid in inits:
        os.kill(pid, signal.SIGKILL)
    answer = job.result()
    # A ready cell that is just being killed can still take a program, which dies with it.
    wait_for("the cells to go", lambda: not any(os.path.exists(f"/proc/{p}") for p in inits))
    assert answer is not None and answer.status in (200, 500, 503), answer
    assert answer.status != 200 or answer.json()["status"] == "error"
    assert s.run("print('hi')").stdout == "hi\n"
    s.settles_to(idle)


def test_sigkill_of_the_program_from_outside_is_a_signal_and_no_oom(serve):
    s = serve()
    job = Background(s.execute, "import time; print('on', flush=True); time.sleep(200)",
                     timeout_seconds=250)
    pid = wait_for("the program to run", s.programs)[0]
    os.kill(pid, signal.SIGKILL)
    r = job.result()
    assert (r.status, r.cause, r.exit_code) == ("error", "signal", 137)


@pytest.mark.parametrize("sig", [signal.SIGSEGV, signal.SIGABRT])
def test_a_crash_of_the_front_is_as_good_as_its_death(serve, sig):
    s = serve()
    os.kill(s.front, sig)
    wait_for("the server to end or to recover",
             lambda: s.process.poll() is not None or s.is_ready())
    if s.process.poll() is None:
        assert s.stop() == 0
    s.must_leave_nothing()


def test_two_servers_do_not_disturb_each_other(serve):
    a, b = serve(), serve()
    assert not set(a.groups) & set(b.groups)
    job = Background(a.run, "import time; time.sleep(1.5); print('a')")
    wait_for("the program of a", a.programs)
    assert b.run("print('b')").stdout == "b\n"
    assert b.stop() == 0
    b.must_leave_nothing()
    third = serve()  # sweeps what is dead, and only that
    assert third.run("print('c')").stdout == "c\n"
    assert job.result().stdout == "a\n"


def test_a_hundred_runs_leave_the_census_flat(serve):
    s = serve()
    s.run("pass")
    before = s.rest()
    memory = census.resident_kb(s.pid), census.resident_kb(s.front)
    for n in range(100):
        if n % 10 == 0:
            jobs = [Background(s.run, f"print({n} + {i})") for i in range(10)]
            assert [int(j.result().stdout) for j in jobs] == [n + i for i in range(10)]
    s.settles_to(before)
    grown = census.resident_kb(s.pid) - memory[0], census.resident_kb(s.front) - memory[1]
    assert grown[0] < 2048 and grown[1] < 16384, f"grew by {grown} kB"


def test_the_front_has_no_rights_of_any_kind(serve):
    s = serve()
    status = dict(line.split(":\t", 1) for line in
                  open(f"/proc/{s.front}/status", encoding="utf-8") if ":\t" in line)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name], 16) == 0, name
    assert status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2"
    assert all(s.uid_base <= int(u) < s.uid_base + census.UID_RANGE
               for u in status["Uid"].split() + status["Gid"].split())
    assert os.listdir(f"/proc/{s.front}/root/") == []
