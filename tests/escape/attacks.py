"""Shared by the attacks: raw system calls from inside the cage (x86-64 numbers)."""

# Gives an attack `sc(number, …)`: the result, or the name of the errno.
PRELUDE = """\
import os, sys, time, ctypes, errno
L = ctypes.CDLL(None, use_errno=True)
def sc(*a):
    r = L.syscall(*a)
    return r if r >= 0 else errno.errorcode.get(ctypes.get_errno())
"""

REFUSED = ("EPERM", "ENOSYS", "EACCES", "EAFNOSUPPORT")


def sc(code):
    """The code with the prelude in front."""
    return PRELUDE + code
