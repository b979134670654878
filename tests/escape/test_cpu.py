"""Threat: taking all CPU time. Answer: the bandwidth quota and the CPU-time budget."""
import pytest

from attacks import REFUSED, sc
from harness.background import Background

HOGS = {
    "busy loop": "while 1: pass",
    "busy threads": "import threading\ndef f():\n  while 1: pass\n"
                    "for _ in range(20): threading.Thread(target=f).start()",
    "busy processes": "import os\nfor _ in range(10): os.fork() or exec('while 1: pass')\nwhile 1: pass",
    "bursts between sleeps": "import time\nwhile 1:\n  t = time.perf_counter()\n"
                             "  while time.perf_counter() - t < .009: pass\n  time.sleep(.001)",
    "children that exit": "import os\nwhile 1:\n  if os.fork() == 0:\n"
                          "    for _ in range(10 ** 5): pass\n    os._exit(0)\n  os.wait()",
    "C code that never looks up": "print(len(str(9 ** 9 ** 8)))",
    "catastrophic regular expression": "import re\nre.match(r'(a+)+$', 'a' * 40 + 'b')",
}


@pytest.mark.parametrize("name", HOGS)
def test_a_hog_stays_within_its_quota(warm, healthy, name):
    r = healthy(Background(warm.execute, HOGS[name], timeout_seconds=1.5, memory_limit_mb=128,
                           cpu_limit=0.5))
    assert (r.status, r.exit_code, r.cause) == ("timeout", 124, "wall_timeout")
    wall = r.execution_time_ms
    # One quota period (100 ms) more than its share, and the kernel's slack.
    assert r["usage"]["cpu_ms"] <= 0.5 * wall + 400, r["usage"]


def test_many_processes_share_one_small_quota(warm):
    r = warm.execute("import os, time\nfor _ in range(3): os.fork()\n"
                     "while 1: pass", timeout_seconds=1, cpu_limit=0.1)
    assert r["usage"]["cpu_ms"] <= 0.1 * r.execution_time_ms + 300


def test_throttling_is_counted(warm):
    r = warm.execute("while 1: pass", timeout_seconds=1, cpu_limit=0.2)
    assert r["usage"]["throttled_ms"] > 200


def test_the_cpu_time_budget_counts_every_process(warm):
    r = warm.execute(HOGS["children that exit"], timeout_seconds=60, cpu_limit=1,
                     cpu_time_seconds=1)
    assert (r.status, r.cause) == ("timeout", "cpu_timeout")
    assert 900 <= r["usage"]["cpu_ms"] < 4000


def test_a_neighbour_finishes_beside_hogs(warm):
    hogs = [Background(warm.execute, HOGS["busy threads"], timeout_seconds=2, memory_limit_mb=64)
            for _ in range(2)]
    r = warm.run("print(sum(i * i for i in range(100_000)))")
    assert r.stdout == "333328333350000\n"
    assert all(h.result().status == "timeout" for h in hogs)


def test_priority_cannot_be_raised(warm):
    r = warm.run("import os\nfor f in (lambda: os.nice(-20), "
                 "lambda: os.setpriority(os.PRIO_PROCESS, 0, -20)):\n"
                 "  try: f(); print('GOT')\n  except OSError as e: print('no')")
    assert r.stdout == "no\nno\n"


def test_real_time_scheduling_is_refused(warm):
    r = warm.run(sc("p = ctypes.c_int(50)\n"
                    "print(sc(144, 0, 1, ctypes.byref(p)), sc(144, 0, 2, ctypes.byref(p)), sc(314, 0, "
                    "ctypes.create_string_buffer(b'\\x30\\0\\0\\0\\6' + b'\\0' * 43), 0))"))
    assert not set(r.stdout.split()) - set(REFUSED), r.stdout
