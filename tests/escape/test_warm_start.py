"""Threat: an interpreter that others are forked from: spoil it, talk to it, find in it what was others'. Answer: it
never runs a request's code; each child is used once; what a child writes into its memory is its own copy. The
same programs start cold, and must come to the same results: tests/e2e/test_warm.py compares the two in depth."""
import re

import pytest

from corpus import SUCCESS, Attack, failed, killed_by
from harness import census
from harness.server import START

# What a program sees of its interpreter, in words that the next one must say too.
LOOK = """\
import builtins, codecs, gc, io, json, locale, os, random, re, signal, sys, threading, time, warnings
print(sorted(k for k in vars(builtins)), len(vars(builtins)), sorted(globals()), sys.argv, sys.path, sys.flags, sys.getrecursionlimit(), sys.getswitchinterval(),
      sys.gettrace(), sys.getprofile(), sys.excepthook is sys.__excepthook__, sys.displayhook is sys.__displayhook__, sys.unraisablehook is sys.__unraisablehook__,
      [type(f).__name__ for f in sys.meta_path], len(sys.path_hooks), gc.isenabled(), gc.get_threshold(), gc.callbacks, gc.get_debug(), len(warnings.filters),
      [signal.getsignal(s) for s in range(1, 65) if s not in (9, 19)], signal.getitimer(0), threading.active_count(), threading.excepthook is threading.__excepthook__,
      json.dumps([1, "x"]), json.loads("[1]"), re.sub("a", "b", "aa"), 2 + 2, 256 - 1, str(257), "x".upper(), (5).__add__(6), sorted([3, 1, 2]), len("abc"), open.__module__,
      locale.setlocale(locale.LC_ALL), time.tzname, os.environ.get("LEFT"), codecs.lookup("utf-8").name, sys.stdout.encoding, sys.stdout.line_buffering, io.open is open,
      type(random.random()).__name__, sys.stdin.fileno(), os.sep, [getattr(m, "LEFT", 0) for m in (builtins, sys, os, json, random)], int.__add__(1, 1), dict.get({}, 1, 2), True, None,
      sys.intern("left"), sys.version_info[:2], sys.dont_write_bytecode, sys.pycache_prefix, os.getcwd(), oct(os.umask(0o22)), [i for i in range(300) if i + 0 != i])
"""
# Cells that stand ready were forked before; so many later, all are new.
CELLS = 9 if START == "warm" else 1


def spoils(name, code, *results, **more):
    return Attack(name, code, *results, **{"times": 2, **more})


PYTHON = [
    spoils("names of everybody's", "import builtins, json, os, random, sys\nprint([getattr(m, 'LEFT', 0) for m in (builtins, json, os, sys)])\n"
           "for m in (builtins, json, os, random, sys): m.LEFT = 1\n"
           "json.dumps = json.loads = lambda *a, **k: 'pwn'; random.random = lambda: 4; os.sep = '!'; builtins.len = builtins.sorted = lambda *a: 'pwn'; "
           "builtins.open = print", says="[0, 0, 0, 0]\n"),
    spoils("modules taken away", "import sys\nfor m in list(sys.modules):\n  if m not in ('sys', 'builtins', '__main__'): del sys.modules[m]\n"
           "sys.modules['json'] = sys.modules['os'] = sys; sys.meta_path.clear(); sys.path_hooks.clear(); sys.path_importer_cache.clear()"),
    spoils("hooks", "import atexit, builtins, gc, sys, threading, warnings\nf = lambda *a: None\n"
           "sys.settrace(f); sys.setprofile(f); threading.settrace(f); sys.excepthook = sys.displayhook = sys.unraisablehook = f; threading.excepthook = f\n"
           "gc.callbacks.append(f); gc.disable(); gc.set_debug(0); atexit.register(f); warnings.simplefilter('error'); "
           "builtins.__import__ = builtins.__build_class__ = f; sys.setswitchinterval(9)"),
    spoils("hooks that see what is run", "import sys\nseen = []\n"
           "sys.addaudithook(lambda e, a: seen.append(e)); sys.breakpointhook = print; sys.set_asyncgen_hooks(print, print); "
           "sys.set_coroutine_origin_tracking_depth(9)"),
    spoils("types that are written to", "import ctypes, gc\nfor t in (int, str, list, dict):\n  d = gc.get_referents(t.__dict__)[0]\n"
           "  d['LEFT'] = 1; d['upper' if t is str else '__len__'] = lambda self: 0\n"
           "  ctypes.pythonapi.PyType_Modified(ctypes.py_object(t))\nimport os; os._exit(0)"),
    # The small numbers are objects that all code shares: 5 becomes 6 for whoever reads that memory.
    spoils("numbers that are no longer", "import ctypes, os\nfor n in (5, 6, 7, 100, 200): ctypes.c_uint32.from_address(id(n) + 24).value = 1\nos._exit(0)"),
    spoils("counts of what is never freed", "import ctypes, os\n"
           "for o in (None, True, False, (), '', b'', Ellipsis): ctypes.c_ssize_t.from_address(id(o)).value = 1\nos._exit(0)", (SUCCESS, killed_by("SIGABRT"),
           killed_by("SIGSEGV")), complains=None),
    spoils("text that all have", "import ctypes, os, sys\nfor w in ('__init__', 'utf-8', 'strict', 'left', '__main__', 'append'):\n"
           "  w = sys.intern(w); ctypes.memset(id(w) + 48, 120, len(w))\nos._exit(0)"),
    spoils("signals and timers", "import signal\nfor s in range(1, 65):\n  if s not in (9, 19, 32, 33): signal.signal(s, lambda *a: None)\n"
           "signal.pthread_sigmask(0, range(1, 65)); signal.setitimer(0, 100); signal.set_wakeup_fd(-1); signal.alarm(90)"),
    spoils("its surroundings", "import locale, os, resource, time\n"
           "os.environ.clear(); os.environ['LEFT'] = '1'; os.environ['TZ'] = 'Asia/Tokyo'; time.tzset(); locale.setlocale(locale.LC_ALL, 'C'); os.umask(0); "
           "os.nice(5); os.chdir('/usr')\n"
           "for r in range(16):\n  try: resource.setrlimit(r, (resource.getrlimit(r)[0],) * 2)\n  except (OSError, ValueError): pass\n"
           "resource.setrlimit(resource.RLIMIT_NOFILE, (20, 20))"),
    spoils("its streams", "import os, sys\nsys.stdout = sys.__stdout__ = sys.stderr = sys.__stderr__ = sys.stdin = None\nfor fd in (0, 1, 2): os.close(fd)",
           complains=None),
    spoils("a limit on its depth", "import sys\nsys.setrecursionlimit(60)\ndef f(): f()\ntry: f()\nexcept RecursionError: print('deep')", says="deep\n"),
    spoils("chance that is none", "import random, uuid, os, secrets\n"
           "random.seed(1); random.setstate(random.getstate()); uuid.getnode = lambda: 1; uuid._node = 1; os.urandom = lambda n: bytes(n); print(random.random())",
           says="0.13436424411240122\n"),
    spoils("caches", "import functools, linecache, re, sys, encodings, codecs\n"
           "codecs.register(lambda n: codecs.lookup('rot13') if n == 'utf_7' else None); linecache.cache['main.py'] = (1, None, ['pwn'], 'main.py'); "
           "re._cache.clear()\n"
           "encodings._cache['utf_8'] = codecs.lookup('latin-1'); sys.path_importer_cache['/workspace'] = None; sys.path.insert(0, '/tmp')"),
]

MEMORY = [
    # libc's own code: the page is a copy of this process's.
    spoils("code of the C library", "import mmap\na = ctypes.cast(L.getpid, ctypes.c_void_p).value; p = a & ~4095\n"
           "print(L.mprotect(ctypes.c_void_p(p), ctypes.c_size_t(8192), 7))\nctypes.memmove(a, b'\\xb8\\x2a\\0\\0\\0\\xc3', 6); print(L.getpid())\nos._exit(0)",
           says="0\n42\n", calls=True),
    # But for what this one run tells (ADR 16), which the front reads as foreign bytes.
    spoils("all that can be written", "n = 0\nr, w = os.pipe()\nif os.fork() == 0:\n  for l in list(open('/proc/self/maps')):\n"
           "    a, b = (int(x, 16) for x in l.split()[0].split('-'))\n"
           "    if l.split()[1][1] == 'w' and '[stack' not in l: L.madvise(ctypes.c_void_p(a), ctypes.c_size_t(b - a), 9)\n  os._exit(0)\n"
           "for l in open('/proc/self/maps'):\n  n += l.split()[1][:2] == 'rw' and l.split()[1][3] == 's' and l.split()[5] != '/memfd:report'\nprint(n)", says="0\n", calls=True),
    spoils("memory that is not its own copy", "import mmap\nfor l in list(open('/proc/self/maps')):\n"
           "  a = int(l.split()[0].split('-')[0], 16); w = l.split()[5:] or ['']\n"
           "  if w[0].startswith('/run/'):\n    for t in ('/proc/self/map_files/' + l.split()[0], '/proc/1/root' + w[0], w[0]):\n"
           "      try: os.open(t, os.O_RDWR); print('GOT', t)\n      except OSError: pass\n"
           "    L.mremap.restype = ctypes.c_void_p\n    b = L.mremap(ctypes.c_void_p(a), ctypes.c_size_t(0), ctypes.c_size_t(4096), 1)\n"
           "    if b not in (None, 2 ** 64 - 1): ctypes.memset(b, 255, 1)\nprint('end')",
           (SUCCESS, killed_by("SIGSEGV")), re.compile("(end\n)?"), calls=True),
    spoils("every page of the heap", "a = [bytearray(b'z' * 4096) for _ in range(3000)]\nimport gc\nfor o in gc.get_objects():\n"
           "  if isinstance(o, list) and o is not a: o.append(0) if len(o) < 3 else None\nos._exit(0)", calls=True),
]

# By the interpreter's own doors, instead of its end.
ENDS = [
    spoils("once and no more", "print('once')", says="once\n"),
    spoils("text in C's own buffers", "L.printf(b'c'); L.puts(b'd')", says="cd\n", calls=True),
    spoils("a child that goes on to the end", "import os\np = os.fork()\nif p: os.waitpid(p, 0)\nprint('x')", says="x\nx\n"),
    spoils("a child that raises", "import os\nif os.fork() == 0: raise SystemExit(9)\nprint(os.waitstatus_to_exitcode(os.wait()[1]))", says="9\n"),
    spoils("a child that is forked in an exit function", "import atexit, os\ndef f():\n  if os.fork() == 0: print('child', flush=True); os._exit(0)\n"
           "  os.wait(); print('parent')\natexit.register(f)", says="child\nparent\n"),
    spoils("Py_Exit", "import ctypes; ctypes.pythonapi.Py_Exit(7)", failed(7), ""),
    spoils("Py_FinalizeEx", "import ctypes, os\nctypes.PyDLL(None).Py_FinalizeEx()", (failed(1), failed(120), killed_by("SIGSEGV"), killed_by("SIGABRT"), SUCCESS),
           complains=None),
    spoils("a fatal error", "import ctypes; ctypes.pythonapi.Py_FatalError(b'forged')", killed_by("SIGABRT"), "", re.compile(r"(?s)Fatal Python error: .*forged.*")),
    spoils("another main", "import sys, types\nsys.modules['__main__'] = types.ModuleType('__main__'); sys.exit(4)", failed(4), ""),
    spoils("a main that is gone", "globals().clear()"),
    spoils("nothing that can be imported at the end", "import sys, builtins\nbuiltins.__import__ = None; sys.modules.clear()\nraise ValueError('last')", failed(1),
           "", re.compile(r"(?s).*ValueError: last\n")),
    spoils("an exit in an exit", "import atexit, sys\natexit.register(lambda: sys.exit(9)); atexit.register(lambda: 1 / 0); print('x')", says="x\n",
           complains=re.compile("(?s).*ZeroDivisionError.*")),
    spoils("exec of itself", "import os, sys\nif 'N' in os.environ: print('again'); sys.exit(5)\n"
           "os.environ['N'] = '1'; os.execv(sys.executable, [sys.executable, 'main.py'])", failed(5), "again\n", timeout=30),
    spoils("a debugger's frames above its own", "import sys\nf, n = sys._getframe(), 0\nwhile f.f_back: f = f.f_back; n += 1\n"
           "print(n, f.f_code.co_filename, f.f_globals is globals())", says="0 /workspace/main.py True\n"),
]

TALK = [
    spoils("whatever is open", "import os, socket\nfor fd in range(3, 256):\n  try: s = socket.socket(fileno=os.dup(fd)); s.send(b'fork'); print('GOT', fd)\n"
           "  except OSError: pass\nprint(os.listdir('/proc/self/fd'))", says="['0', '1', '2', '3']\n"),
    # The loader knows the file that was mapped by its name; its functions end their process, and have nobody to talk to.
    *[spoils(f"its extension module: {call.partition('(')[0]}", "import sys, _imp, os\nfrom importlib.machinery import ModuleSpec\n"
           "assert not [m for m in sys.modules if 'glove' in m or m == 'agent']\n"
             "try: g = _imp.create_dynamic(ModuleSpec('_glovebox', None, origin='/run/_glovebox.so')); _imp.exec_dynamic(g)\nexcept ImportError: os._exit(125)\n"
             f"g.{call}", failed(125), "", "") for call in ("fail('forged')", "bound('forged', 1); import time; time.sleep(60)",
             "serve('3.11.2', print, (), print, print, b'', b'')")],
    spoils("the functions of its agent", "import gc, types\nprint([f.__qualname__ for f in gc.get_objects() if isinstance(f, "
           "types.FunctionType) and ('agent' in f.__code__.co_filename or 'glove' in f.__code__.co_filename)],\n"
           "  [b for b in gc.get_objects() if isinstance(b, types.BuiltinFunctionType) and 'glove' in str(b.__module__)])", says="[] []\n"),
]


def look(arena):
    r = arena.run(LOOK)
    assert (r.status, r.stderr) == ("success", ""), r
    return r.stdout


@pytest.fixture(scope="module")
def usual(arenas):
    return look(arenas.ready())


def changes_nothing(arena, attack, usual):
    arena.withstand(attack)
    for _ in range(CELLS):
        assert look(arena) == usual


@pytest.mark.parametrize("attack", PYTHON, ids=str)
def test_what_a_program_makes_of_its_interpreter_is_its_own(attack, arena, usual):
    changes_nothing(arena, attack, usual)


# What no later code of the same program sees either, or what it must not.
UNSEEN = {"hooks that see what is run", "chance that is none", "caches"}


@pytest.mark.parametrize("attack", [a for a in PYTHON if a.name not in UNSEEN], ids=str)
def test_a_spoiled_interpreter_would_be_seen(attack, arena, usual):
    """By what the tests above look with, in the program that has spoiled it."""
    r = arena.run(attack.code.replace("os._exit(0)", "") + "\n" + LOOK)
    assert r.stdout != usual


@pytest.mark.parametrize("attack", MEMORY, ids=str)
def test_what_it_writes_into_its_memory_is_its_own(attack, arena, usual):
    changes_nothing(arena, attack, usual)


@pytest.mark.parametrize("attack", ENDS, ids=str)
def test_its_end_is_that_of_a_script(attack, arena, usual):
    changes_nothing(arena, attack, usual)


@pytest.mark.parametrize("attack", TALK, ids=str)
def test_nothing_leads_to_whoever_made_it(attack, arena, usual):
    changes_nothing(arena, attack, usual)


def test_addresses_tell_nothing_of_the_server(arena):
    """Each of its processes is an executed image of its own, and no fork of another."""
    def starts(lines):
        return {line.split("-")[0] for line in lines if line.split()[-1] not in ("[vsyscall]",)}

    r = arena.run("print(open('/proc/self/maps').read())")
    arena.server.rest()  # a cage that goes takes its init with it
    seen = starts(r.stdout.splitlines()[:-1])
    assert len(seen) > 20
    for pid in (arena.server.pid, arena.server.front, *census.cell_inits(arena.server.uid_base, arena.server.pid)):
        with open(f"/proc/{pid}/maps", encoding="ascii") as f:
            own = starts(f)
        if pid in census.program_processes(arena.server.uid_base) or census.cmdline(pid)[:1] == ["/usr/bin/python3"]:
            continue
        assert own and not own & seen, pid
