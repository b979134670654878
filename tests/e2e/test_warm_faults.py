"""What goes wrong with a warm interpreter, in its fork, and around a dispatch: no request is
lost, and none is answered twice (harness/marks.py)."""
import os
import resource
import re
import signal
import socket
import struct
import textwrap
from contextlib import contextmanager
from pathlib import Path

import pytest

import harness.server
from harness import census, marks
from harness.background import Background
from harness.poll import PATIENCE, wait_for
from harness.rawhttp import Wire

WARM = ["--cold=false", "--pool-size", "2", "--log-level", "debug"]
# Page faults of a trivial program: a cold start takes some 800, a fork without rehearsal 100.
COLD_FAULTS = 400


def zygote(server):
    (pid,) = census.zygotes(server.pid)
    return pid


def is_cold(reply):
    return reply["usage"]["minor_faults"] > COLD_FAULTS


def is_warm_again(server):
    h = server.health().json()
    return h["warm"] == "on" and h["status"] == "ok"


# ---- A fork for which there is no memory, or no process ----

@contextmanager
def group(controller):
    """A control group of our own in the hierarchy that has this controller."""
    top = census.CGROUP_ROOT / controller
    path = (top if top.is_dir() else census.CGROUP_ROOT) / f"gbx-e2e-{os.getpid()}"
    path.mkdir()
    try:
        yield path
    finally:
        for pid in (path / "cgroup.procs").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        wait_for("the group to be empty", lambda: not (path / "cgroup.procs").read_text())
        path.rmdir()


def limit(path, v1, v2, value):
    name = v1 if (path / v1).exists() else v2
    (path / name).write_text(str(value))


def refusals(path):
    """How often a charge to this memory group failed."""
    if (path / "memory.failcnt").exists():
        return int((path / "memory.failcnt").read_text())
    words = (path / "memory.events").read_text().split()
    return int(words[words.index("max") + 1])


def test_a_zygote_that_runs_out_of_memory_in_a_fork_costs_no_answer(serve):
    s = serve(*WARM)
    before = s.rest()
    victim = zygote(s)
    with group("memory") as path:
        # Less than the page tables of a child take: clone3() fails, or the kernel kills it there.
        limit(path, "memory.limit_in_bytes", "memory.max", 65536)
        (path / "cgroup.procs").write_text(str(victim))
        replies = [j.result() for j in marks.begin(s, 10)]
        wait_for("the zygote's end", lambda: not os.path.exists(f"/proc/{victim}"))
        assert refusals(path) > 0
    assert any(is_cold(r) for r in replies)
    assert " ev=zygote_lost " in s.log() and " ev=refused " not in s.log()
    wait_for("the next zygote", lambda: is_warm_again(s))
    marks.must_have_answered(s, 10)
    s.settles_to(before)
    assert not is_cold(marks.ask(s))


def test_a_zygote_that_cannot_fork_is_replaced_and_costs_no_answer(serve):
    s = serve(*WARM)
    before = s.rest()
    victim = zygote(s)
    if not (census.CGROUP_ROOT / "pids").is_dir():
        # Where all controllers are v2's a child counts in its own leaf from the beginning.
        assert (census.CGROUP_ROOT / "cgroup.controllers").exists()
        return
    with group("pids") as path:
        (path / "pids.max").write_text("1")
        (path / "cgroup.procs").write_text(str(victim))
        replies = [j.result() for j in marks.begin(s, 10)]
        wait_for("its end", lambda: not os.path.exists(f"/proc/{victim}"))
    assert any(is_cold(r) for r in replies)
    assert " ev=unforked " in s.log() and "it cannot fork" in s.log() and " ev=refused " not in s.log()
    wait_for("the next zygote", lambda: is_warm_again(s))
    marks.must_have_answered(s, 10)
    s.settles_to(before)
    assert not is_cold(marks.ask(s))


def test_a_zygote_that_is_late_for_cells_that_are_gone_is_kept(serve):
    """The runs were started cold in the meantime; what it cannot fork into is not its fault."""
    s = serve("--cold=false", "--pool-size", "0", "--max-runs", "4", "--max-builds", "4", "--log-level", "debug")
    before = s.rest()
    pid = zygote(s)
    os.kill(pid, signal.SIGSTOP)
    try:
        assert all(is_cold(j.result()) for j in marks.begin(s, 4))
        wait_for("their cells to go", lambda: len(census.leaves(s.groups)) == before["leaves"])
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_for("its answers", lambda: s.log().count(" ev=unforked ") >= 4)
    assert zygote(s) == pid and " ev=zygote_lost " not in s.log()
    assert not is_cold(marks.ask(s))
    s.settles_to(before)


def test_a_zygote_that_is_late_does_not_disturb_what_was_started_cold_in_its_place(serve):
    """It may fork into a cage in which another process is the program by then."""
    s = serve(*WARM, "--max-runs", "4", "--max-builds", "4")
    before = s.rest()
    pid = zygote(s)
    os.kill(pid, signal.SIGSTOP)
    try:
        jobs = marks.begin(s, 6, marks.SLOW)
        wait_for("some to run", lambda: s.health().json()["running"] >= 4)
        wait_for("some to be started cold", lambda: len(s.programs()) >= 3)
    finally:
        os.kill(pid, signal.SIGCONT)
    for j in jobs:
        j.result()
    marks.must_have_answered(s, 6)
    assert " ev=refused " not in s.log() and " ev=run_failed " not in s.log()
    s.settles_to(before)


@pytest.mark.parametrize("more", [[], ["--always-rehearse"]], ids=["some", "all"])
def test_a_zygote_whose_children_cannot_rehearse_serves_all_the_same(serve, more):
    """A child breaks while it is made ready if it cannot write the training program, which is
    longer than what is asked here. After one that broke, the next main is started cold."""
    s = serve(*WARM, *more)
    s.rest()
    resource.prlimit(zygote(s), resource.RLIMIT_FSIZE, (80, 80))
    for _ in range(4):
        for j in marks.begin(s, 3):
            j.result()
    wait_for("a rehearsal to fail", lambda: "write the training program" in s.log())
    marks.must_have_answered(s, 12)
    assert " ev=refused " not in s.log()


# ---- A preload that does what it must not ----

MODULES = {
    "gbx_throws": "raise RuntimeError('not today')",
    "gbx_starts_a_thread": "import threading\nthreading.Thread(target=threading.Event().wait, daemon=True).start()",
    # It ends with its parent.
    "gbx_has_a_child": "import os\nr, w = os.pipe()\nif os.fork() == 0:\n    os.close(w)\n    os.read(r, 1)\n"
                       "    os._exit(0)",
    "gbx_ends_at_a_fork": "import os\nos.register_at_fork(before=lambda: os._exit(0))",
    "gbx_ends_it": "import os\nos._exit(0)",
    "gbx_hangs": "import time\ntime.sleep(3600)",
}
WHY = {
    "gbx_throws": "module gbx_throws: RuntimeError: not today",
    "gbx_starts_a_thread": "module gbx_starts_a_thread: its import starts a thread",
    "gbx_has_a_child": "module gbx_has_a_child: its import leaves a process",
    "gbx_ends_it": "it ended",
    "gbx_hangs": "module gbx_hangs: its import takes longer than 20 s",
}


@pytest.fixture
def serve_with_modules(serve, tmp_path, monkeypatch):
    """Servers in a mount namespace of their own, where the host's Python has these modules."""
    folder = tmp_path / "python3" / "dist-packages"
    folder.mkdir(parents=True)
    for name, code in MODULES.items():
        (folder / f"{name}.py").write_text(code)
    for path in (tmp_path, tmp_path.parent, tmp_path.parent.parent):
        path.chmod(0o755)
    starter = tmp_path / "starter"
    starter.write_text(textwrap.dedent(f"""\
        #!/bin/sh
        mount --bind {folder.parent} /usr/lib/python3 || exit 99
        exec {harness.server.PROGRAM} "$@"
        """))
    outer = tmp_path / "outer"
    outer.write_text(f"#!/bin/sh\nexec unshare --mount {starter} \"$@\"\n")
    for path in (starter, outer):
        path.chmod(0o755)
    monkeypatch.setattr(harness.server, "PROGRAM", str(outer))
    return serve


@pytest.mark.parametrize("name", WHY)
def test_a_preload_that_spoils_the_zygote_is_named_and_runs_start_cold(serve_with_modules, name):
    s = serve_with_modules(*WARM, "--preload", f"json,{name}")

    replies = []

    def told():
        # That it cannot fork is only found out when it is asked to.
        replies.append(marks.ask(s))
        h = s.health().json()
        return h["warm"] == "lost" and h["status"] == "degraded" and WHY[name] in (h["warm_why"] or "")

    wait_for("the reason", told, 60 * PATIENCE, pause_s=0.2)
    replies += [j.result() for j in marks.begin(s, 6)]
    assert all(is_cold(r) for r in replies)
    marks.must_have_answered(s, len(replies))
    assert " ev=refused " not in s.log()


def test_a_zygote_that_gets_warm_and_never_forks_is_restarted_ever_more_rarely(serve_with_modules):
    s = serve_with_modules(*WARM, "--preload", "gbx_ends_at_a_fork")

    def waits_longer():
        marks.ask(s)
        return " retry_ms=800" in s.log()

    wait_for("the third restart to be put off", waits_longer)
    assert re.findall(r" retry_ms=(\d+)", s.log())[:3] == ["200", "400", "800"]


# ---- More slow programs than cells ----

def test_more_slow_programs_than_cells_and_places_are_all_answered_once(serve):
    s = serve(*WARM, "--max-runs", "4")
    before = s.rest()
    jobs = marks.begin(s, 16, marks.SLOW)
    wait_for("some to wait", lambda: s.health().json()["queued"] > 0)
    for j in jobs:
        j.result()
    marks.must_have_answered(s, 16)
    s.settles_to(before)


# ---- A client that leaves in the middle of a dispatch ----

def leaving(server):
    """A connection that will be reset when it is closed, with a request on its way."""
    w = Wire(server)
    w.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    w.send(w.post("import time; print('begun', flush=True); time.sleep(600)", timeout_seconds=120))
    return w


def frozen_inits(server):
    """The v2 group of all inits of this server: what holds it holds the making of cells."""
    (path,) = [Path(g, "inits") for g in server.groups if Path(g, "inits", "cgroup.freeze").exists()]
    return path / "cgroup.freeze"


def test_a_client_that_leaves_while_its_cell_is_made_leaves_nothing(serve):
    s = serve("--cold=false", "--pool-size", "0", "--log-level", "debug")
    marks.ask(s)
    before = s.rest()
    freeze = frozen_inits(s)
    freeze.write_text("1")
    try:
        with leaving(s):
            wait_for("its cell to be begun", lambda: census.cell_inits(s.uid_base, s.pid))
            assert s.health().json()["running"] == 1
        wait_for("its end to be taken note of", lambda: s.health().json()["running"] == 0)
    finally:
        freeze.write_text("0")
    assert " from=WAITING to=KILLING on=CANCEL" in s.log()
    # Also the cell that is ready now, for nobody.
    s.settles_to(before)
    marks.ask(s)
    s.settles_to(before)


def test_cells_that_were_made_too_late_are_not_kept_beyond_the_pools_size(serve):
    s = serve(*WARM, "--cage-runs", "1")
    marks.ask(s)
    before = s.rest()
    freeze = frozen_inits(s)
    freeze.write_text("1")
    try:
        marks.ask(s)
        wait_for("more to be begun than one", lambda: len(census.cell_inits(s.uid_base, s.pid)) >= 4)
    finally:
        freeze.write_text("0")
    s.settles_to(before)
    assert s.health().json()["ready_cells"] == 2


def test_a_client_that_leaves_between_submit_and_start_leaves_nothing(serve):
    """The supervisor finds the request and its end at the same time."""
    s = serve(*WARM)
    marks.ask(s)
    before = s.rest()
    front = s.front
    idle = census.descriptors(front)
    os.kill(s.pid, signal.SIGSTOP)
    try:
        with leaving(s):
            # The connection and the pipes' own ends.
            wait_for("the request to be submitted", lambda: census.descriptors(front) >= idle + 3)
            wait_for("the front to be waiting", lambda: "epoll" in Path(f"/proc/{front}/wchan").read_text()
                     or Path(f"/proc/{front}/stat").read_text().rpartition(")")[2].split()[0] == "S")
        wait_for("its end to be seen by the front", lambda: census.descriptors(front) <= idle)
    finally:
        os.kill(s.pid, signal.SIGCONT)
    wait_for("the dispatch to be over", lambda: " on=CANCEL" in s.log())
    marks.ask(s)
    assert " ev=refused " not in s.log()
    s.settles_to(before)


# ---- A parked process that dies with START in its queue ----

def parked(server):
    """The first process of each ready cell: process 2 of its pid namespace."""
    found = []
    for pid in census.processes(server.uid_base, server.pid):
        try:
            text = Path(f"/proc/{pid}/status").read_text()
        except OSError:  # it ended while we looked
            continue
        if re.search(r"^NSpid:\t.*\t2$", text, re.M):
            found.append(pid)
    return found


@pytest.mark.parametrize("who", ["main", "init"])
@pytest.mark.parametrize("flags", [["--cold=false"], ["--cold"]], ids=["warm", "cold"])
def test_a_parked_process_that_dies_with_its_start_unread_costs_no_answer(serve, flags, who):
    s = serve(*flags, "--pool-size", "1", "--log-level", "debug")
    before = s.rest()
    (main,) = parked(s)
    (init,) = census.cell_inits(s.uid_base, s.pid)
    os.kill(main, signal.SIGSTOP)
    # Until then it could still read what comes.
    wait_for("it to stop", lambda: "\nState:\tT" in Path(f"/proc/{main}/status").read_text())
    job = Background(marks.ask, s)
    wait_for("START to be sent", lambda: " to=RUNNING on=READY" in s.log())
    os.kill(main if who == "main" else init, signal.SIGKILL)
    job.result()
    assert s.log().count(" from=RUNNING to=WAITING on=UNREAD") == 1
    assert s.log().count(" to=RUNNING on=READY") == 2
    marks.must_have_answered(s, 1)
    assert " ev=refused " not in s.log()
    s.settles_to(before)


def test_a_program_that_began_is_never_begun_again(serve):
    """It has printed, so START was read; its death then is its own."""
    s = serve(*WARM)
    before = s.rest()
    job = Background(s.post, {"code": "import time; print('begun', flush=True); time.sleep(600)",
                              "timeout_seconds": 120})
    (pid,) = wait_for("the program to sleep", lambda: [
        p for p in s.programs() if "nanosleep" in Path(f"/proc/{p}/wchan").read_text()])
    os.kill(pid, signal.SIGKILL)
    reply = job.result().json()
    assert (reply["stdout"], reply["cause"], reply["signal"]) == ("begun\n", "signal", "SIGKILL"), reply
    assert " on=UNREAD" not in s.log()
    s.settles_to(before)


def test_runs_whose_parked_processes_all_die_are_refused_in_the_end(serve):
    """A host that kills every one of them: the run is not tried for ever."""
    s = serve(*WARM)
    before = s.rest()
    stop = []

    def kill_them():
        while not stop:
            for pid in [p for p in parked(s) if p not in s.programs()]:
                for sig in (signal.SIGSTOP, signal.SIGKILL):
                    try:
                        os.kill(pid, sig)
                    except ProcessLookupError:
                        pass

    killer = Background(kill_them)
    jobs = [Background(s.post, {"code": f"print({n})"}) for n in range(4)]
    answers = [j.result() for j in jobs]
    stop.append(True)
    killer.result()
    for n, a in enumerate(answers):
        assert a.status in (200, 500, 503), a
        assert a.status != 200 or a.json()["stdout"] in ("", f"{n}\n")
    s.settles_to(before)
    marks.ask(s)


def test_zygotes_that_die_in_a_burst_of_requests_lose_and_double_none(serve):
    s = serve(*WARM, "--max-queue", "200")
    before = s.rest()
    job = Background(lambda: [j.result() for _ in range(5) for j in marks.begin(s, 12)])
    while job.is_alive():
        # In the middle of whatever it does; stopped first, so that more is asked of it.
        for pid in census.zygotes(s.pid):
            for sig in (signal.SIGSTOP, signal.SIGKILL):
                try:
                    os.kill(pid, sig)
                except ProcessLookupError:
                    pass
                job.join(0.05)
        job.join(0.1)
    assert len(job.result()) == 60
    marks.must_have_answered(s, 60)
    assert s.log().count(" ev=zygote_lost ") >= 1
    s.settles_to(before)
