"""Threat: outliving the run, or holding up its answer. Answer: the end of the main process ends the
run, and everything in its control group is killed before the answer."""
import pytest

from corpus import TIMEOUT, Attack, failed, shell


def at_once(reply):
    """What was left behind sleeps for ten minutes."""
    assert reply.wall_s < 25, reply.wall_s


def leaves(name, code, says="bye\n", verdict=None, **more):
    more = {"timeout": 50, "check": at_once, **more}
    return Attack(name, code, **({"verdict": verdict} if verdict else {}), says=says, **more)


LEFT = [
    leaves("a double fork", "import os, time\nif os.fork() == 0:\n  os.setsid()\n  if os.fork() == 0: time.sleep(600)\n  os._exit(0)\n"
           "os.wait(); print('bye')"),
    leaves("a child that holds the streams", "import os, time\nif os.fork() == 0: time.sleep(600)\nelse: print('bye')"),
    leaves("jobs of a shell", shell("nohup sleep 600 >/dev/null 2>&1 & (setsid sleep 600 &) ; nohup sh -c 'while :; do sleep 1; done' &\necho bye"),
           complains=None),
    leaves("a subreaper's grandchild", "sc(157, 36, 1, 0, 0, 0)\nif os.fork() == 0:\n  if os.fork() == 0: time.sleep(600)\n  os._exit(0)\n"
           "os.wait(); print('bye')", calls=True),
    leaves("a child that floods stderr", "import os\nif os.fork() == 0:\n  while 1: os.write(2, b'late' * 1000)\nprint('bye', flush=True)"),
    leaves("another process group", "import os, time\nif os.fork() == 0:\n  os.setpgid(0, 0)\n  while 1: time.sleep(1)\nprint('bye')"),
    leaves("thirty of them", "import os, time\nfor _ in range(30):\n  if os.fork() == 0:\n    os.setsid(); time.sleep(600)\nprint('bye')"),
    leaves("stopped children", "import os, signal\nfor _ in range(5):\n  if os.fork() == 0: os.kill(os.getpid(), signal.SIGSTOP)\n"
           "for _ in range(5): os.waitpid(-1, os.WUNTRACED)\nprint('bye')"),
    leaves("children that ignore every signal", "import os, signal, time\nfor _ in range(5):\n  if os.fork() == 0:\n"
           "    for s in range(1, 32):\n      if s not in (9, 19): signal.signal(s, signal.SIG_IGN)\n    time.sleep(600)\nprint('bye')"),
    leaves("threads that run on", "import threading, time, os\nthreading.Thread(target=time.sleep, args=(600,)).start(); print('bye', flush=True); os._exit(3)",
           verdict=failed(3)),
    leaves("children that go on forking", "import os\nif os.fork() == 0:\n  while 1:\n    try: os.fork()\n    except OSError: pass\n"
           "import time; time.sleep(.2); print('bye', flush=True); os._exit(0)"),
    leaves("children in a vfork", "if os.fork() == 0:\n  L.vfork() or L.sleep(600)\nprint('bye')", calls=True),
    leaves("a chain of orphans", "import os, time\nr, w = os.pipe()\nif os.fork() == 0:\n  for _ in range(200):\n    if os.fork(): os._exit(0)\n"
           "  os.write(w, b'x'); time.sleep(600)\nos.read(r, 1); print('bye')"),
]

MAINS = [
    Attack("exec into a shell", "import os; os.execv('/bin/sh', ['sh', '-c', 'exec sleep 600'])", TIMEOUT, timeout=0.6),
    Attack("a chain of execs", "import os\nos.execv('/usr/bin/python3', ['python3', '-c', 'import os; os.execv(\"/bin/sh\", [\"sh\", \"-c\", \"exec sleep 600\"])'])",
           TIMEOUT, timeout=0.8),
    Attack("exec by a thread", "import os, threading, time\nthreading.Thread(target=os.execv, args=('/bin/sh', ['sh', '-c', 'echo as main; exit 6'])).start()\n"
           "time.sleep(60)", failed(6), "as main\n", timeout=30),
    Attack("vfork whose child sleeps", "L.vfork() or L.sleep(600)", TIMEOUT, timeout=0.6, calls=True),
    Attack("its main thread ends first", "import threading, time\ndef f():\n  time.sleep(.3); print('last', flush=True); os._exit(7)\n"
           "threading.Thread(target=f).start()\nL.syscall(60, 0)", failed(7), "last\n", timeout=30, calls=True),
    # By CLONE_PARENT the supervisor would have a child that it does not know.
    Attack("a child for its reaper", "r = [sc(56, 0x8000 | f | 17, 0, 0, 0, 0) for f in (0, 0x4000, 0x200000)]\n"
           "if 0 in r: os._exit(0)\nprint(*r); raise SystemExit(3)", failed(3), "EPERM EPERM EPERM\n", calls=True),
    Attack("helpers that change the user", "import subprocess, os\nfor c in (['su', '-c', 'id'], ['sudo', 'id'], ['passwd'], ['newgrp'], ['pkexec', 'id']):\n"
           "  try: r = subprocess.run(c, capture_output=True, timeout=5, stdin=subprocess.DEVNULL)\n"
           "  except (OSError, subprocess.TimeoutExpired): continue\n  if b'uid=0' in r.stdout: print('GOT', c)\n"
           "print(os.getresuid())", says="(1000, 1000, 1000)\n", timeout=40),
]


@pytest.mark.parametrize("attack", LEFT, ids=str)
def test_what_outlives_the_main_process_is_killed_and_not_awaited(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", MAINS, ids=str)
def test_the_main_process_stays_the_one_that_is_judged(attack, arena):
    arena.withstand(attack)
