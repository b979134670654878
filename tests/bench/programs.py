"""What is run: programs, and exactly what each has to print and to leave."""
import base64
import csv
import io
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
# What a question about data comes to: a table read, a table made of it, and a picture of that.
PLOT = """\
import matplotlib.pyplot as plt
import pandas as pd
table = pd.read_csv("sales.csv", parse_dates=["day"]).groupby("region").agg(units=("units", "sum"), days=("day", "nunique"))
table.units.plot.bar(figsize=(8, 6))
plt.savefig("plot.png", dpi=100)
print(table.to_csv(), end="")
"""
# A PNG of 800 by 600 pixels: the signature, and the beginning of the first chunk.
PLOT_BEGINS = b"\x89PNG\r\n\x1a\n" + b"\0\0\0\rIHDR" + (800).to_bytes(4, "big") + (600).to_bytes(4, "big")


@dataclass(frozen=True)
class Program:
    name: str
    title: str
    code: str
    expect: str
    share: float  # of the time that is spent on measuring; 0: it takes seconds, so a few runs of one client
    inputs: tuple = ()  # (name, text) of each file in its working directory
    leaves: tuple = ()  # (name, first bytes) of the file that it has to leave there

    def body(self):
        """What POST /execute is sent."""
        more = {"artifacts": "inline"} if self.leaves else {}
        if self.inputs:
            more["files"] = [{"path": name, "content": text} for name, text in self.inputs]
        return {"code": self.code, **more}

    def begins(self, in_reply):
        """What the file that it leaves begins with, as the file itself has it or as a reply does."""
        first = self.leaves[1]
        return base64.b64encode(first[:len(first) // 3 * 3]) if in_reply else first


def loop_sum(n):
    """What LOOP prints, without the loop: i * i % 7 has period 7."""
    period = [i * i % 7 for i in range(7)]
    return n // 7 * sum(period) + sum(period[:n % 7])


def sales(rows):
    """A table as text: a day, a region and a number in each line."""
    lines = [f"2024-{i % 12 + 1:02}-{i % 28 + 1:02},{'north east south west'.split()[i * i % 13 % 4]},{i * 37 % 101}"
             for i in range(rows)]
    return "\n".join(["day,region,units", *lines, ""])


def sales_table(text):
    """What PLOT prints of such a table, without pandas."""
    groups = {}
    for row in csv.DictReader(io.StringIO(text)):
        groups.setdefault(row["region"], []).append(row)
    lines = [f"{region},{sum(int(r['units']) for r in found)},{len({r['day'] for r in found})}"
             for region, found in sorted(groups.items())]
    return "\n".join(["region,units,days", *lines, ""])


def plot():
    text = sales(1000)
    return Program("plot", "pandas, matplotlib", PLOT, sales_table(text), 0, (("sales.csv", text),),
                   ("plot.png", PLOT_BEGINS))


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


def has_modules(*names):
    """Whether the bare interpreter can import them. They are not imported: that takes seconds."""
    look = f"import importlib.util as u, sys; sys.exit(not all(map(u.find_spec, {names})))"
    return subprocess.run([PYTHON, "-c", look], capture_output=True, check=False).returncode == 0


def all_programs(with_numpy, with_plot=False, cpu_ms=50):
    n = calibrate(cpu_ms)
    listed = [Program("hello", HELLO, HELLO, "hello\n", 0.40),
              Program("loop", f"{cpu_ms} ms of CPU", LOOP.format(n=n), f"{loop_sum(n)}\n", 0.15),
              Program("modules", "import json, re, datetime", MODULES, "20 2024-01-20\n", 0.20)]
    if with_numpy:
        listed.append(Program("numpy", "import numpy", NUMPY, "49995000 573.018\n", 0.25))
    return listed + [plot()] * with_plot


def run_bare(program):
    done = subprocess.run([PYTHON, "-c", program.code], env=ENVIRONMENT, capture_output=True, text=True,
                          check=False)
    return done.stdout if done.returncode == 0 else done.stderr
