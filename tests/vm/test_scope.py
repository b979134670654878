"""Under systemd, in a group that it did not delegate: a scope is asked for."""
import os
import time
from pathlib import Path

import pytest

from harness import census
from harness.cli import glovebox
from harness.poll import wait_for
from test_serve import check_service, finish, group_of

SLOW = ("--timeout", "120", "--cpu", "1")
REMEDIES = ("systemd-run --scope -p Delegate=yes", "--cgroup PATH", "Delegate=yes")


@pytest.fixture
def evil(tmp_path):
    """An environment that would have another busctl run."""
    mark = tmp_path / "ran"
    other = tmp_path / "busctl"
    other.write_text(f"#!/bin/sh\ntouch {mark}\nexit 0\n")
    other.chmod(0o755)
    yield {"PATH": f"{tmp_path}:/usr/bin:/bin", "GLOVEBOX_BUSCTL": str(other)}
    assert not mark.exists()


def run(*flags, **kw):
    return glovebox("run", *SLOW, *flags, "-", input="print(6 * 7)", timeout=400, **kw)


def test_a_server_gets_its_scope_and_leaves_it_empty(systemd, serve, evil):
    s = serve(env=evil)
    (scope,) = systemd.scopes
    assert scope.name == f"glovebox-{s.pid}.scope"
    (group,) = s.groups
    assert Path(group).parent == scope
    assert group_of(s.pid) == f"/system.slice/{scope.name}/{Path(group).name}/supervisor"
    assert group_of(os.getpid()) == "/crowd"
    assert systemd.environment == b""
    check_service(s)
    finish(s)
    wait_for("the scope to be empty and removed", lambda: not scope.exists())


def test_run_and_doctor_get_one_too(systemd, evil):
    done = run(env=evil)
    assert (done.returncode, done.stdout) == (0, b"42\n"), done
    done = glovebox("doctor", env=evil, timeout=400)
    assert done.returncode == 0, done
    assert len(systemd.calls) == 2 and systemd.environment == b""
    wait_for("the scopes to be empty and removed", lambda: not any(s.exists() for s in systemd.scopes))


def must_refuse(done, code, *words):
    text = (done.stdout + done.stderr).decode()
    assert done.returncode == code, done
    for word in (*REMEDIES, *words):
        assert word in text, text


def test_a_refusal_says_why_and_what_to_do(systemd):
    systemd.mode = "refuse"
    must_refuse(run(), 125, "Call failed: Access denied")
    must_refuse(glovebox("serve", "--listen", "127.0.0.1:0", timeout=400), 1, "Access denied")
    must_refuse(glovebox("doctor", timeout=400), 1, "Access denied")


def test_a_busctl_that_hangs_is_given_up_and_ended(systemd):
    systemd.mode = "hang"
    began = time.monotonic()
    must_refuse(run(), 125, "does not answer")
    assert time.monotonic() - began >= 5
    pid = int(Path("/run/fake-systemd/hanging").read_text())
    assert not census.cmdline(pid)


def test_a_scope_that_never_comes_is_given_up(systemd):
    systemd.mode = "forget"
    must_refuse(run(), 125, "no delegated group came of it")
    assert len(systemd.calls) == 1


def test_where_it_is_told_to_go_systemd_is_not_asked(systemd, given):
    done = run("--cgroup", "/given/cells")
    assert (done.returncode, done.stdout) == (0, b"42\n"), done
    assert not systemd.calls and not systemd.scopes


def test_a_host_where_no_systemd_answers_is_refused_with_a_remedy(crowd):
    mark = Path("/run/systemd/system")
    mark.mkdir(parents=True)
    try:
        must_refuse(run(), 125)
    finally:
        mark.rmdir()
