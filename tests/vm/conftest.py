"""Fixtures for tests in the guest. It is thrown away afterwards, so that they may change
what no test may on a host: groups at the top, /run/systemd, /usr/bin/busctl."""
import os
from pathlib import Path

import pytest

from harness.poll import wait_for
from systemd import Systemd

TOP = Path("/sys/fs/cgroup")


def pytest_configure():
    if os.environ.get("TESTVM") != "1":
        pytest.exit("these tests are for the guest: run tests/vm/check", 2)


def move(pid, group):
    (group / "cgroup.procs").write_text(str(pid))


@pytest.fixture
def crowd():
    """A group that is not the root, with this very process in it beside whatever a test
    starts: an administrator's shell."""
    group = TOP / "crowd"
    group.mkdir()
    move(os.getpid(), group)
    yield group
    move(os.getpid(), TOP)
    wait_for("the group to be empty", lambda: not (group / "cgroup.procs").read_text())
    group.rmdir()


@pytest.fixture
def systemd(crowd):
    """As if systemd were the init; see systemd.py. In a group that it did not delegate."""
    with Systemd() as s:
        yield s


def remove(path):
    try:
        path.rmdir()
    except OSError:
        return False
    return True


@pytest.fixture
def given():
    """A group of the administrator's choice, two levels down; Glovebox makes it."""
    group = TOP / "given" / "cells"
    yield group
    for path in (group, group.parent):
        wait_for("the group to be free", lambda p=path: not p.exists() or remove(p))


def instances():
    """Groups of instances, wherever they are."""
    return [f"{path}/{name}" for path, names, _ in os.walk(TOP) for name in names
            if name.startswith("glovebox.")]


@pytest.fixture(autouse=True)
def no_groups_left():
    """Whatever happened: no instance's group stays."""
    yield
    wait_for("the instances' groups to go", lambda: not instances())
