"""A program cannot tell how its interpreter was started: cold, forked from a warm one, or
forked and rehearsed. And nothing of one run, or of the zygote, is found in another."""
import importlib.util
import os
import re
import socket
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.poll import wait_for

FOLDER = Path(__file__).resolve().parents[1] / "warm"
TOP = FOLDER.parents[1]
AGENT = TOP / "runtimes" / "python" / "agent.py"


def load(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


programs = load("warm_programs", FOLDER / "programs.py")

ROOMY = {"timeout_seconds": 30, "memory_limit_mb": 256, "cpu_limit": 1}
FLAGS_OF = {
    "cold": ["--cold"],
    "rehearsed": ["--cold=false", "--pool-size", "4"],
    # A cell that somebody waits for is handed over without a rehearsal.
    "forked": ["--cold=false", "--pool-size", "0"],
}


@pytest.fixture(scope="module")
def servers():
    """One server for each way of starting, made when it is first asked for."""
    from harness.life import finish, need_program
    from harness.server import Server
    need_program()
    made = {}

    def get(way):
        if way not in made:
            made[way] = Server(*FLAGS_OF[way], "--output-bytes", "16M")
            made[way].start()
            fill(made[way])  # until there is a zygote, programs start cold everywhere
        return made[way]

    yield get
    try:
        for s in made.values():
            finish(s)
    finally:
        for s in made.values():
            s.stop()


def fill(server):
    """Wait until its pool is full of what it is meant to hold."""
    def full():
        h = server.health().json()
        return h["ready_cells"] == h["pool_size"] and (h["warm"] == "on" or "--cold" in server.flags)

    wait_for("a full pool", full)


# ---- Warm and cold give the same results ----

def result(reply):
    """What must be equal, without addresses, idents of threads and measured times."""
    def plain(text):
        text = re.sub(r"0x[0-9a-f]+", "0x", text)
        text = re.sub(r"\b1\d{14}\b", "ident", text)
        return re.sub(r"in 0\.\d+s", "in s", text)

    return {key: plain(reply[key]) if isinstance(reply[key], str) else reply[key]
            for key in ("status", "cause", "signal", "exit_code", "stdout", "stderr")}


@pytest.fixture(scope="module")
def cold_results(servers):
    cold = servers("cold")

    def one(name):
        code, fields = programs.PROGRAMS[name]
        # The interpreter as it is, with nothing of ours in it.
        return result(cold.execute(code, **{**ROOMY, **fields, "report": False}))

    with ThreadPoolExecutor(2) as pool:
        futures = {name: pool.submit(one, name) for name in programs.PROGRAMS}
        yield lambda name: futures[name].result()


@pytest.mark.parametrize("name", programs.PROGRAMS)
@pytest.mark.parametrize("way", ["rehearsed", "forked", "cold"])
def test_a_program_gives_the_same_result_as_after_a_cold_start(servers, cold_results, way, name):
    code, fields = programs.PROGRAMS[name]
    warm = result(servers(way).execute(code, **{**ROOMY, **fields}))
    if name in (programs.KNOWN_COLD if way == "cold" else programs.KNOWN):
        assert warm != cold_results(name), f"{name} is equal now: take it out of KNOWN"
    else:
        assert warm == cold_results(name)


def test_the_three_ways_are_what_they_are_called(servers):
    """By page faults: an interpreter's start, a fork's copies, and next to none."""
    def faults(way):
        fill(servers(way))
        return servers(way).execute("print('hello')", **ROOMY)["usage"]["minor_faults"]

    cold, forked, rehearsed = faults("cold"), faults("forked"), faults("rehearsed")
    assert rehearsed < 40 < forked < cold / 2, (rehearsed, forked, cold)


# ---- A rehearsal leaves no trace ----

STATE = (FOLDER / "state.py").read_text()
# What differs between two zygotes, and so also between one zygote's children and a cold start:
# the order of sets (the hash seed), addresses, and when they began.
OF_THE_ZYGOTE = re.compile(
    r"module tokenize\.|module threading\._active|module threading\._main_thread\._ident"
    r"|module logging\._startTime")
# What preloading implies, in modules that a cold start has as well.
OF_PRELOADING = re.compile(
    r"start (modules|gc\..*|import cache)"
    r"|module sys\.(modules|path_importer_cache)"
    r"|module (_frozen_importlib\w*|zipimport)\.(__name__|__package__|_bootstrap(_external)?)"
    r"|module re\.(_cache|RegexFlag\._value2member_map_)")


def state(server, code=STATE):
    # A cold start as it is, with nothing of ours in it.
    reply = server.execute(code, **ROOMY, report="--cold" not in server.flags)
    assert reply["status"] == "success", reply["stderr"]
    assert reply.dropped("stdout") == 0
    facts = dict(line.split(" = ", 1) for line in reply["stdout"].splitlines())
    assert len(facts) > 5000
    return facts


def differences(a, b, allowed, common=False):
    names = set(a) & set(b) if common else set(a) | set(b)
    return {n: (a.get(n), b.get(n)) for n in sorted(names)
            if a.get(n) != b.get(n) and not allowed.match(n)}


def test_a_rehearsed_cell_cannot_be_told_from_one_that_was_only_forked(servers):
    fill(servers("rehearsed"))
    found = differences(state(servers("rehearsed")), state(servers("forked")), OF_THE_ZYGOTE)
    assert not found, found


def test_a_warm_cell_differs_from_a_cold_one_only_by_what_preloading_implies(servers):
    allowed = re.compile(f"{OF_THE_ZYGOTE.pattern}|{OF_PRELOADING.pattern}")
    fill(servers("rehearsed"))
    found = differences(state(servers("rehearsed")), state(servers("cold")), allowed, common=True)
    assert not found, found


def test_a_preloaded_module_holds_what_its_import_in_a_cold_start_gives(servers):
    """All of them, imported by the program itself, which is what loads them where it is cold."""
    names = load("agent", AGENT).PRELOAD
    code = f"for n in {names!r}.split():\n    __import__(n)\ndel n\n{STATE}"
    allowed = re.compile(f"{OF_THE_ZYGOTE.pattern}|start |module sys\\.(modules|path_importer_cache)")
    found = differences(state(servers("forked"), code), state(servers("cold"), code), allowed)
    assert not found, found


# ---- Nothing is shared between runs ----

FIRST_VALUES = """
import random, secrets, tempfile, uuid
print(random.random(), uuid.uuid4(), uuid.uuid1(), secrets.token_hex(8),
      next(tempfile._get_candidate_names()), random.SystemRandom().random())
"""


def test_a_thousand_runs_draw_a_thousand_different_first_values(servers):
    server = servers("rehearsed")
    with ThreadPoolExecutor(4) as pool:
        lines = list(pool.map(lambda _: server.execute(FIRST_VALUES, **ROOMY)["stdout"], range(1000)))
    for values in zip(*(line.split() for line in lines), strict=True):
        assert len(set(values)) == 1000, values[:3]


def test_the_hash_seed_differs_between_generations(serve):
    server = serve("--cold=false", "--zygote-max-forks", "3", "--pool-size", "1")
    seen = set()

    def two_seeds():
        seen.add(server.execute("print(hash('a'))", **ROOMY)["stdout"])
        return len(seen) > 1

    wait_for("a second hash seed", two_seeds)


NEEDLE = "needle-41c6d8-of-an-earlier-run"
# The pieces are put together where no copy of the whole is left.
SCAN = """
import re
needle = bytes(reversed(NEEDLE))
found = 0
with open("/proc/self/maps") as maps, open("/proc/self/mem", "rb", buffering=0) as mem:
    for line in maps:
        lo, hi, rights = re.match("(\\w+)-(\\w+) (\\S+)", line).groups()
        if rights[0] == "r" and "[v" not in line:
            for at in range(int(lo, 16), int(hi, 16), 1 << 20):
                mem.seek(at)
                text = mem.read(min(1 << 20, int(hi, 16) - at))
                found += text.count(needle)
                del text
print(found)
"""


def scan(server, text):
    backwards = bytes(reversed(text.encode()))
    reply = server.execute(SCAN.replace("NEEDLE", repr(backwards)), **ROOMY)
    assert reply["status"] == "success", reply["stderr"]
    return int(reply["stdout"])


def test_no_memory_of_a_run_holds_an_earlier_runs_code_or_output(servers):
    server = servers("rehearsed")
    for _ in range(6):
        server.execute(f"print('{NEEDLE}')", **ROOMY)
    # The needle itself, once: so the scan does find what there is.
    assert scan(server, "__name__") > 1
    assert scan(server, NEEDLE) <= 1


def test_what_a_run_changes_is_unchanged_in_the_next(servers):
    change = """
import builtins, json, os, random, signal, sys, warnings
builtins.left = json.left = sys.left = os.environ["LEFT"] = "left"
json.dumps = print
sys.path.insert(0, "left")
sys.setrecursionlimit(99)
warnings.simplefilter("error")
signal.signal(signal.SIGUSR1, print)
random.seed(1)
os.umask(0)
open("/tmp/left", "w").close()
open("/dev/shm/left", "w").close()
os.chdir("/tmp")
"""
    look = """
import builtins, json, os, signal, sys, warnings
print([hasattr(m, "left") for m in (builtins, json, sys)], "LEFT" in os.environ, json.dumps([1]),
      "left" in sys.path, sys.getrecursionlimit(), len(warnings.filters),
      signal.getsignal(signal.SIGUSR1), os.umask(0), os.listdir("/tmp"), os.listdir("/dev/shm"),
      os.getcwd())
"""
    before = servers("rehearsed").execute(look, **ROOMY)["stdout"]
    assert servers("rehearsed").execute(change, **ROOMY)["status"] == "success"
    assert servers("rehearsed").execute(look, **ROOMY)["stdout"] == before


# ---- What is preloaded ----

class Refused(Exception):
    pass


class Glovebox:
    """The extension module, as far as preload() knows it."""

    def __init__(self, threads=1):
        self.bounds, self.told, self.count = [], [], threads

    def bound(self, name, seconds):
        self.bounds.append((name, seconds))

    def preloading(self, what):
        self.told.append(what)

    def threads(self):
        return self.count

    def is_parent(self):
        return False

    def fail(self, text):
        raise Refused(text)


def test_a_preload_that_raises_is_refused_by_its_name():
    agent = load("agent", AGENT)
    with pytest.raises(Refused, match="module no_such_module: ModuleNotFoundError"):
        agent.preload(Glovebox(), ["json", "no_such_module"], [])


def test_a_preload_that_starts_a_thread_is_refused_by_its_name():
    agent = load("agent", AGENT)
    with pytest.raises(Refused, match="module json: its import starts a thread"):
        agent.preload(Glovebox(threads=2), [], ["json"])


def test_every_import_is_bounded_in_time():
    agent, glovebox = load("agent", AGENT), Glovebox()
    agent.preload(glovebox, ["json"], ["re"])
    assert glovebox.bounds == [("json", 20), ("re", 20), ("", 0)]


def test_what_an_owner_has_preloaded_is_told_of_before_it_is_imported():
    agent, glovebox = load("agent", AGENT), Glovebox()
    agent.preload(glovebox, ["json"], ["re", "wave"])
    assert glovebox.told == ["module re", "module wave", "what follows the imports"]
    with pytest.raises(Refused):
        agent.preload(glovebox, [], ["no_such_module"])
    assert glovebox.told[-1] == "module no_such_module"
    del glovebox.told[:]
    agent.preload(glovebox, ["json"], [])
    assert glovebox.told == []


HANG = """
import _imp, time
from _frozen_importlib import ModuleSpec
glovebox = _imp.create_dynamic(ModuleSpec("_glovebox", None, origin=PATH))
glovebox.bound("slow_module", 1)
time.sleep(60)
"""


def test_an_import_that_hangs_ends_the_zygote_and_is_named():
    from harness.server import PROGRAM
    module = Path(PROGRAM).resolve().parent / "src" / "box" / "_glovebox.so"
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    pid = os.posix_spawn("/usr/bin/python3", ["python3", "-c", HANG.replace("PATH", repr(str(module)))],
                         os.environ, file_actions=[(os.POSIX_SPAWN_DUP2, theirs.fileno(), 3)])
    theirs.close()
    ours.settimeout(30)
    said = ours.recv(4096)
    ours.close()
    assert b"module slow_module: its import takes longer than 1 s" in said
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 125
