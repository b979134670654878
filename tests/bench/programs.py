"""What is run: programs, and exactly what each has to print."""
import subprocess
import time
from dataclasses import dataclass

PYTHON = "/usr/bin/python3"
# What a cell's environment has too, so that all peers start the same interpreter.
ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8",
               "PYTHONUNBUFFERED": "1", "OPENBLAS_NUM_THREADS": "1"}

HELLO = "print('hello')"
LOOP = "s = 0\nfor i in range({n}):\n    s += i * i % 7\nprint(s)\n"
MODULES = """\
import json, re, datetime
rows = [{"id": i, "when": str(datetime.date(2024, 1, 1) + datetime.timedelta(days=i))} for i in range(20)]
back = json.loads(json.dumps(rows))
print(len(re.findall(r"2024-01-(\\d\\d)", json.dumps(back))), back[-1]["when"])
"""
NUMPY = """\
import numpy as np
a = np.arange(10_000, dtype=np.float64).reshape(100, 100)
print(int((a @ np.eye(100)).sum()), np.linalg.norm(a[0]).round(3))
"""


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    code: str
    expect: str
    share: float  # of the time that is spent on measuring


def loop_sum(n):
    """What LOOP prints, without the loop: i * i % 7 has period 7."""
    period = [i * i % 7 for i in range(7)]
    return n // 7 * sum(period) + sum(period[:n % 7])


def calibrate(cpu_ms):
    """How many turns of LOOP take that long here."""
    best, n = None, 100_000
    code = compile(LOOP.format(n=n).replace("print(s)", ""), "loop", "exec")
    for _ in range(5):
        began = time.process_time()
        exec(code, {})
        spent = time.process_time() - began
        best = spent if best is None else min(best, spent)
    return max(1, int(n * cpu_ms / 1000 / best))


def has_numpy():
    found = subprocess.run([PYTHON, "-c", "import numpy"], capture_output=True, check=False)
    return found.returncode == 0


def all_programs(with_numpy, cpu_ms=50):
    n = calibrate(cpu_ms)
    listed = [Program("hello", HELLO, HELLO, "hello\n", 0.40),
              Program("loop", f"{cpu_ms} ms of CPU", LOOP.format(n=n), f"{loop_sum(n)}\n", 0.15),
              Program("modules", "import json, re, datetime", MODULES, "20 2024-01-20\n", 0.20)]
    if with_numpy:
        listed.append(Program("numpy", "import numpy", NUMPY, "49995000 573.018\n", 0.25))
    return listed


def run_bare(program):
    done = subprocess.run([PYTHON, "-c", program.code], env=ENVIRONMENT, capture_output=True, text=True,
                          check=False)
    return done.stdout if done.returncode == 0 else done.stderr
