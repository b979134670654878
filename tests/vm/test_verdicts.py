"""`glovebox doctor` and `glovebox run` where all limits are cgroup v2's."""
import json
import os
import signal
import subprocess

import pytest

from conftest import instances
from harness import census
from harness.cli import glovebox
from harness.poll import wait_for
from harness.server import PROGRAM

SLOW = ("--timeout", "120", "--cpu", "1")  # for programs that are not about time


def run(code, *flags):
    return glovebox("run", *flags, "-", input=code, timeout=400)


def told(code, *flags):
    """The answer in JSON."""
    return json.loads(run(code, *flags, "--json").stdout)


def test_doctor_finds_every_layer_in_force():
    done = glovebox("doctor", "--json", timeout=400)
    report = json.loads(done.stdout)
    assert done.returncode == 0, report
    assert report["layers"] and all(layer["in_force"] for layer in report["layers"]), report


def test_a_program_ends_with_its_own_output_and_exit_code():
    done = run("import sys; print(6 * 7); sys.stderr.write('warned'); sys.exit(3)", *SLOW)
    assert (done.returncode, done.stdout, done.stderr) == (3, b"42\n", b"warned")


def test_a_program_that_does_not_end_is_124():
    done = run("print('begun', flush=True)\nwhile True: pass", "--timeout", "6", "--cpu", "1")
    assert (done.returncode, done.stdout) == (124, b"begun\n")


EAT = "b = []\nwhile True: b.append(bytearray(b'x' * (1 << 20)))"


@pytest.mark.parametrize("code", [
    EAT,
    "import os\nif os.fork() == 0:\n  " + EAT.replace("\n", "\n  ") + "\nos.wait()",
    "import os\nfor _ in range(6):\n  if os.fork() == 0: b = bytearray(b'x' * (14 << 20)); os.read(os.pipe()[0], 1)\n"
    "for _ in range(6): os.wait()",
], ids=["by main", "by a child", "by children together"])
def test_more_memory_than_allowed_is_137(code):
    answer = told(code, *SLOW, "--memory", "64")
    assert (answer["status"], answer["exit_code"], answer["cause"]) == \
        ("memory_exceeded", 137, "oom_kill"), answer
    assert answer["usage"]["oom_kills"] >= 1
    assert 50 < answer["memory_used_mb"] <= 64
    assert answer["isolation"]["cgroup"] == "v2"


def test_processes_over_the_limit_are_refused_and_counted():
    answer = told("import os, time\nn = 1\ntry:\n  while True:\n"
                  "    if os.fork() == 0: time.sleep(600)\n    n += 1\n"
                  "except OSError as e: print(n, e.errno)", *SLOW, "--pids", "8", "--memory", "200")
    assert (answer["status"], answer["stdout"]) == ("success", "8 11\n"), answer
    assert answer["usage"]["pids_refused"] == 1


def test_the_processor_is_shared_out():
    answer = told("import time\nwhile time.process_time() < 1: pass", "--timeout", "120",
                  "--cpu", "0.2")
    assert answer["status"] == "success", answer
    usage = answer["usage"]
    used_ms = usage["cpu_ms"]
    assert used_ms >= 1000 and usage["throttled_ms"] > 0
    # The last period may be begun with a full quota; never more than a third of a processor.
    assert used_ms < answer["execution_time_ms"] / 3, answer


FAMILY = ("import os, time\nfor _ in range(3):\n  if os.fork() == 0: os.setsid(); time.sleep(600)\n"
          "print('up', flush=True)\ntime.sleep(600)")


def cell_programs():
    return census.program_processes(2_000_000)


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_killing_the_command_kills_the_program_and_leaves_nothing(sig):
    with subprocess.Popen([PROGRAM, "run", *SLOW, "-"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE) as p:
        p.stdin.write(FAMILY.encode())
        p.stdin.close()
        assert p.stdout.readline() == b"up\n"
        assert len(cell_programs()) == 4
        p.send_signal(sig)
        p.wait(400)
    wait_for("the program's processes to go", lambda: not cell_programs())
    wait_for("the groups to go", lambda: not instances())


def test_killing_the_supervisor_kills_the_program_and_the_next_start_sweeps():
    with subprocess.Popen([PROGRAM, "run", *SLOW, "-"], stdin=subprocess.PIPE,
                          stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as p:
        p.stdin.write(FAMILY.encode())
        p.stdin.close()
        assert p.stdout.readline() == b"up\n"
        (supervisor,) = census.role_pids(p.pid, "supervisor")
        os.kill(supervisor, signal.SIGKILL)
        assert p.wait(400) == 125
    wait_for("the program's processes to go", lambda: not cell_programs())
    assert instances(), "somebody cleaned up after a dead supervisor"
    assert run("print(1)", *SLOW).stdout == b"1\n"
    assert not instances()
