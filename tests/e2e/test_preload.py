"""Modules that the operator has preloaded (--preload)."""
import pytest

from harness.poll import wait_for

ROOMY = {"timeout_seconds": 30, "memory_limit_mb": 256, "cpu_limit": 1}
HAS_NUMPY = "import importlib.util; print(importlib.util.find_spec('numpy') is not None)"


def warm(server):
    """Wait until the warm interpreter is there, or is not to be had."""
    def settled():
        h = server.health().json()
        return h if h["warm"] not in ("starting",) and h["ready_cells"] == h["pool_size"] else None

    return wait_for("a pool that is full", settled)


@pytest.fixture(scope="module")
def with_numpy():
    from harness.life import finish, need_program
    from harness.server import Server
    need_program()
    s = Server("--cold=false", "--preload", "numpy,xml.dom.minidom", "--pool-size", "4")
    try:
        s.start()
        assert s.execute(HAS_NUMPY, **ROOMY)["stdout"] == "True\n", "tests/: numpy is not installed"
        assert warm(s)["warm"] == "on"
        yield s
        finish(s)
    finally:
        s.stop()


def test_modules_that_are_preloaded_are_there_without_an_import_of_their_own(with_numpy):
    r = with_numpy.execute("import sys; print('numpy' in sys.modules, 'xml.dom.minidom' in sys.modules,"
                           " 'json' in sys.modules, 'sqlite3' in sys.modules)", **ROOMY)
    assert r["stdout"] == "True True True False\n"


def test_a_preloaded_numpy_works_and_has_one_thread(with_numpy):
    r = with_numpy.execute("import numpy as np, os\n"
                           "a = np.arange(250_000, dtype=float).reshape(500, 500)\n"
                           "print((a @ np.eye(500) == a).all(), int(a.sum()),"
                           " len(os.listdir('/proc/self/task')))", **ROOMY)
    assert (r["stdout"], r["stderr"]) == ("True 31249875000 1\n", "")


def test_numpys_random_numbers_differ_between_runs_of_one_zygote(with_numpy):
    code = "import numpy as np; print(np.random.random(), np.random.randint(1 << 62)," \
           " np.random.default_rng().random())"
    lines = [with_numpy.execute(code, **ROOMY)["stdout"].split() for _ in range(12)]
    for column in zip(*lines):
        assert len(set(column)) == len(lines)


def test_a_module_that_cannot_be_preloaded_is_named_and_runs_start_cold(serve):
    s = serve("--cold=false", "--preload", "json,no_such_module", "--pool-size", "1")
    health = wait_for("the refusal", lambda: (h := s.health().json())["warm"] == "lost" and h or None)
    assert "no_such_module" in str(health)
    assert s.execute("print('here')", **ROOMY)["stdout"] == "here\n"


def test_numpys_generator_gives_the_sequence_of_a_seed(with_numpy):
    code = "import numpy as np; np.random.seed(5); print(np.random.randint(0, 100, 5), np.random.random())"
    lines = {with_numpy.execute(code, **ROOMY)["stdout"] for _ in range(3)}
    assert lines == {"[99 78 61 16 73] 0.48841118879482914\n"}


def test_a_preloaded_module_that_hooks_into_forks_works(serve):
    """Its functions run around each fork; without one, nothing of os.fork() is done."""
    s = serve("--cold=false", "--preload", "concurrent.futures.thread", "--pool-size", "2")
    assert warm(s)["warm"] == "on"
    code = "import concurrent.futures.thread as t, threading, random\n" \
           "lock = t._global_shutdown_lock\n" \
           "print(lock.locked(), list(t.ThreadPoolExecutor(2).map(abs, [-1, -2])))\n" \
           "print(threading.main_thread().native_id, threading.active_count() >= 1)\n" \
           "print(random.random())\n"
    outs = [s.execute(code, **ROOMY)["stdout"].splitlines() for _ in range(4)]
    assert {tuple(o[:2]) for o in outs} == {("False [1, 2]", "2 True")}
    assert len({o[2] for o in outs}) == 4
