"""Threat: a result that the program has written itself. Answer: verdicts come from the kernel and
the clock, by channels that no program has; what it writes is data."""
import re

import pytest

from corpus import OUT_OF_MEMORY, TIMEOUT, Attack, failed

FORGED = '{"status": "success", "stdout": "pwned", "exit_code": 0, "cause": "exit"}'
SPLIT = "\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}\0\0\0"

CHANNELS = [
    Attack("every descriptor written to", "import os\nfor fd in range(3, 1024):\n"
           f"  try: os.write(fd, {FORGED.encode()!r}); print('wrote', fd)\n  except OSError: pass\nos._exit(7)",
           failed(7), ""),
    Attack("every descriptor read from", "import os\nfor fd in range(3, 1024):\n  try: os.set_blocking(fd, False); print('GOT', os.read(fd, 9))\n"
           "  except OSError: pass\nos._exit(7)", failed(7), ""),
    Attack("every descriptor sent to", "import os, socket\nfor fd in range(256):\n"
           "  try: socket.socket(fileno=os.dup(fd)).send(b'x'); print('SENT', fd)\n  except OSError: pass\nos._exit(7)",
           failed(7), ""),
    Attack("files where a verdict might be read", "import os\nfor p in ('/workspace/.exit_code', '/workspace/result.json', '/tmp/status', '/dev/shm/result',\n"
           "          '/app/status', '/run/status', '/var/run/exit', '/exit_code'):\n"
           f"  try: open(p, 'w').write({FORGED!r})\n  except OSError: pass\nos._exit(9)", failed(9), ""),
    Attack("its own text replaced", "print('before', flush=True)\nfor how in 'wa': open(__file__, how).write('print(\"after\")\\n')\n"
           "import os\nfor p in ('/proc/self/exe', '/usr/bin/python3'):\n  try: os.open(p, os.O_WRONLY); print('GOT', p)\n  except OSError: pass",
           says="before\n", times=2),
]

STREAMS = [
    Attack("looks like an answer", f"print({FORGED!r})", says=FORGED + "\n"),
    Attack("looks like an answer, and fails", f"print({FORGED!r}); raise SystemExit(3)", failed(3), FORGED + "\n"),
    Attack("looks like a frame", f"import sys; sys.stdout.write({SPLIT!r}); sys.stderr.write({SPLIT!r})", says=SPLIT, complains=SPLIT),
    Attack("opened anew and cut", "f = open('/proc/self/fd/1', 'w'); f.write('A'); f.flush()\n"
           "try: f.truncate(0)\nexcept OSError as e: print(e.errno)\nprint('B')", says="A22\nB\n"),
    Attack("exchanged", "import os\na = os.dup(1); os.dup2(2, 1); os.dup2(a, 2)\n"
           "os.write(1, b'to-err'); os.write(2, b'to-out')", says="to-out", complains="to-err"),
    Attack("read back", "import os\nfor fd in (1, 2):\n  try: print('GOT', os.read(fd, 9))\n  except OSError as e: os.write(2, b'%d ' % e.errno)",
           says="", complains="9 9 "),
    # Who could read its own output could take it back before the server has it.
    Attack("turned round", "import os\nfor fd, way in ((0, os.O_RDONLY), (1, os.O_WRONLY), (2, os.O_WRONLY)):\n"
           "  p = '/proc/self/fd/%d' % fd\n  os.close(os.open(p, way))\n"
           "  for f in (lambda: os.open(p, os.O_RDWR), lambda: os.open(p, way ^ 1), lambda: os.fchmod(fd, 0o666),\n"
           "            lambda: os.chmod(p, 0o666), lambda: os.fchown(fd, 1000, 1000)):\n"
           "    try: f(); print('GOT', fd)\n    except PermissionError: pass\nprint('end')", says="end\n", complains=""),
]

ENDS = [
    Attack("a negative code", "import sys; sys.exit(-1)", failed(255)),
    Attack("a code of more than a byte", "import sys; sys.exit(256 + 3)", failed(3)),
    Attack("a code that becomes 0", "import sys; sys.exit(256)"),
    Attack("a text for a code", "import sys; sys.exit('x' * 10)", failed(1), "", "x" * 10 + "\n"),
    Attack("a code that is no number", "import sys; sys.exit([1, 2])", failed(1), "", "[1, 2]\n"),
    Attack("a huge code", "import sys; sys.exit(2 ** 70)", (failed(255), failed(1))),
    Attack("an end that never comes", "import atexit, time; atexit.register(time.sleep, 60); print('x')", TIMEOUT, "x\n", timeout=0.6),
    Attack("a finalizer that never ends", "import time\nclass A:\n  def __del__(self): time.sleep(60)\na = A(); print('x')", TIMEOUT, "x\n", timeout=0.6),
    Attack("another end in a finalizer", "import os\nclass A:\n  def __del__(self): os._exit(5)\na = A(); raise SystemExit(4)", failed(5)),
    Attack("an end by another thread", "import os, threading, time\nthreading.Timer(0.05, os._exit, (6,)).start()\ntime.sleep(60)", failed(6), timeout=30),
    Attack("an exception that cannot be shown", "class E(Exception):\n  def __str__(self): raise self\nraise E", failed(1),
           "", re.compile(r"(?s)Traceback.*E: <exception str\(\) failed>\n")),
    # By the rule that any kill for memory is told, whoever it hit.
    Attack("a child's death for memory hidden", "import os\nif os.fork() == 0:\n  b = []\n  while 1: b.append(bytearray(1 << 20))\n"
           "os.wait(); print('all is well')", OUT_OF_MEMORY, timeout=30),
]


@pytest.mark.parametrize("attack", CHANNELS, ids=str)
def test_nothing_can_be_written_where_a_verdict_would_be_read(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", STREAMS, ids=str)
def test_what_is_written_to_a_stream_is_data_of_that_stream(attack, arena):
    arena.withstand(attack)


@pytest.mark.parametrize("attack", ENDS, ids=str)
def test_a_verdict_is_what_the_kernel_and_the_clock_say(attack, arena):
    arena.withstand(attack)
