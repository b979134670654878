"""Threat: taking all CPU time, or more than one's turn. Answer: the bandwidth quota and the CPU-time
budget, counted by the control group, and no right to priorities."""
import re

import pytest

from corpus import CPU_TIMEOUT, TIMEOUT, Attack, all_refused

QUOTA = 0.2
# One quota period (100 ms) more than its share, what the kernel lets pass on each CPU, and the end.
SLACK_MS = 150


def within_its_quota(reply):
    quota = reply["limits"]["cpu_limit"]
    assert reply["usage"]["cpu_ms"] <= quota * reply.execution_time_ms + SLACK_MS, reply["usage"]


def is_counted(reply):
    """By a clock, not by samples: who sleeps whenever they are taken is seen all the same."""
    within_its_quota(reply)
    assert reply["usage"]["cpu_ms"] >= 0.4 * QUOTA * reply.execution_time_ms, reply["usage"]


def hog(name, code, check=within_its_quota, **more):
    return Attack(name, code, TIMEOUT, check=check, timeout=1.2, cpu=QUOTA, **more)


CHILDREN_THAT_END = ("import os\nwhile 1:\n  if os.fork() == 0:\n    for _ in range(10 ** 5): pass\n    os._exit(0)\n"
                     "  os.wait()")
THREADS = "import threading\ndef f():\n  while 1: pass\nfor _ in range(20): threading.Thread(target=f).start()"

HOGS = [
    hog("busy loop", "while 1: pass"),
    hog("busy threads", THREADS),
    hog("busy processes", "import os\nfor _ in range(10): os.fork() or exec('while 1: pass')\nwhile 1: pass"),
    hog("bursts between sleeps", "import time\nwhile 1:\n  t = time.perf_counter()\n"
        "  while time.perf_counter() - t < .009: pass\n  time.sleep(.001)", is_counted),
    hog("children that end", CHILDREN_THAT_END, is_counted),
    # In C, where no handler of Python's would ever run.
    hog("a number of 40 million digits", "print(len(str(9 ** 9 ** 8)))"),
    hog("a regular expression that goes back and back", "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')"),
    hog("system calls", "import os\nwhile 1: os.getppid()"),
    hog("faults", "import mmap\nwhile 1:\n  m = mmap.mmap(-1, 8 << 20)\n  for i in range(0, 8 << 20, 4096): m[i] = 1\n  m.close()"),
]

BUDGETS = [
    Attack("one process", "while 1: pass", CPU_TIMEOUT, cpu_time=0.4, timeout=60),
    # getrusage() of one child would miss them.
    Attack("children that end", CHILDREN_THAT_END, CPU_TIMEOUT, cpu_time=1, timeout=60,
           check=lambda r: pytest.fail(str(r)) if r["usage"]["cpu_ms"] > 4000 else None),
    Attack("children that nobody waits for", "import os\nfor _ in range(4):\n  if os.fork() == 0:\n    if os.fork(): os._exit(0)\n"
           "    while 1: pass\nimport time; time.sleep(99)", CPU_TIMEOUT, cpu_time=0.6, timeout=60),
    Attack("threads", THREADS, CPU_TIMEOUT, cpu_time=0.6, timeout=60),
]

RIGHTS = [
    Attack("priority", "import os\nfor f in (lambda: os.nice(-20), lambda: os.setpriority(os.PRIO_PROCESS, 0, -20),\n"
           "          lambda: os.setpriority(os.PRIO_PGRP, 0, -1), lambda: os.setpriority(os.PRIO_USER, 0, -1)):\n"
           "  try: f(); print('GOT')\n  except PermissionError: print('no')", says="no\n" * 4),
    Attack("priority, let go and taken back", "import os\nos.nice(5)\ntry: os.nice(-5); print('GOT')\nexcept PermissionError: print(os.nice(0))",
           says="5\n"),
    Attack("real-time classes", "p = ctypes.c_int(50)\nd = ctypes.create_string_buffer(b'\\x30\\0\\0\\0\\6' + b'\\0' * 43)\n"
           "print(sc(144, 0, 1, ctypes.byref(p)), sc(144, 0, 2, ctypes.byref(p)), sc(142, 0, ctypes.byref(p)), sc(314, 0, d, 0))",
           check=all_refused, calls=True),
    Attack("input and output priority", "print(sc(251, 1, 0, 1 << 13), sc(251, 1, 0, 2 << 13))", check=all_refused, calls=True),
    Attack("other processors", "import os\nfirst = os.sched_getaffinity(0)\n"
           "for s in (range(1024), {0}, {max(first)}):\n  try: os.sched_setaffinity(0, s); print('GOT')\n  except PermissionError: print('no')\n"
           "print(os.sched_getaffinity(0) == first)", says=re.compile("no\nno\nno\nTrue\n")),
]


@pytest.mark.parametrize("attack", HOGS, ids=str)
def test_a_hog_stays_within_its_quota(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", BUDGETS, ids=str)
def test_the_cpu_time_budget_counts_every_process(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", RIGHTS, ids=str)
def test_a_turn_of_ones_own_cannot_be_had(attack, arena):
    arena.withstand(attack)


def test_many_processes_share_one_small_quota(arena):
    arena.withstand(Attack("", "import os\nfor _ in range(3): os.fork()\nwhile 1: pass", TIMEOUT, check=within_its_quota,
                           timeout=2, cpu=0.1))


def test_throttling_is_counted(arena):
    r = arena.withstand(Attack("", "while 1: pass", TIMEOUT, timeout=1, cpu=0.05))
    assert r["usage"]["throttled_ms"] > 200


def test_a_neighbour_finishes_beside_many_hogs(arena):
    """The one that withstand() runs beside each attack, and here beside as many as it can."""
    arena.withstand(Attack("", THREADS, TIMEOUT, timeout=1.5, memory=64, cpu=QUOTA, at_once=3))
