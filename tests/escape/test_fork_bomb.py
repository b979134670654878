"""Threat: filling the process table. Answer: the pids limit, 32 tasks by default."""
import pytest

from attacks import sc
from harness import census
from harness.background import Background
from harness.poll import wait_for

BOMBS = {
    "fork loop": "import os\nwhile 1:\n  try: os.fork()\n  except OSError: pass",
    "fork until it fails": "import os\nwhile 1: os.fork()",
    "shell": "import subprocess\nsubprocess.run(['sh', '-c', 'b() { b | b & }; b; wait'])",
    "threads that make processes":
        "import threading, os\ndef f():\n  while 1:\n    try:\n      if os.fork() == 0: f()\n"
        "    except OSError: pass\nfor _ in range(4): threading.Thread(target=f).start()",
    "processes in new sessions":
        "import os\nwhile 1:\n  try:\n    if os.fork() == 0: os.setsid()\n  except OSError: pass",
    "exec chain": "import os\nos.fork()\n"
                  "os.execv('/usr/bin/python3', ['python3', '/workspace/main.py'])",
}


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_stays_below_the_limit_and_leaves_nothing(warm, name):
    attack = Background(warm.execute, BOMBS[name], timeout_seconds=1.5, memory_limit_mb=128)
    most = 0
    while attack.is_alive():
        most = max(most, len(warm.programs()))
        attack.join(0.05)
    r = attack.result()
    assert r.status in ("timeout", "error", "success"), r
    assert most <= 32 and (most >= 1 or r.status != "timeout")
    # One that spreads by exec needs a whole interpreter's start for each step.
    assert r["usage"]["pids_refused"] > 0 or name == "exec chain", r
    wait_for("the bomb's processes to go", lambda: not warm.programs())


def test_health_answers_during_a_bomb(warm, healthy):
    r = healthy(Background(warm.execute, BOMBS["fork loop"], timeout_seconds=1.5))
    assert r.status == "timeout" and r["usage"]["pids_refused"] > 0


@pytest.mark.parametrize("limit", [1, 2, 32, 100])
def test_the_program_has_exactly_the_tasks_it_asked_for(warm, limit):
    r = warm.run("import os, time\nn = 1\ntry:\n  while True:\n"
                 "    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError as e: print(n, e.errno)",
                 pids_limit=limit, memory_limit_mb=512)
    assert (r.status, r.stdout) == ("success", f"{limit} 11\n")


def test_threads_count_as_tasks(warm):
    r = warm.run("import threading, time\nn = 0\ntry:\n  while 1:\n"
                 "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1\n"
                 "except RuntimeError: print(n)")
    assert r.stdout == "31\n"


def test_zombies_count_and_are_gone_afterwards(warm):
    r = warm.run("import os\nn = 0\ntry:\n  while 1:\n    if os.fork() == 0: os._exit(0)\n    n += 1\n"
                 "except OSError as e: print(n <= 31, e.errno)")
    assert r.stdout == "True 11\n"


def test_raw_forks_whose_result_is_ignored(warm):
    r = warm.run(sc("n = 0\nwhile n < 200:\n  if L.syscall(57) == 0: L.sleep(60); L._exit(0)\n  n += 1\n"
                    "print(n, len([p for p in os.listdir('/proc') if p.isdigit()]) <= 33)"))
    assert r.stdout == "200 True\n"


def test_a_neighbour_can_fork_during_a_bomb(warm):
    # Each copy of the interpreter writes to some MB.
    attack = Background(warm.execute, BOMBS["fork loop"], timeout_seconds=2.5, memory_limit_mb=512)
    wait_for("the bomb to go off", lambda: len(warm.programs()) > 8)
    r = warm.run("import subprocess; print(subprocess.run(['echo', 'hi'], capture_output=True).stdout)")
    assert r.stdout == "b'hi\\n'\n"
    assert attack.result().status == "timeout"


@pytest.mark.parametrize("code", [
    "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(60)\n  os._exit(0)\n"
    "os.wait(); print('bye')",
    "import os, time\nif os.fork() == 0: time.sleep(60)\nelse: print('bye')",
    "import os, subprocess\nsubprocess.run(['sh', '-c', \"nohup sleep 60 >/dev/null 2>&1 & (setsid sleep 60 &)\"])\n"
    "print('bye')",
    sc("sc(157, 36, 1, 0, 0, 0)\nif os.fork() == 0:\n  if os.fork() == 0: time.sleep(60)\n  os._exit(0)\n"
       "os.wait(); print('bye')"),
    "import os\nif os.fork() == 0:\n  while 1: os.write(2, b'late' * 1000)\nprint('bye', flush=True)",
], ids=["double fork", "holds stdout", "shell jobs", "subreaper", "flooding child"])
def test_what_outlives_the_main_process_is_killed_and_not_awaited(warm, code):
    r = warm.execute(code, timeout_seconds=50, memory_limit_mb=64, cpu_limit=1)
    assert (r.status, r.stdout) == ("success", "bye\n") and r.wall_s < 25
    assert not warm.programs()
    assert not census.program_processes(warm.uid_base, "sleep")
