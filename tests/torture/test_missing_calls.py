"""A kernel that lacks a system call, or a flag of one (tests/lib/without.c): the server falls back
as docs/zones/kernel.md says and all is as ever, or it goes on without the layer when it is told
to, or it does not start and says what is missing, what for, and what to do."""
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from harness.cli import glovebox
from harness.flaky import Kernel
from harness.server import PROGRAM, ROOT, on_a_kernel_without

# What is missing: what is said of it.
REFUSED = {
    "clone3=ENOSYS": ("clone3() with CLONE_INTO_CGROUP", "before its limits are in force"),
    "setns=EINVAL": ("setns() of a pidfd", "enter a cell"),
    "close_range=ENOSYS": ("close_range", "descriptors"),
    "pidfd_send_signal=ENOSYS": ("pidfd_send_signal()", "could not be killed"),
    "execveat=ENOSYS": ("execveat()", "sealed copy"),
    "fsopen=ENOSYS": ("fsopen()", "file system"),
    "fsconfig=ENOSYS": ("fsconfig()", "file system"),
    "fsmount=ENOSYS": ("fsmount()", "file system"),
    "fspick=ENOSYS": ("fspick()", "size that a request asks for"),
    "move_mount=ENOSYS": ("move_mount()", "mounted"),
    "mount_setattr=ENOSYS": ("mount_setattr()", "propagate"),
    "memfd_create=ENOSYS": ("memfd",),
    "getrandom=ENOSYS": ("getrandom()", "guessed"),
    # Layers.
    "pidfd_open=ENOSYS": ("layer watchdog is missing", "a hanging program would never end", "5.3"),
    "landlock_create_ruleset=ENOSYS": ("layer landlock is missing", "second wall", "lsm="),
    # No kernel of these days is without; a filter around a container may be.
    "seccomp=ENOSYS": ("seccomp",),
    "pivot_root=ENOSYS": ("pivot_root",),
    "unshare=ENOSYS": ("unshare",),
    "prctl/0:38=EINVAL": ("no new privileges",),
}
MISSING_LAYERS = {"pidfd_open=ENOSYS": "watchdog", "landlock_create_ruleset=ENOSYS": "landlock"}

# What is missing, and flags that go with it: all tests pass.
REPLACED = {
    "no Landlock": (["landlock_create_ruleset=ENOSYS", "landlock_add_rule=ENOSYS", "landlock_restrict_self=ENOSYS"],
                    ["--allow-degraded", "landlock"]),
    "no exit records": (["socket/0:16=EPROTONOSUPPORT"], []),
    "no MFD_EXEC": (["memfd_create/1&0x10=EINVAL"], []),
    "no scheduling classes": (["sched_setattr=ENOSYS"], []),
    "no listener beside somebody's": (["seccomp/1&0x8=EBUSY"], []),
    "no keyrings, no speculation control": (["keyctl=ENOSYS", "prctl/0:53=EINVAL"], []),
    "what the libraries use where it is there": (
        ["openat2=ENOSYS", "open_tree=ENOSYS", "statx=ENOSYS", "faccessat2=ENOSYS", "epoll_pwait2=ENOSYS",
         "rseq=ENOSYS", "pidfd_getfd=ENOSYS", "io_uring_setup=ENOSYS", "prctl/0:40=EINVAL"], []),
}
ESCAPE = ["test_privileges", "test_filesystem", "test_memory", "test_no_network"]
EVERYTHING = ([rule for rules, _ in REPLACED.values() for rule in rules],
              [flag for _, flags in REPLACED.values() for flag in flags])


def say(verb, rule, *more, **kw):
    env = {"PATH": os.environ["PATH"]}
    done = subprocess.run([*on_a_kernel_without([rule]), PROGRAM, verb, *more], capture_output=True, text=True,
                          timeout=60, env=env, check=False, **kw)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("rule", REFUSED)
def test_what_it_cannot_do_without_is_named_and_it_does_not_start(rule):
    status, out, err = say("serve", rule, "--listen", "127.0.0.1:0", stdin=subprocess.DEVNULL)
    assert status != 0 and "listening" not in out
    for words in REFUSED[rule]:
        assert words in err, err
    status, out, err = say("run", rule, "-", input="print(42)")
    assert (status, out) == (125, ""), (status, out, err)
    assert REFUSED[rule][0] in err, err


@pytest.mark.parametrize("rule", REFUSED)
def test_the_doctor_says_the_same(rule):
    status, out, err = say("doctor", rule, "--json")
    if rule == "memfd_create=ENOSYS":
        assert status == 1 and "memfd" in err
        return
    said = json.loads(out)
    missing = [layer["name"] for layer in said["layers"] if layer["in_force"] is False]
    assert status == 1 and not said["would_start"]
    if rule in MISSING_LAYERS:
        assert missing == [MISSING_LAYERS[rule]]
    else:
        assert not missing
        assert any(all(words in line for words in REFUSED[rule]) for line in said["advice"]), said["advice"]


def run_tests(rules, flags, *files):
    """The tests of these files, on such a kernel."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST")}
    env |= {"GLOVEBOX_TEST_WITHOUT": " ".join(rules), "GLOVEBOX_TEST_FLAGS": " ".join(flags)}
    done = subprocess.run([sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *files], cwd=ROOT, env=env,
                          capture_output=True, text=True, timeout=300, check=False)
    assert done.returncode == 0, done.stdout[-3000:]
    last = done.stdout.splitlines()[-1]
    assert " passed in " in last and "skipped" not in last, last


@pytest.fixture(scope="module")
def runs():
    """Two at a time: they mostly wait."""
    with ThreadPoolExecutor(2) as pool:
        begun = {what: pool.submit(run_tests, *REPLACED[what], "tests/e2e/test_execute.py") for what in REPLACED}
        begun |= {name: pool.submit(run_tests, *EVERYTHING, f"tests/escape/{name}.py") for name in ESCAPE}
        yield begun
        for future in begun.values():
            future.cancel()


@pytest.mark.parametrize("what", REPLACED)
def test_what_has_a_replacement_is_not_missed(runs, what):
    runs[what].result()


@pytest.mark.parametrize("name", ESCAPE)
def test_the_cage_holds_without_all_that_has_a_replacement(runs, name):
    runs[name].result()


def test_without_a_listener_the_log_says_so_once_and_a_denied_call_stays_denied(serve):
    rules, flags = REPLACED["no listener beside somebody's"]
    s = serve(*flags, without=rules)
    for _ in range(3):
        reply = s.run("import os\ntry: os.sched_setscheduler(0, 0, os.sched_param(0))\nexcept PermissionError as e: print(e.errno)")
        assert reply["stdout"] == "1\n" and not [d for d in reply["denials"] if d["layer"] == "seccomp"], reply
    assert s.log().count(" ev=denials ") == 1, s.log()


def test_a_layer_that_is_gone_is_told_to_everybody(serve):
    rules, flags = REPLACED["no Landlock"]
    s = serve(*flags, without=rules)
    reply = s.run("print(42)")
    assert reply["stdout"] == "42\n"
    health = s.health().json()
    assert health["degraded"] == ["landlock"] and "second wall" in health["warnings"][0], health
    # No other is let go by that.
    assert "landlock" not in health["layers"] and len(health["layers"]) == 20, health
    assert "landlock" in json.dumps(reply["isolation"]["degraded"]), reply["isolation"]
    assert reply["isolation"]["layers"] == health["layers"]
    assert " ev=layer_missing layer=landlock " in s.log()


def test_without_exit_records_runs_are_answered_by_the_usual_wait(serve):
    s = serve("--log-level", "debug", without=["socket/0:16=EPROTONOSUPPORT"])
    assert s.run("print(42)")["stdout"] == "42\n"
    assert " ev=exit_records state=off why=\"taskstats: netlink socket: " in s.log()
    assert " end=wait" in s.log() and " end=record" not in s.log()
    status, out, _ = say("doctor", "socket/0:16=EPROTONOSUPPORT")
    assert status == 0 and "runs are answered half a millisecond later: taskstats" in out


# What no filter of system calls can take away: a kernel of tests/lib/flaky_page.c lacks it.
HIDDEN = {
    "file:cgroup.kill": ("cgroup-kill", "could not be killed whole", "Linux 5.14"),
    "fsopen:overlay": ("read-only-root", "overlay", "modprobe overlay"),
    "fsopen:tmpfs": ("read-only-root", "tmpfs", "CAP_SYS_ADMIN"),
    "fsopen:proc": ("proc", "see the host's /proc", "unmasked /proc"),
    "file:pids.max": ("cgroup-pids", "fork bomb", "pids controller"),
    "clone3:into_cgroup": (None, "clone3() with CLONE_INTO_CGROUP", "5.7"),
    "file:cgroup.events": (None, "cgroup.events", "No such file"),
}


@pytest.fixture(scope="module")
def kernel():
    k = Kernel()
    yield k
    k.folder.cleanup()


@pytest.mark.parametrize("rule", HIDDEN)
def test_what_the_kernel_was_built_without_is_named_and_it_does_not_start(kernel, rule):
    layer, *words = HIDDEN[rule]
    kernel.hide(rule)
    said = {}
    for verb in (["serve", "--listen", "127.0.0.1:0"], ["doctor", "--json"]):
        done = subprocess.run([kernel.program, *verb], capture_output=True, text=True, timeout=60,
                              stdin=subprocess.DEVNULL, check=False)
        assert done.returncode == 1, (done.stdout, done.stderr)
        said[verb[0]] = done.stdout or done.stderr
    for word in words:
        assert word in said["serve"] and word in said["doctor"], said
    missing = [row["name"] for row in json.loads(said["doctor"])["layers"] if row["in_force"] is False]
    assert missing == ([layer] if layer else []), said
    assert layer is None or f"layer {layer} is missing" in said["serve"]


@pytest.mark.parametrize("rule", ["file:ns_last_pid", "file:memory.peak", "file:pids.peak"])
def test_what_only_saves_work_is_not_missed(kernel, rule):
    kernel.hide(rule)
    s = kernel.server()
    try:
        s.start()
        before = s.rest()
        for n in range(6):
            assert s.run(f"print({n})")["stdout"] == f"{n}\n"
            assert s.run("b = bytearray(1 << 30)", memory_limit_mb=32)["status"] in ("memory_exceeded", "error")
        s.settles_to(before)
        assert s.stop() == 0, s.log()[-2000:]
        s.must_leave_nothing()
    finally:
        s.stop()
        kernel.hide()


def test_this_kernel_lacks_nothing():
    """Else the tests above would show little."""
    assert glovebox("doctor").returncode == 0
