"""The program as a command."""
import os
import subprocess

from harness.server import CANARY, PROGRAM


def glovebox(*args, input=b"", env=None, timeout=120, **kw):
    """Run `glovebox ARGS`; stdout and stderr are bytes."""
    if isinstance(input, str):
        input = input.encode()
    full = {"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8",
            "CALLERS_SECRET": CANARY, **(env or {})}
    done = subprocess.run([PROGRAM, *map(str, args)], input=input, capture_output=True,
                          env=full, timeout=timeout, check=False, **kw)
    assert CANARY.encode() not in done.stdout + done.stderr
    return done
