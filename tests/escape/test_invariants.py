"""What is checked after every attack, broken on purpose: a check that cannot fail shows nothing."""
import copy
import os
import re
import socket
import subprocess
import threading

import pytest

import invariants
from corpus import OUT_OF_MEMORY, SUCCESS, Attack, failed, killed_by
from harness import census
from harness.background import Background
from harness.poll import PATIENCE, wait_for
from harness.rawhttp import Wire
from harness.server import CANARY, Answer
from invariants import Arenas, agree, bounded


def refuses(check, *args, match=None):
    with pytest.raises(AssertionError, match=match):
        check(*args)


# ---- The verdict ----


@pytest.mark.parametrize("attack", [
    Attack("another verdict", "print(1)", failed(1)),
    Attack("another exit code", "raise SystemExit(4)", failed(3)),
    Attack("another signal", "import os; os.abort()", killed_by("SIGSEGV")),
    Attack("a kill that was none", "import os; os._exit(137)", OUT_OF_MEMORY),
    Attack("another output", "print(1)", SUCCESS, "2\n"),
    Attack("another error output", "print(1)", SUCCESS, complains="no\n"),
    Attack("a check that fails", "print(1)", SUCCESS, check=lambda r: pytest.fail("no") if r.stdout else None),
], ids=str)
def test_a_result_that_is_not_the_stated_one_fails(arena, attack):
    with pytest.raises((AssertionError, pytest.fail.Exception)):
        arena.withstand(attack)


# ---- 1, 2, 4: the answer ----

FALSE_REPLIES = {
    "success with an exit code": {"exit_code": 1},
    "an unknown cause": {"cause": "magic"},
    "a signal that was none": {"signal": "SIGKILL"},
    "a timeout before its time": {"status": "timeout", "cause": "wall_timeout", "exit_code": 124},
    "a program that ran longer than it took": {"execution_time_ms": 10_000.0},
    "more memory than its limit": {"memory_used_mb": 129.0, "usage.memory_peak_bytes": 129 << 20},
    "two peaks": {"memory_used_mb": 100.0},
    "more CPU than its share": {"usage.cpu_ms": 60_000.0},
    "parts that are more than the whole": {"usage.user_ms": 30_000.0},
    "more tasks than its limit": {"usage.pids_peak": 33},
    "a layer less": {"isolation.degraded": ["landlock"]},
    "output that nobody counted": {"output.stdout.bytes": 9},
    "more output than the limit": {"stdout": "x" * 2000, "output.stdout.kept": 2000, "output.stdout.bytes": 2000},
    "dropped without a word": {"output.stdout.bytes": 9, "output.stdout.dropped": 4},
    "half a surrogate pair": {"stdout": "\ud800"},
}


@pytest.mark.parametrize("name", FALSE_REPLIES)
def test_a_reply_that_does_not_agree_with_itself_fails(arena, name):
    true = arena.run("print('true')")
    false = copy.deepcopy(true)
    for path, value in FALSE_REPLIES[name].items():
        *folders, last = path.split(".")
        at = false
        for folder in folders:
            at = at[folder]
        at[last] = value

    def judge(reply):
        reply.check()
        agree(reply)
        bounded(reply, 1000)

    false.wall_s = true.wall_s
    judge(true)
    refuses(judge, false)


class Liar:
    """In the server's place: gives each connection the same bytes."""

    def __init__(self, answer):
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self.exchanges = []
        self._answer = answer
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        with self._listener, self._listener.accept()[0] as peer:
            peer.recv(1 << 16)
            peer.sendall(self._answer)

    def socket(self, timeout):
        return socket.create_connection(("127.0.0.1", self.port), timeout=timeout)


def http(body, status=200, media="application/json"):
    return b"HTTP/1.1 %d X\r\nContent-Type: %s\r\nContent-Length: %d\r\n\r\n%s" % \
        (status, media.encode(), len(body), body)


LIES = {
    "no answer": lambda a: b"",
    "two answers": lambda a: http(a) * 2,
    "another status": lambda a: http(a, 500),
    "another type": lambda a: http(a, media="text/html"),
    "no JSON": lambda a: http(a[:-2]),
    "a number that JSON does not have": lambda a: http(a.replace(b'"queue_ms":', b'"queue_ms":NaN,"x":')),
    "a key twice": lambda a: http(a.replace(b'"queue_ms":', b'"queue_ms":0,"queue_ms":')),
    "an answer without a bound": lambda a: http(a + b" " * (20 << 20)),
    "no UTF-8": lambda a: http(a.replace(b"true", b"\xff")),
    "a host file's content": lambda a: http(a.replace(b"true", invariants.SECRET.encode())),
    "the service's environment": lambda a: http(a.replace(b"true", CANARY.encode())),
}


def answer_of(arena):
    """The body of a true answer, to a run that took no time: a liar gives it at once."""
    with Wire(arena.server) as w:
        w.send(w.post("print('true')", timeout_seconds=20))
        return re.sub(rb'"(execution_time_ms|queue_ms|cpu_ms|user_ms|system_ms)":[\d.]+', rb'"\1":0', w.answer().body)


@pytest.mark.parametrize("name", LIES)
def test_an_answer_that_is_not_the_one_that_is_owed_fails(arena, monkeypatch, name):
    true = answer_of(arena)
    for lie, holds in ((http(true), True), (LIES[name](true), False)):
        monkeypatch.setattr(arena, "server", Liar(lie))
        if holds:
            arena.ask({"code": ""})
        else:
            with pytest.raises((AssertionError, ValueError)):
                arena.ask({"code": ""})
        monkeypatch.undo()


def test_an_answer_with_something_of_an_earlier_request_fails(arena, monkeypatch):
    arena.probe()
    body = answer_of(arena).replace(b"true", arena.last_secret.encode())
    monkeypatch.setattr(arena, "server", Liar(http(body)))
    refuses(arena.ask, {"code": ""}, match="secret")
    monkeypatch.undo()


def test_an_answer_that_comes_late_fails(arena, monkeypatch):
    monkeypatch.setattr(invariants, "GRACE_S", -60 * PATIENCE)
    refuses(arena.run, "print(1)", match="answered after")


@pytest.mark.parametrize("counter, limit", [("memory.current", "memory.max"), ("pids.current", "pids.max"),
                                            ("memory.usage_in_bytes", "memory.limit_in_bytes")])
def test_a_group_over_its_limit_fails(arena, monkeypatch, tmp_path, counter, limit):
    leaf = tmp_path / "c1"
    leaf.mkdir()
    monkeypatch.setattr(arena.server, "groups", {str(tmp_path): 0})
    (leaf / limit).write_text("max\n")
    (leaf / counter).write_text(f"{70 << 20}\n")
    arena.beside()
    (leaf / limit).write_text(f"{64 << 20}\n")
    refuses(arena.beside, match=counter)


# ---- 3: nothing left ----


def test_a_front_that_had_to_be_started_again_fails(arena, monkeypatch):
    monkeypatch.setattr(arena, "_front", arena.server.pid)
    refuses(arena.nobody_died, match="started again")


def as_somebody_of(server, *argv):
    """A process with a uid of the server's range, as one that a cell has left."""
    return subprocess.Popen(argv, user=server.uid_base + 1000, group=server.uid_base + 1000, extra_groups=[],
                            start_new_session=True)


@pytest.mark.parametrize("argv", [["sleep", "600"], ["unshare", "--user", "--net", "sleep", "600"]],
                         ids=["process", "namespace"])
def test_a_process_that_is_left_fails(arena, monkeypatch, argv):
    monkeypatch.setattr(arena, "settle_s", 0.3)
    with as_somebody_of(arena.server, *argv) as left:
        try:
            wait_for("it to begin", lambda: census.cmdline(left.pid)[:1] == ["sleep"])
            refuses(arena.nothing_is_left, match="leaked")
        finally:
            left.kill()


def test_a_group_that_is_left_fails(arena, monkeypatch):
    monkeypatch.setattr(arena, "settle_s", 0.3)
    left = os.path.join(sorted(arena.server.groups)[0], "left")
    os.mkdir(left)
    try:
        refuses(arena.nothing_is_left, match="leaked")
    finally:
        os.rmdir(left)


def test_each_count_is_looked_at(arena, monkeypatch):
    monkeypatch.setattr(arena, "settle_s", 0.2)
    idle = arena.idle
    assert len(idle) >= 8
    for name in idle:
        monkeypatch.setattr(arena, "idle", {**idle, name: idle[name] - 1})
        refuses(arena.nothing_is_left, match="leaked")
    monkeypatch.undo()


def test_a_run_that_never_ends_fails(arena, monkeypatch):
    monkeypatch.setattr(arena, "settle_s", 0.3)
    job = Background(arena.run, "import time; time.sleep(60)", timeout_seconds=70)
    wait_for("it to run", arena.server.programs)
    refuses(arena.nothing_is_left, match="leaked")
    arena.server.kill_programs()
    job.result()


# ---- 5 to 9 ----


@pytest.mark.parametrize("grows_kb", [invariants.GROWS_KB, invariants.GROWS_BESIDE_KB], ids=["afterwards", "beside"])
@pytest.mark.parametrize("name", ["supervisor", "front"])
def test_a_process_that_has_grown_fails(arena, monkeypatch, name, grows_kb):
    arena.holds_no_more(grows_kb)
    monkeypatch.setitem(arena.private_kb, name, arena.private_kb[name] - grows_kb[name] - 8)
    refuses(arena.holds_no_more, grows_kb, match=name)


@pytest.mark.parametrize("answer", [Answer(503, {}, b"", 0.0), Answer(200, {}, b"", 600.0)], ids=["unready", "late"])
def test_a_server_that_does_not_answer_beside_an_attack_fails(arena, monkeypatch, answer):
    monkeypatch.setattr(arena.server, "health", lambda: answer)
    refuses(arena.beside)


def test_health_that_is_slow_most_of_the_time_fails(arena, monkeypatch):
    monkeypatch.setattr(arena.server, "health", lambda: Answer(200, {}, b"", invariants.HEALTH_S * 2))
    job = Background(arena.run, f"import time; time.sleep({1.5 * PATIENCE})")
    refuses(arena.beside, job, match="/health took")
    job.result()


@pytest.mark.parametrize("neighbour", [("raise SystemExit(1)", ""), ("print(1)", "2\n")])
def test_a_neighbour_that_is_disturbed_fails(arena, neighbour):
    with pytest.raises(AssertionError, match="the neighbour"):
        arena.withstand(Attack("", "print(1)"), neighbour)


@pytest.mark.parametrize("trace", ["print('more')", "import sys; sys.stderr.write('more')", "raise SystemExit(2)"])
def test_a_next_program_that_goes_another_way_fails(arena, monkeypatch, trace):
    monkeypatch.setattr(invariants, "PROBE", invariants.PROBE + trace)
    refuses(arena.probe_is_as_usual)


@pytest.mark.parametrize("touch", [
    lambda p: p.write_text("pwned"), lambda p: p.chmod(0o600), lambda p: os.utime(p),
    lambda p: (p.parent / "beside").touch(), lambda p: os.link(p, p.parent / "linked"),
], ids=["written", "mode", "times", "a file beside it", "a link"])
def test_a_host_file_that_was_touched_fails(arena, canary, touch):
    was = os.stat(canary)
    try:
        touch(canary)
        refuses(arena.canary_is_unchanged, match="touched")
    finally:
        for name in ("beside", "linked"):
            (canary.parent / name).unlink(missing_ok=True)
        canary.write_text(invariants.SECRET)
        canary.chmod(0o666)
        os.utime(canary, ns=(was.st_atime_ns, was.st_mtime_ns))


@pytest.mark.parametrize("line", [
    "a line that is none of ours", "t=2026-01-01T00:00:00.000Z lvl=info proc=front ev=x a=\x1b[2J",
    "t=2026-01-01T00:00:00.000Z lvl=info proc=front ev=x a=\"unescaped \" quote\"",
    "t=2026-01-01T00:00:00.000Z lvl=info proc=front ev=x a=ü", "t=2026-01-01T00:00:00.000Z lvl=info proc=front ev=x " + CANARY,
])
def test_a_log_that_a_program_has_written_into_fails(arena, line):
    arena.log_is_clean()
    os.write(arena.server._log.fileno(), line.encode() + b"\n")
    refuses(arena.log_is_clean)
    arena.log_is_clean()


def test_output_in_the_log_fails(arena, monkeypatch):
    log = arena.server.log
    monkeypatch.setattr(arena.server, "log", lambda: log() + "t=1 lvl=info ev=output text=hello-from-the-program\n")
    refuses(arena.withstand, Attack("", "print('hello-from-the-program')"), match="output is in the log")


# ---- Afterwards ----


def test_every_one_of_them_is_asked_after_an_attack(arena, monkeypatch):
    asked = []
    for name in ("nobody_died", "nothing_is_left", "probe_is_as_usual", "holds_no_more", "canary_is_unchanged", "log_is_clean"):
        monkeypatch.setattr(arena, name, lambda *_, name=name: asked.append(name))
    with arena.unharmed():
        assert not asked
    assert len(asked) == len(set(asked)) == 6
    monkeypatch.undo()


def test_a_broken_arena_is_replaced(canary):
    class Stopped:
        def stop(self):
            stopped.append(self)

    class Fake:
        is_broken, server = False, Stopped()

    stopped, arenas = [], Arenas(canary)
    arenas._arena = first = Fake()
    assert arenas.ready() is first and not stopped
    first.is_broken = True
    try:
        second = arenas.ready()
        assert second is not first and stopped == [first.server]
        second.probe_is_as_usual()
    finally:
        arenas.close()


def test_an_attack_that_does_harm_breaks_the_arena(canary):
    arenas = Arenas(canary)
    arena = arenas.ready()
    try:
        refuses(_harm, arena)
        assert arena.is_broken
    finally:
        arenas.close()


def _harm(arena):
    with arena.unharmed():
        os.write(arena.server._log.fileno(), b"harm\n")
