"""What goes before each program of the self-test. A program says facts, one JSON object a line,
and judges nothing: src/caller/selftest/judge.c does, outside of the cell."""
import ctypes
import errno
import json
import os
import sys

errno.errorcode[errno.EOPNOTSUPP] = "EOPNOTSUPP"  # the same number has two names
L = ctypes.CDLL(None, use_errno=True)
given = json.loads(sys.stdin.readline())  # what the outside has laid out: paths, ports, calls


def say(probe, got):
    os.write(1, json.dumps({"probe": probe, "got": str(got)}).encode() + b"\n")


def word(e):
    return errno.errorcode.get(e.errno, str(e))


def outcome(call, *args):
    """The errno's name, or "done"."""
    try:
        call(*args)
    except OSError as e:
        return word(e)
    except ValueError:  # resource.setrlimit's EPERM and EINVAL
        return "EPERM"
    return "done"


def in_child(call, *args):
    """The same, in a child: whatever it does, this process stays as it is."""
    r, w = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.close(r)
            os.write(w, str(call(*args)).encode())
        finally:
            os._exit(0)
    os.close(w)
    text = b""
    while chunk := os.read(r, 4096):
        text += chunk
    os.close(r)
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status):
        return "signal %d" % os.WTERMSIG(status)
    return text.decode() or "nothing"


def await_outside():
    """Stand still until the outside has looked at this process."""
    say("ready", "")
    sys.stdin.readline()


