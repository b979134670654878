"""Threat: signals sent to others, or used to look like another end. Answer: a pid namespace whose
first process has another uid, SIGKILL by control group, and a verdict that is made of what the
kernel and the clock say."""
import re

import pytest

from corpus import TIMEOUT, Attack, failed, killed_by, shell

CHILDREN = "import os, signal, time\nfor _ in range(4):\n  if os.fork() == 0:\n    while 1: time.sleep(1)\n"

DEAF = [
    Attack("stopped", "import os, time; os.kill(os.getpid(), 19); time.sleep(99)", TIMEOUT),
    Attack("stopped with its whole session", CHILDREN + "os.killpg(0, signal.SIGSTOP); time.sleep(99)", TIMEOUT),
    Attack("every signal ignored", "import signal, time\nfor s in range(1, 65):\n"
           "  try: signal.signal(s, signal.SIG_IGN)\n  except (OSError, ValueError): pass\nwhile 1: time.sleep(1)", TIMEOUT),
    Attack("every signal blocked", "import signal, time\nsignal.pthread_sigmask(0, range(1, 65))\n"
           "while 1: time.sleep(1)", TIMEOUT),
    Attack("a shell that traps", shell("trap '' HUP INT QUIT TERM USR1 USR2 PIPE ALRM; while :; do :; done"), TIMEOUT),
    Attack("a storm of signals", "import os, signal\nsignal.signal(10, lambda *a: os.kill(os.getpid(), 10))\n"
           "if os.fork() == 0:\n  while 1: os.kill(os.getppid(), 10)\nos.kill(os.getpid(), 10)\nwhile 1: signal.pause()",
           (TIMEOUT, failed(1), killed_by("SIGUSR1"))),
    Attack("handlers that start anew", "import signal, time\nsignal.signal(15, lambda *a: time.sleep(60))\n"
           "signal.raise_signal(15)", TIMEOUT),
]

OTHERS = [
    Attack("everything at once", "import os, signal\ntry: os.kill(-1, signal.SIGKILL); print('SENT')\n"
           "except ProcessLookupError: print('nobody')", says="nobody\n"),
    # Its own children are all that dies.
    Attack("everything, with children", CHILDREN + "os.kill(-1, signal.SIGKILL)\n"
           "print([os.wait()[1] for _ in range(4)])", says="[9, 9, 9, 9]\n"),
    Attack("the init of the cell", "import os\nseen = set()\nfor s in range(1, 65):\n  try: os.kill(1, s); print('SENT', s)\n"
           "  except PermissionError: seen.add(s)\nprint(len(seen)); raise SystemExit(5)", failed(5), "64\n"),
    Attack("the init, by descriptor", "import os, signal\nfd = os.pidfd_open(1)\nfor s in (9, 15, 19):\n"
           "  try: signal.pidfd_send_signal(fd, s); print('SENT', s)\n  except PermissionError: print('no')", says="no\n" * 3),
    Attack("the init, queued", "info = ctypes.create_string_buffer(128)\nctypes.c_int.from_buffer(info, 8).value = -1\n"
           "print(*[sc(129, 1, s, info) for s in (9, 15, 34)], sc(297, 1, 1, 9, info))", calls=True, says="EPERM EPERM EPERM EPERM\n"),
    Attack("any number that another may have", "import os\nseen = []\nfor p in range(2, 5000):\n"
           "  try: os.kill(p, 0); seen.append(p)\n  except ProcessLookupError: pass\n  except PermissionError: print('SEEN', p)\n"
           "print(seen == [os.getpid()])", says="True\n"),
    Attack("groups and sessions that are not its own", "import os, signal\nfor g in [0x7fffffff, *range(2, 400)]:\n"
           "  if g == os.getpgid(0): continue\n  try: os.killpg(g, signal.SIGKILL); print('SENT', g)\n"
           "  except ProcessLookupError: pass\nprint('end')", says="end\n"),
]


def no_oom(reply):
    assert reply["usage"]["oom_kills"] == 0, reply


ENDS = [
    Attack("its own SIGKILL", "import os; os.kill(os.getpid(), 9)", killed_by("SIGKILL"), check=no_oom),
    Attack("SIGKILL by a child", "import os\nif os.fork() == 0: os.kill(os.getppid(), 9); os._exit(0)\nos.wait(); import time; time.sleep(9)",
           killed_by("SIGKILL"), check=no_oom),
    # Near its limit, so that a guess would say out of memory.
    Attack("its own SIGKILL with much memory", "import os; b = b'x' * (100 << 20); os.kill(os.getpid(), 9)",
           killed_by("SIGKILL"), check=no_oom),
    # What a CPU time limit sends.
    Attack("its own SIGXCPU", "import os, signal; os.kill(os.getpid(), signal.SIGXCPU)", killed_by("SIGXCPU"), cpu_time=9),
    Attack("its own SIGSYS", "import os, signal; os.kill(os.getpid(), signal.SIGSYS)", killed_by("SIGSYS")),
    Attack("its own SIGTERM", "import os, signal; os.kill(os.getpid(), signal.SIGTERM)", killed_by("SIGTERM")),
    Attack("its own SIGALRM", "import signal; signal.alarm(1); signal.pause()", killed_by("SIGALRM")),
    Attack("a fault", "import ctypes; ctypes.string_at(0)", killed_by("SIGSEGV")),
    Attack("a fault at its stack's end", "import sys\nsys.setrecursionlimit(10 ** 9)\nx = []\n"
           "for _ in range(300_000): x = [x]\nrepr(x)", killed_by("SIGSEGV"), timeout=30),
    Attack("an abort", "import os; os.abort()", killed_by("SIGABRT")),
    # The kernel notes that it would have written one.
    Attack("a core file", "import os, ctypes\nif os.fork() == 0: ctypes.string_at(0)\ns = os.wait()[1]\n"
           "print(os.WTERMSIG(s), sorted(os.listdir('.')))", says="11 ['main.py']\n"),
    Attack("every deadly signal in a child", "import os, signal\nfor s in (4, 5, 7, 8, 24, 25, 31):\n  p = os.fork()\n"
           "  if p == 0: signal.signal(s, 0); os.kill(os.getpid(), s); os._exit(0)\n"
           "  print(s, os.waitpid(p, 0)[1] & 127)", says="".join(f"{s} {s}\n" for s in (4, 5, 7, 8, 24, 25, 31))),
    Attack("exit 124", "import os; os._exit(124)", failed(124)),
    Attack("exit 137", "import os; os._exit(137)", failed(137)),
    Attack("exit 137 with its memory full", "import os; b = b'x' * (110 << 20); os._exit(137)", failed(137), check=no_oom),
    Attack("exit 124 beside words of a timeout", "print('{\"status\": \"timeout\", \"cause\": \"wall_timeout\"}'); raise SystemExit(124)",
           failed(124)),
]

LOOK = "print(*[l.split()[1] for l in open('/proc/self/status') if l[:6] in ('SigIgn', 'SigBlk')])"
# SIGPIPE and SIGXFSZ, by Python itself. 32 and 33 are the C library's, and out of its reach.
PYTHONS = "0" * 16 + " 0000000001001000\n"

INHERITED = [
    Attack("nothing ignored or blocked", LOOK, says=PYTHONS),
    Attack("nor in its children", f"import subprocess\nprint(end=subprocess.run(['python3', '-c', {LOOK!r}], capture_output=True, text=True).stdout)",
           says=PYTHONS),
    Attack("no handler but Python's", "import signal\nprint(signal.pthread_sigmask(0, []), [s for s in range(1, 65) if s not in (9, 19, 32, 33)\n"
           "  and signal.getsignal(s) not in (0, signal.SIG_DFL, signal.default_int_handler)])", says="set() [13, 25]\n"),
    Attack("nothing waits", "import signal, re\nprint(signal.sigpending(), signal.getitimer(0))\n"
           "print(*[l.split()[1] for l in open('/proc/self/status') if l[:6] in ('SigPnd', 'ShdPnd')])",
           says=re.compile(r"set\(\) \(0\.0, 0\.0\)\n0{16} 0{16}\n")),
]


@pytest.mark.parametrize("attack", DEAF, ids=str)
def test_who_hears_no_signal_ends_at_the_deadline(attack, arena):
    arena.withstand(Attack(**{**vars(attack), "timeout": 0.6}))


@pytest.mark.parametrize("attack", OTHERS, ids=str)
def test_signals_reach_its_own_processes_only(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", ENDS, ids=str)
def test_an_end_is_told_as_what_it_was(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", INHERITED, ids=str)
def test_a_program_begins_with_the_signals_of_an_interpreter(attack, arena):
    arena.withstand(attack)


