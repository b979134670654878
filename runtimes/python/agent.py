"""The zygote's agent: what a warm interpreter runs before it forks into cells.

It is started in the place of a program (argv, environment, working directory and streams
are a program's), imports what programs often need, and hands over to the extension module
_glovebox. From there on only children run Python: each one program, once.
"""
import sys

# Imported ahead of programs, in this order. A module belongs here when many programs use it
# and when it keeps little memory of its own that a run would have to copy.
PRELOAD = """
    __future__ _collections_abc _weakrefset abc array ast atexit base64 bisect
    calendar collections collections.abc contextlib copy copyreg csv dataclasses datetime
    decimal enum errno fractions functools gc hashlib heapq importlib importlib.machinery
    importlib.util inspect io itertools json keyword linecache locale logging math
    numbers operator os pathlib pickle platform pprint queue random re select shutil signal
    socket statistics string struct subprocess tempfile textwrap threading time token
    tokenize traceback types typing unicodedata urllib.parse uuid warnings weakref zlib
"""
SECONDS_A_MODULE = 20


def load_extension():
    """The extension without a trace in sys.modules."""
    import _imp
    from _frozen_importlib import ModuleSpec

    spec = ModuleSpec("_glovebox", None, origin="/run/_glovebox.so")
    module = _imp.create_dynamic(spec)
    _imp.exec_dynamic(module)
    return module


def preload(glovebox, names, more):
    """Import them; one that fails, hangs, starts a thread or leaves a process ends the zygote, by name.
    Of each of `more` it is told before: it may end the zygote in a way that says nothing."""
    for at, name in enumerate(names + more):
        if at >= len(names):
            glovebox.preloading(f"module {name}")
        glovebox.bound(name, SECONDS_A_MODULE)
        try:
            __import__(name)
        except BaseException as e:
            glovebox.fail(f"module {name}: {type(e).__name__}: {e}")
        if glovebox.threads() != 1:
            glovebox.fail(f"module {name}: its import starts a thread")
        if glovebox.is_parent():
            glovebox.fail(f"module {name}: its import leaves a process")
    glovebox.bound("", 0)
    if more:
        glovebox.preloading("what follows the imports")


CELL_MAIN_TID = 2 # as in src/box/zygote/module.c


def fork_done():
    """After the hooks of a fork, or in a thread with another number than is expected."""
    threading = sys.modules.get("threading")
    if threading:
        main_thread = threading.main_thread()
        main_thread._set_native_id()
        # threading's own hook makes the set anew, without the lock that an import puts there.
        if getattr(main_thread, "_tstate_lock", None):
            threading._shutdown_locks.add(main_thread._tstate_lock)


def reseeders():
    """What makes the first random values of each child its own."""
    import _random
    found = []
    if "random" in sys.modules: # its generator's own seed(): Random.seed() is Python around it
        found.append(_random.Random.seed.__get__(sys.modules["random"]._inst))
    if "numpy.random" in sys.modules:
        found.append(numpy_state() or sys.modules["numpy.random"].seed)
    return tuple(found)


def numpy_state():
    """(address, bytes) of what numpy's legacy generator draws from: its seed() runs a
    thousand lines. None when it is not what is known here."""
    ctypes, numpy = sys.modules.get("ctypes"), sys.modules["numpy"]
    numpy.random.seed() # as each child's is: without the sequence that made it
    kind, words, position, *_ = numpy.random.get_state()
    if kind != "MT19937" or not ctypes:
        return None
    capsule = numpy.random.mtrand._rand._bit_generator.capsule
    get_pointer = ctypes.PyDLL(None)["PyCapsule_GetPointer"]
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    # numpy/random/bitgen.h: a bitgen_t begins with the address of the state.
    address = ctypes.c_void_p.from_address(get_pointer(capsule, b"BitGenerator")).value
    expected = words.tobytes() + position.to_bytes(4, sys.byteorder)
    if ctypes.string_at(address, len(expected)) != expected:
        return None
    return address, words.nbytes


def arrange(args, env, entry):
    """Before a program with inputs: what a cold start would have made of its arguments, its
    environment, and the path of a file that is the program (b"": it is where it always is).
    The objects stay those that there are: what is new in sys counts as the program's."""
    import os
    for word in env:
        name, _, value = word.partition(b"=")
        os.environb[name] = value
        if name == b"TZ":
            sys.modules["time"].tzset()
    words = [os.fsdecode(word) for word in args]
    if entry:
        path = os.fsdecode(entry)
        first = sys.argv[0]
        sys.argv[0] = sys.orig_argv[sys.orig_argv.index(first)] = path
        sys.path[0] = os.path.dirname("/workspace/" + path)
        sys.path_importer_cache.pop("/workspace/" + first, None)
        sys.path_importer_cache["/workspace/" + path] = None
    sys.argv += words
    sys.orig_argv += words


def scrub():
    """After a rehearsal: what the training program left in modules that it shares."""
    sys.path_importer_cache.pop("/workspace", None)
    for cache, size in caches:
        while len(cache) > size: # what came last goes, and nothing else is touched
            cache.popitem()


# Dictionaries that grow as programs run, and how large they were.
caches = []


def note_caches():
    import linecache
    import re
    for module, name in (linecache, "cache"), (re, "_cache"), (re, "_cache2"):
        cache = getattr(module, name, None)
        if cache is not None:
            caches.append((cache, len(cache)))


# What the zygote itself runs once: a little of everything that programs do at first. It
# leaves nothing: no module that was not there, no file, no thread.
PRACTICE = b"""
import atexit
import datetime
import json
import math
import re
import sys


class Point:
    def __init__(self, x, y=0):
        self.x = x
        self.y = y

    def __repr__(self):
        return f"Point({self.x}, {self.y!r})"


def fibonacci(n):
    return n if n < 2 else fibonacci(n - 1) + fibonacci(n - 2)


def fail(n):
    if n:
        return fail(n - 1)
    raise ValueError("training")


print("hello")
print(sum(range(10)), fibonacci(8), Point(1, "a"), [i * i for i in range(10)])
words = "the quick brown fox".split()
counts = {w: len(w) for w in words}
print(sorted(counts.items(), key=lambda item: item[1]), ", ".join(words), "%5.2f" % math.pi)
print(json.loads(json.dumps({"a": [1, 2.5, None, True], "b": {"c": "d"}})))
print(re.findall(r"[a-z]+", "training one two"), re.sub("o", "0", "foo"))
print(datetime.datetime(2000, 1, 1).isoformat(), datetime.timedelta(days=1))
try:
    fail(2)
except ValueError:
    sys.excepthook(*sys.exc_info())
try:
    exec(compile("x = (", "<string>", "exec"))
except SyntaxError:
    pass
atexit.register(print, "end")
"""
# What each child runs that has time: every page that this writes to is the child's own
# afterwards, whether its program needs that or not.
TRAINING = b"""
def double(n):
    return 2 * n


print("hello", [double(i) for i in range(4)], f"{double(4):3}")
"""


# The same for what is preloaded by name; in children too, whose programs will use it.
OF_MODULES = {
    "numpy": b"""
import numpy as np
a = np.arange(100.0).reshape(10, 10)
print((a @ np.eye(10)).sum(), np.linalg.norm(a[0]).round(3), a[:2, :2], np.zeros(3) + 1)
""",
}


def main():
    glovebox = load_extension()
    with open("/run/preload.txt", "rb") as file: # bytes: no codec is looked up, and remembered
        more = [name for name in file.read().decode().split(",") if name]
    without_exit_functions(preload, glovebox, PRELOAD.split(), more)
    more_practice = b"".join(OF_MODULES.get(name, b"") for name in more)
    note_caches()
    import gc
    gc.collect()
    gc.freeze()
    if "threading" in sys.modules:
        sys.modules["threading"].main_thread()._native_id = CELL_MAIN_TID
    glovebox.serve(sys.version.split()[0], fork_done, reseeders(), arrange, scrub,
                   PRACTICE + more_practice, TRAINING + more_practice)


def without_exit_functions(function, *args):
    """What modules register for the exit must not run for programs that do not use them;
    the extension knows when logging has something to do. Of others nothing is dropped."""
    import atexit
    register = atexit.register
    registered = []

    def note(function, /, *args, **kwargs):
        registered.append((function, args, kwargs))
        return function

    atexit.register = note
    try:
        function(*args)
    finally:
        atexit.register = register
    for f, args, kwargs in registered:
        if f.__module__ != "logging":
            register(f, *args, **kwargs)


if __name__ == "__main__":
    main()
