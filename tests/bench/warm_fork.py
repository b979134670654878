"""The floor that a warm interpreter sets without any cage: os.fork(), run, exit.

usage: warm_fork.py CLIENTS SECONDS PAUSE-MS CODE-FILE EXPECT-FILE [MODULE…]

Imports the modules, then each client forks one child a run, after a pause, reads what it prints
and reaps it. Prints the same JSON as the load client. Nothing is made ahead of a run, and the child
ends with os._exit(): no interpreter is torn down."""
import builtins
import gc
import importlib
import io
import json
import os
import sys
import time
import types

clients, seconds, pause_s = int(sys.argv[1]), float(sys.argv[2]), float(sys.argv[3]) / 1000
CODE = open(sys.argv[4], encoding="utf-8").read()
EXPECT = open(sys.argv[5], "rb").read()


def preload(names):
    for name in names:
        importlib.import_module(name)
    gc.collect()
    gc.freeze()
    gc.disable()


def child(stdout):
    os.dup2(stdout, 1)
    module = types.ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    sys.modules["__main__"] = module
    sys.stdout = io.TextIOWrapper(io.FileIO(1, "w", closefd=False), encoding="utf-8")
    try:
        exec(compile(CODE, "main.py", "exec"), module.__dict__)
        sys.stdout.flush()
    except BaseException:
        os._exit(1)
    os._exit(0)


def once():
    """One run: (row of the report, what was wrong or None)."""
    if pause_s > 0:
        time.sleep(pause_s)
    began = time.monotonic_ns()
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        child(writer)
    os.close(writer)
    printed = b""
    while piece := os.read(reader, 65536):
        printed += piece
    _, status, usage = os.wait4(pid, 0)
    took = time.monotonic_ns() - began
    os.close(reader)
    why = None
    if status != 0 or printed != EXPECT:
        why = f"wait status {status}, printed {printed[:80]!r}"
    cpu_us = int((usage.ru_utime + usage.ru_stime) * 1e6)
    return [took, usage.ru_minflt, cpu_us, 0, 0, 0, 0, 0], why


def client():
    rows = []
    _, why = once()
    began = time.monotonic_ns()
    while not why and (not rows or time.monotonic_ns() - began < seconds * 1e9):
        row, why = once()
        if not why:
            rows.append(row)
    return {"rows": rows, "why": why or "", "began": began, "ended": time.monotonic_ns()}


def forked_client():
    reader, writer = os.pipe()
    if os.fork() == 0:
        os.close(reader)
        with os.fdopen(writer, "w") as out:
            json.dump(client(), out)
        os._exit(0)
    os.close(writer)
    return reader


def main():
    if clients == 1:
        results = [client()]
    else:
        readers = [forked_client() for _ in range(clients)]
        results = [json.load(os.fdopen(r)) for r in readers]
    elapsed = max(r["ended"] for r in results) - min(r["began"] for r in results)
    whys = [r["why"] for r in results if r["why"]]
    print(json.dumps({"elapsed_ns": elapsed, "wrong": len(whys), "why": whys[0] if whys else "",
                      "samples": [row for r in results for row in r["rows"]]}))


preload(sys.argv[6:])
main()
