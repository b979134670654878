"""Threat: a program that never ends, or ends in the worst moment. Answer: the supervisor's deadline, counted by
a clock that no program can set, and SIGKILL; what was written until then is kept."""
import re
import subprocess

import pytest

from corpus import TIMEOUT, Attack, failed, killed_by
from harness.background import Background
from harness.poll import PATIENCE
from harness.server import PROGRAM


def idle(reply):
    # Starting takes some; who spins takes 0.6 s and more.
    assert reply["usage"]["cpu_ms"] < 250 * PATIENCE, reply["usage"]


def hang(name, code, check=idle, **more):
    return Attack(name, "print('on', flush=True)\n" + code, TIMEOUT, "on\n", check=check, timeout=0.6, **more)


HANGS = [
    hang("sleep", "import time; time.sleep(3600)"),
    hang("sleep for ever", "import time\ntime.sleep(2 ** 31)"),
    hang("waiting for a signal", "import signal; signal.pthread_sigmask(0, range(1, 65)); signal.sigwait([10])"),
    hang("a FIFO that nobody opens", "import os; os.mkfifo('f'); open('f')"),
    hang("a pipe of its own", "import os; r, w = os.pipe(); os.read(r, 1)"),
    hang("a full pipe of its own", "import os; r, w = os.pipe(); os.write(w, bytes(1 << 20))"),
    hang("a thread that never ends", "import threading, time; threading.Thread(target=time.sleep, args=(3600,)).start()"),
    hang("threads that wait for each other", "import threading\na, b = threading.Lock(), threading.Lock(); a.acquire(); b.acquire()\n"
           "t = threading.Thread(target=a.acquire); t.start(); b.acquire()"),
    hang("a child that never ends", "import os, time\nos.fork() or time.sleep(3600)\nos.wait()"),
    hang("children that wait for each other", "import os\nr, w = os.pipe()\nfor _ in range(5): os.fork()\nos.read(r, 1)"),
    hang("a lock on a file that its child has", "import fcntl, os, time\nf = open('l', 'w'); fcntl.lockf(f, fcntl.LOCK_EX)\n"
           "if os.fork() == 0: fcntl.lockf(open('l', 'w'), fcntl.LOCK_EX)\nos.wait()"),
    hang("a connection that nobody makes", "import socket; socket.create_server(('127.0.0.1', 0)).accept()"),
    hang("a connection that nobody takes", "import socket\ns = socket.socket(); s.bind(('127.0.0.1', 0)); s.listen(0)\n"
           "k = [socket.create_connection(s.getsockname()) for _ in range(9)]"),
    hang("events that never come", "import selectors; s = selectors.DefaultSelector(); import os; s.register(os.eventfd(0), 1); s.select()"),
    hang("a queue that stays empty", "import queue; queue.Queue().get()"),
    hang("an event loop without events", "import asyncio; asyncio.new_event_loop().run_forever()", check=None),
    hang("a process in the kernel for long", "import os\nz, n = os.open('/dev/zero', 0), os.open('/dev/null', 1)\nwhile 1: os.sendfile(n, z, 0, 1 << 40)",
           check=None),
    hang("one long call", "import os\nf = os.open('/dev/urandom', 0)\nwhile 1: os.readv(f, [bytearray(1 << 20)] * 900)", check=None),
    hang("a file without an end, copied", "import os\nf = os.open('s', os.O_CREAT | os.O_RDWR); os.truncate(f, 100 << 20); n = os.open('/dev/null', 1)\n"
           "while 1: os.sendfile(n, f, 0, 100 << 20)", check=None),
    hang("an exit that waits", "import threading, time, sys\nt = threading.Thread(target=time.sleep, args=(3600,)); t.start(); sys.exit(3)"),
    hang("a debugger that asks", "import os, pdb, sys; os.dup2(os.pipe()[0], 0); pdb.Pdb(stdout=open('/dev/null', 'w')).set_trace(); x = 1"),
]

DEADLINE = [
    Attack("output right up to it", "import time\nn = 0\nwhile 1: print(n, flush=True); n += 1; time.sleep(.01)", TIMEOUT, re.compile(r"0\n1\n2\n(\d+\n){17,}\d*"),
           timeout=1),
    Attack("half a line", "import sys, time\nsys.stdout.write('half'); sys.stdout.flush(); sys.stderr.write('and half'); time.sleep(60)", TIMEOUT, "half",
           "and half", timeout=0.6),
    Attack("half a character", "import os, time\nos.write(1, '\u20ac'.encode()[:2]); time.sleep(60)", TIMEOUT, "\ufffd", timeout=0.6),
    Attack("text that was never flushed", "import sys, time\nsys.stdout = open(1, 'w', buffering=1 << 16, closefd=False)\nprint('lost'); time.sleep(60)", TIMEOUT,
           "", timeout=0.6),
    Attack("a program that ends just before", "import time\ntime.sleep(.45); print('in time')", says="in time\n", timeout=5, times=2),
    Attack("the shortest that there is", "while 1: pass", TIMEOUT, timeout=0.001, times=3),
    Attack("a clock that is set back", "import time\nfor c in (time.CLOCK_REALTIME, time.CLOCK_MONOTONIC):\n  try: time.clock_settime(c, 0); print('SET')\n"
           "  except OSError as e: print(e.errno, flush=True)\ntime.sleep(60)",
           TIMEOUT, "1\n1\n", timeout=0.6),
    Attack("a timer that wakes it again and again", "import signal, time\nsignal.signal(14, lambda *a: None); signal.setitimer(0, .001, .001)\n"
           "while 1: time.sleep(60)", TIMEOUT, timeout=0.6),
    Attack("threads that are made until the end", "import threading\nwhile 1:\n  t = threading.Thread(target=int); t.start(); t.join()", TIMEOUT, timeout=0.6),
]

CRASHES = [
    Attack("in the middle of output", "import os\nos.write(1, b'partial'); os.abort()", killed_by("SIGABRT"), "partial"),
    Attack("in the middle of much output", "import os\nfor _ in range(40): os.write(1, b'x' * 65536)\nos.kill(os.getpid(), 11)", killed_by("SIGSEGV"),
           re.compile("x{1048576}")),
    Attack("after a byte on each stream", "import os\nos.write(2, b'e'); os.write(1, b'o'); os._exit(7)", failed(7), "o", "e"),
    Attack("with a thread that writes", "import os, threading, time\ndef f():\n  while 1: os.write(1, b'y')\n"
           "threading.Thread(target=f).start(); time.sleep(.1); os.kill(os.getpid(), 6)", killed_by("SIGABRT"), re.compile("y+")),
]

INPUT = [
    Attack("read to its end", "import sys\nprint(repr(sys.stdin.read()))\ntry: input()\nexcept EOFError: print('end')", says="''\nend\n"),
    Attack("no way to wait", "import os, select\nprint(os.read(0, 9), select.select([0], [], [], 30)[0], os.isatty(0))", says="b'' [0] False\n"),
    Attack("no way to write", "import os\nfor f in (lambda: os.write(0, b'x'), lambda: os.ftruncate(0, 0), lambda: os.fchmod(0, 0o777)):\n  try: f(); print('GOT')\n"
           "  except OSError as e: print('no')", says="no\nno\nno\n"),
    Attack("opened anew", "import os\nf = os.open('/dev/stdin', 0); print(os.read(f, 1)); os.close(0); print(repr(open(0).read()) if os.open('/dev/null', "
           "0) == 0 else '')", says="b''\n''\n"),
]


@pytest.mark.parametrize("attack", HANGS, ids=str)
def test_a_hang_ends_at_the_deadline(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", DEADLINE, ids=str)
def test_output_right_up_to_the_deadline_is_kept(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", CRASHES, ids=str)
def test_what_was_written_before_a_crash_is_kept(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", INPUT, ids=str)
def test_stdin_is_at_its_end_and_not_a_way_to_wait(attack, arena):
    arena.withstand(attack)


def test_much_input_that_nobody_reads_holds_nothing_up(tmp_path):
    """Of the command only: a request has no input."""
    (tmp_path / "input").write_bytes(b"i" * (8 << 20))
    for code, said in (("print('ignored')", b"ignored\n"), ("import os; print(os.read(0, 3)); os.close(0)", b"b'iii'\n"),
           ("import sys; print(len(sys.stdin.buffer.read()))", b"8388608\n"),
                       ("import os\ntry: os.write(0, b'x'); print('GOT')\nexcept OSError: print('no')", b"no\n")):
        (tmp_path / "main.py").write_text(code)
        r = subprocess.run([PROGRAM, "run", "--timeout", "20", "--stdin", tmp_path / "input", tmp_path / "main.py"], stdin=subprocess.DEVNULL, capture_output=True,
                           timeout=120, env={})
        assert (r.returncode, r.stdout, r.stderr) == (0, said, b"")
    assert (tmp_path / "input").stat().st_size == 8 << 20


def test_hanging_runs_do_not_hold_up_others_beyond_their_deadlines(arena):
    """Twice as many as may run: the second half waits for the first, and a visitor behind them all."""
    hangs = [Background(arena.ask, {"code": "import time; time.sleep(3600)", "timeout_seconds": 1}) for _ in range(8)]
    assert arena.run("print('served')").stdout == "served\n"
    assert [h.result().status for h in hangs] == ["timeout"] * 8


def test_five_hundred_quick_runs_leave_nothing(arena):
    """One after another, and then as many at once as the queue takes; the fixture counts what is left."""
    def one(n):
        r = arena.run(f"print({n})")
        assert r.stdout == f"{n}\n"

    def some(numbers):
        for n in numbers:
            one(n)

    some(range(250))
    jobs = [Background(some, range(k, 500, 50)) for k in range(50)]
    for job in jobs:
        job.result()
