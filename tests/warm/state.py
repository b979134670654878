"""Print everything that a program can see of its interpreter and its process, one fact a
line, in an order and a form that do not depend on addresses. Run as a program in a cell:
a cold start, a forked child and a rehearsed one must print the same, but for what
test_state.py allows by name.
"""
import atexit
import gc
import os
import re
import signal
import sys
import types

AT_START = {
    "modules": list(sys.modules),
    "gc.count": gc.get_count(),
    "gc.stats": gc.get_stats(),
    "gc.objects": len(gc.get_objects()),
    "exit functions": atexit._ncallbacks(),
    "main": sorted(globals()),
    "import cache": sorted(sys.path_importer_cache),
}
PLAIN = (int, float, complex, str, bytes, bool, type(None))
DEPTH = 4
seen = set()


def show(value, depth=0):
    """A value without addresses; containers by content, others by type."""
    if type(value) in PLAIN:
        return repr(value)
    if depth > DEPTH or id(value) in seen:
        return f"<{type(value).__name__}>"
    seen.add(id(value))
    try:
        if type(value) in (tuple, list) or type(value).__name__ == "deque":
            inside = ", ".join(show(x, depth + 1) for x in value)
            return f"{type(value).__name__}[{inside}]"
        if type(value) in (set, frozenset):
            return f"{type(value).__name__}{sorted(show(x, depth + 1) for x in value)}"
        if type(value) in (dict, types.MappingProxyType):
            inside = ", ".join(f"{show(k, depth + 1)}: {show(v, depth + 1)}"
                               for k, v in list(value.items()))
            return f"{type(value).__name__}{{{inside}}}"
        if type(value).__module__ == "itertools":
            return re.sub("0x[0-9a-f]+", "", repr(value))
        if type(value).__name__ in ("Pattern", "Struct"):
            return repr(value)[:200]
        if hasattr(value, "cache_info") and callable(value.cache_info):
            return f"<cached {value.cache_info()}>"
        return f"<{type(value).__name__}>"
    finally:
        seen.discard(id(value))


def say(key, value):
    text = value if isinstance(value, str) else show(value)
    print(f"{key} = {ascii(text)}")


def attributes(prefix, owner):
    for name, value in sorted(vars(owner).items(), key=lambda item: str(item[0])):
        key = f"{prefix}.{name}"
        if isinstance(value, types.ModuleType):
            say(key, f"module {value.__name__}")
        elif isinstance(value, type):
            say(key, f"class {value.__module__}.{value.__qualname__}")
            if value.__module__ == prefix.partition(" ")[2]:
                attributes(key, value)
        else:
            say(key, value)
            if hasattr(value, "__dict__") and not callable(value) and value is not sys.modules:
                for n, v in sorted(vars(value).items(), key=lambda item: str(item[0])):
                    say(f"{key}.{n}", v)


def of_interpreter():
    for key, value in AT_START.items():
        say(f"start {key}", value)
    say("gc", (gc.isenabled(), gc.get_threshold(), gc.get_debug(), gc.garbage, gc.callbacks))
    say("streams", [repr(s) for s in (sys.stdin, sys.stdout, sys.stderr)])
    for s in sys.stdin, sys.stdout, sys.stderr:
        say(f"stream {s.name}", [s.encoding, s.errors, s.line_buffering, s.write_through,
                                 s.newlines, s.closed, s.mode, s.fileno(), s.isatty()])
    say("recursion", (sys.getrecursionlimit(), depth_left()))
    say("frames", [f.f_code.co_name for f in sys._current_frames().values()])
    say("tracing", (sys.gettrace(), sys.getprofile(), sys.getswitchinterval(),
                    sys.get_asyncgen_hooks(), sys.get_coroutine_origin_tracking_depth()))
    say("last", [n for n in ("last_type", "last_value", "last_traceback") if hasattr(sys, n)])
    say("exception", sys.exc_info())


def depth_left():
    def down(n):
        try:
            return down(n + 1)
        except RecursionError:
            return n
    return down(0)


def of_process():
    say("signals", {int(s): str(signal.getsignal(s)) for s in sorted(signal.valid_signals())})
    say("mask", sorted(map(int, signal.pthread_sigmask(signal.SIG_BLOCK, []))))
    say("timers", [signal.getitimer(i) for i in range(3)])
    say("fds", {f: os.readlink(f"/proc/self/fd/{f}").split(":")[0]
                for f in sorted(os.listdir("/proc/self/fd")) if f in "012"})
    say("open", sorted(os.listdir("/proc/self/fd"))[:-1])
    say("ids", (os.getpid(), os.getppid(), os.getpgrp(), os.getsid(0), os.getresuid(),
                os.getresgid(), os.getgroups()))
    say("place", (os.getcwd(), sorted(os.listdir("/workspace")), os.listdir("/tmp"),
                  os.listdir("/dev/shm"), os.stat("main.py").st_ino, oct(os.stat("main.py").st_mode)))
    say("environment", dict(os.environ))
    for line in open("/proc/self/status"):
        if not re.match("Vm|Rss|Hugetlb|.*ctxt|FDSize", line):
            say("status " + line.partition(":")[0], line.partition(":")[2].strip())
    for name in "cmdline", "environ", "comm", "limits", "oom_score_adj", "timerslack_ns":
        say(f"proc {name}", open(f"/proc/self/{name}", "rb").read())


# First: the others change it.
of_interpreter()
of_process()
for module_name, module in list(sys.modules.items()):
    if module_name != "__main__" and module is not None:
        attributes(f"module {module_name}", module)
