"""Threat: filling the process table. Answer: the pids limit, 32 tasks by default, which counts threads
and zombies, and the whole control group killed at the end."""
import pytest

from corpus import SUCCESS, TIMEOUT, Attack, all_refused, failed, shell

# However it ends: it may notice that it is refused, or not.
ANY = (SUCCESS, TIMEOUT, failed(1), failed(2))


def refused(reply):
    assert reply["usage"]["pids_refused"] > 0, reply
    assert any("pids_limit" in w for w in reply["warnings"]), reply["warnings"]


def bomb(name, code, verdict=ANY, check=refused, **more):
    return Attack(name, code, verdict, check=check, timeout=1.2, **more)


FORK_LOOP = "import os\nwhile 1:\n  try: os.fork()\n  except OSError: pass"

BOMBS = [
    bomb("fork loop", FORK_LOOP, TIMEOUT),
    bomb("fork until it fails", "import os\nwhile 1: os.fork()"),
    bomb("shell", shell("b() { b | b & }; b; sleep 60")),
    bomb("shell, without an end", shell("b() { b | b & b; }; b"), (*ANY, failed(254), failed(255))),
    bomb("threads that make processes", "import threading, os\ndef f():\n  while 1:\n    try:\n      if os.fork() == 0: f()\n"
         "    except OSError: pass\nfor _ in range(4): threading.Thread(target=f).start()"),
    bomb("processes in new sessions", "import os\nwhile 1:\n  try:\n    if os.fork() == 0: os.setsid()\n  except OSError: pass"),
    bomb("children that end and are replaced", "import os\nfor _ in range(4): os.fork()\nwhile 1:\n"
         "  try:\n    if os.fork() == 0: os._exit(0)\n  except OSError: os.wait()"),
    bomb("vfork and clone", "while 1:\n  for n in (58, 57):\n    if L.syscall(n) == 0: L._exit(0)\n  L.syscall(56, 17, 0, 0, 0, 0)", calls=True),
    # It needs a whole interpreter's start for each step, and is not refused before its deadline.
    bomb("by exec", "import os\nos.fork()\nos.execv('/usr/bin/python3', ['python3', '/workspace/main.py'])", check=None),
]

COUNTED = [
    Attack("threads", "import threading, time\nn = 0\ntry:\n  while 1:\n"
           "    threading.Thread(target=time.sleep, args=(60,), daemon=True).start(); n += 1\n"
           "except RuntimeError: print(n)", says="31\n"),
    Attack("zombies", "import os\nn = 0\ntry:\n  while 1:\n    if os.fork() == 0: os._exit(0)\n    n += 1\n"
           "except OSError as e: print(n, e.errno)", says="31 11\n"),
    Attack("forks whose result is ignored", "n = 0\nwhile n < 200:\n  if L.syscall(57) == 0: L.sleep(60); L._exit(0)\n  n += 1\n"
           "print(n, len([p for p in os.listdir('/proc') if p.isdigit()]))", calls=True, says="200 32\n"),
    Attack("processes of a shell", "import subprocess\nprint(subprocess.run(['sh', '-c', 'for i in $(seq 100); do sleep 60 & done; echo on'],\n"
           "  stdout=-3, stderr=-3).returncode)", says="2\n"),
    Attack("threads and processes together", "import threading, time, os\nfor _ in range(10): threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\n"
           "n = 0\ntry:\n  while 1:\n    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError: print(n)", says="21\n"),
]

NAMESPACES = [
    Attack("new process namespaces", "print(sc(272, 0x20000000), sc(272, 0x10000000), sc(272, 0x30000000), sc(56, 0x20000000 | 17, 0, 0, 0, 0))",
           calls=True, says="EPERM EPERM EPERM EPERM\n"),
    Attack("by a program that makes them", "import subprocess\nfor argv in (['unshare', '-Urpf', 'id'], ['unshare', '-p', 'true']):\n"
           "  print(subprocess.run(argv, capture_output=True).returncode)", says="1\n1\n"),
    Attack("by a call whose flags lie in memory", "a = (ctypes.c_uint64 * 11)(0x20000000, 0, 0, 0, 17)\nprint(sc(435, ctypes.byref(a), 88))",
           check=all_refused, calls=True),
]


@pytest.mark.parametrize("attack", BOMBS, ids=str)
def test_a_bomb_stays_below_the_limit_and_leaves_nothing(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", COUNTED, ids=str)
def test_every_task_counts(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", NAMESPACES, ids=str)
def test_no_namespace_can_be_made_that_counts_anew(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("limit", [1, 2, 32, 100])
def test_the_program_has_exactly_the_tasks_it_asked_for(arena, limit):
    arena.withstand(Attack("", "import os, time\nn = 1\ntry:\n  while True:\n"
                           "    if os.fork() == 0: time.sleep(60)\n    n += 1\nexcept OSError as e: print(n, e.errno)",
                           says=f"{limit} 11\n", pids=limit, memory=512, timeout=30))


def test_a_neighbour_can_fork_during_bombs(arena):
    # Each copy of the interpreter writes to some MB.
    arena.withstand(Attack("", FORK_LOOP, TIMEOUT, check=refused, timeout=1.5, memory=512, at_once=2),
                    ("import subprocess\nprint(subprocess.run(['echo', 'hi'], capture_output=True).stdout)", "b'hi\\n'\n"))
