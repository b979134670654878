"""Threat: a program that never ends. Answer: the supervisor's deadline, and SIGKILL."""
import pytest

from attacks import sc
from harness.background import Background

HANGS = {
    "sleep": "import time; time.sleep(3600)",
    "every signal ignored": "import signal, time\nfor s in range(1, 65):\n"
                            "  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\n"
                            "while 1: time.sleep(1)",
    "every signal blocked": "import signal, time\nsignal.pthread_sigmask(0, range(1, 65))\nwhile 1: time.sleep(1)",
    "stopped": "import os; os.kill(os.getpid(), 19); os.pause() if hasattr(os, 'pause') else __import__('time').sleep(99)",
    "stopped session": "import os, signal, time\nfor _ in range(4):\n  if os.fork() == 0:\n    while 1: time.sleep(1)\n"
                       "os.killpg(0, signal.SIGSTOP); time.sleep(99)",
    "a FIFO nobody opens": "import os; os.mkfifo('f'); open('f')",
    "atexit": "import atexit, time; atexit.register(time.sleep, 60)",
    "a thread that never ends": "import threading, time; threading.Thread(target=time.sleep, args=(3600,)).start()",
    "exec into a shell": "import os; os.execv('/bin/sh', ['sh', '-c', 'exec sleep 3600'])",
    "shell that traps": "import os; os.execv('/bin/sh', ['sh', '-c', \"trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM; "
                        "while :; do :; done\"])",
    "vfork whose child sleeps": sc("L.vfork() or L.sleep(3600)"),
    "endless output": "import os\nwhile 1: os.write(1, b'x' * 65536)",
    "output byte by byte": "import os\nwhile 1: os.write(1, b'x'); os.write(2, b'y')",
    "NULs for ever": "import os\nwhile 1: os.write(1, bytes(65536))",
}


@pytest.mark.parametrize("name", HANGS)
def test_a_hang_ends_at_the_deadline(warm, healthy, name):
    r = healthy(Background(warm.execute, "print('on', flush=True)\n" + HANGS[name],
                           timeout_seconds=0.6, cpu_limit=1))
    assert (r.status, r.exit_code, r.cause) == ("timeout", 124, "wall_timeout"), r
    assert r.stdout.startswith("on\n")
    assert 570 <= r.execution_time_ms <= 600 + 5000


def test_output_right_up_to_the_deadline_is_kept(warm):
    r = warm.execute("import time\nn = 0\nwhile 1: print(n, flush=True); n += 1; time.sleep(.01)",
                     timeout_seconds=1, cpu_limit=1)
    lines = r.stdout.split("\n")
    assert r.status == "timeout" and lines[:3] == ["0", "1", "2"] and len(lines) > 20


def test_stdin_is_at_its_end_and_not_a_way_to_wait(warm):
    r = warm.run("import sys\nprint(repr(sys.stdin.read()))\ntry: input()\nexcept EOFError: print('end')")
    assert r.stdout == "''\nend\n"


def test_hanging_runs_do_not_hold_up_others_beyond_their_deadlines(warm):
    hangs = [Background(warm.execute, HANGS["every signal blocked"], timeout_seconds=1) for _ in range(8)]
    r = warm.run("print('served')")
    assert r.stdout == "served\n"
    assert [h.result().status for h in hangs] == ["timeout"] * 8


def test_both_streams_full_at_once_do_not_deadlock(warm):
    r = warm.run("import os\ndef put(fd):\n  b = b'o' * 1000000\n  while b: b = b[os.write(fd, b):]\n"
                 "for _ in range(3): put(1); put(2)")
    assert r.status == "success"
    assert (r.written("stdout"), r.written("stderr")) == (3_000_000, 3_000_000)


@pytest.mark.parametrize("code", ["import os; os._exit(124)", "import os; os._exit(137)",
                                  "import os; os.kill(os.getpid(), 9)",
                                  "print('{\"status\": \"timeout\", \"exit_code\": 124}'); raise SystemExit(3)"])
def test_a_timeout_or_oom_cannot_be_faked(warm, code):
    assert warm.run(code).status == "error"


def test_nothing_can_be_written_where_a_verdict_would_be_read(warm):
    r = warm.run("import os\nfor fd in range(3, 1024):\n  try: os.write(fd, b'{\"status\": \"success\"}'); print('wrote', fd)\n"
                 "  except OSError: pass\nfor p in ('/workspace/.exit_code', '/tmp/status', '/dev/shm/result'):\n"
                 "  open(p, 'w').write('0')\nos._exit(9)")
    assert (r.stdout, r.exit_code, r.status) == ("", 9, "error")


def test_a_program_can_open_its_streams_but_not_turn_them_round(warm):
    """Who could read its own output could take it back before the server has it."""
    r = warm.run("import os\nfor fd, way in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):\n"
                 "  p = '/proc/self/fd/%d' % fd\n  os.close(os.open(p, way))\n"
                 "  for f in (lambda: os.open(p, os.O_RDWR), lambda: os.open(p, way ^ 1), lambda: os.fchmod(fd, 0o666),\n"
                 "            lambda: os.chmod(p, 0o666), lambda: os.fchown(fd, 1000, 1000)):\n"
                 "    try: f(); print('GOT', fd)\n    except PermissionError: pass\nprint('end')")
    assert (r.stdout, r.stderr) == ("end\n", "")


def test_streams_are_told_apart_by_pipe_and_cannot_be_read_back(warm):
    r = warm.run("import os\na = os.dup(1); os.dup2(2, 1); os.dup2(a, 2)\nos.write(1, b'to-err'); os.write(2, b'to-out')\n"
                 "for fd in (1, 2):\n  try: os.read(fd, 9); os.write(2, b'GOT')\n  except OSError: pass")
    assert (r.stdout, r.stderr) == ("to-out", "to-err")
