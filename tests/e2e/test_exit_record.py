"""A run is answered by the kernel's exit record of its main process, or else by wait4(): with the
same reply, and never while something of it can still execute."""
import ctypes
import re
import subprocess

from harness.poll import wait_for
from harness.server import PROGRAM

# Whatever GLOVEBOX_TEST_START says: later flags win.
WARM = ["--cold=false", "--pool-size", "4", "--log-level", "debug"]
PR_CAPBSET_DROP, CAP_NET_ADMIN = 24, 12

PROGRAMS = {
    "end": "print('hello')",
    "status": "import sys; print('out'); print('err', file=sys.stderr); sys.exit(7)",
    "255": "raise SystemExit(255)",
    "error": "1 / 0",
    "os._exit": "import os; os.write(1, b'x' * 60000); os._exit(3)",
    "SIGKILL": "import os, signal; print('so far', flush=True); os.kill(os.getpid(), signal.SIGKILL)",
    "SIGSEGV": "import ctypes; ctypes.string_at(0)",
    "SIGTERM": "import os, signal; os.kill(os.getpid(), signal.SIGTERM)",
    "thread": "import threading; t = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()",
    "thread left": "import threading, time, os\n"
                   "threading.Thread(target=time.sleep, args=(60,), daemon=True).start()\nos._exit(5)",
    "exit by another thread": "import threading, time, os\n"
                              "threading.Thread(target=os._exit, args=(6,)).start()\ntime.sleep(60)",
    "child": "import subprocess; print(subprocess.run(['/bin/echo', 'child'], capture_output=True).stdout)",
    "child left": "import os, time\nif os.fork(): raise SystemExit(8)\nos.close(1); os.close(2); time.sleep(60)",
    "exec": "import os; os.execv('/bin/sh', ['sh', '-c', 'echo exec; exit 9'])",
    "memory": "b = bytearray(300 << 20)",
    "full pipe": "import sys; sys.stdout.write('y' * 65536)",
}
SAME = ("status", "stdout", "stderr", "exit_code", "cause", "signal", "output")


def ends(server):
    """How the runs were ended so far, in order."""
    return re.findall(r" ev=answer run=\d+ cause=\w+ end=(\w+)", server.log())


def without_net_admin():
    """The right to register for records, which nothing else of the server needs."""
    assert ctypes.CDLL(None, use_errno=True).prctl(PR_CAPBSET_DROP, CAP_NET_ADMIN, 0, 0, 0) == 0


def run_at_rest(server, code, **fields):
    """The reply, and by what it was ended."""
    server.rest()
    reply = server.run(code, **fields)
    # A line is written after its answer.
    answers = sum(path == "/execute" and answer.status == 200 for _, path, _, answer in server.exchanges)
    wait_for("the lines that tell of ends", lambda: len(ends(server)) == answers)
    return reply, ends(server)[-1]


def run_until(server, code, how):
    """Run it until one was ended so. On a busy machine not every record is used: one that comes
    when not all CPU time is accounted for is not, nor one that comes after the end itself."""
    def once():
        reply, end = run_at_rest(server, code)
        return reply if end == how else None

    return wait_for(f"a run that is ended by {how}", once)


def test_a_run_that_is_all_of_its_cell_is_ended_by_its_record(serve):
    s = serve(*WARM)
    assert "exit_records" not in s.log()
    for name in ("end", "status", "full pipe"):
        reply = run_until(s, PROGRAMS[name], "record")
        assert reply.exit_code == (7 if name == "status" else 0)
    assert reply.stdout == "y" * 65536
    s.settles_to(s.rest())
    assert " lvl=err " not in s.log()


def test_with_a_child_left_alive_the_run_is_waited_for(serve):
    s = serve(*WARM)
    for _ in range(20):
        reply, end = run_at_rest(s, PROGRAMS["child left"])
        assert not s.programs(), "answered while a child of it lives"
        assert (end, reply.exit_code) == ("wait", 8)


def test_with_other_threads_the_run_is_waited_for(serve):
    s = serve(*WARM)
    for name in ("thread", "thread left", "exit by another thread"):
        _, end = run_at_rest(s, PROGRAMS[name])
        assert end == "wait", name


def test_a_record_is_used_only_when_the_cpu_time_is_told(serve):
    """The kernel adds what a running process uses at its ticks. Here it has had no reason to."""
    s = serve(*WARM)
    spin = "import os, time\nt = time.perf_counter()\nwhile time.perf_counter() < t + 0.003: pass\nos._exit(0)"
    for _ in range(40):
        reply, _ = run_at_rest(s, spin)
        # Preempted, it has less than it has waited for; then it is not ended by its record.
        told = reply["usage"]["cpu_ms"]
        assert told >= 2.6 or ends(s)[-1] == "wait", told


def test_what_a_run_used_is_told_at_its_end(serve):
    """At least what the program itself has measured just before, but for what may be missing of a
    run that is answered by its record."""
    s = serve(*WARM)
    work = "import time\nt = time.thread_time()\nfor i in range(200000): pass\n" \
           "print(time.thread_time() - t, flush=True)"
    for _ in range(60):
        reply, end = run_at_rest(s, work)
        told, used = reply["usage"]["cpu_ms"], 1000 * float(reply.stdout)
        assert told >= used - 0.31, (told, used, end)


def test_without_records_the_replies_are_the_same(serve):
    with_, without = serve(*WARM), serve(*WARM, preexec=without_net_admin)
    assert without.log().count(" ev=exit_records state=off ") == 1
    for name, code in PROGRAMS.items():
        a, b = with_.run(code), without.run(code)
        assert {k: a[k] for k in SAME} == {k: b[k] for k in SAME}, name
        assert set(a["usage"]) == set(b["usage"])
    assert set(ends(without)) == {"wait"}
    # Whatever a program has become by exec says nothing of its CPU time: its record is used on quick machines only.
    for name in ("end", "status", "error"):
        a, b = run_until(with_, PROGRAMS[name], "record"), without.run(PROGRAMS[name])
        assert {k: a[k] for k in SAME} == {k: b[k] for k in SAME}, name
    assert " ev=exit_record " not in with_.log(), "a record said something else than wait4()"


def test_the_faults_of_a_run_mean_the_same(serve):
    with_, without = serve(*WARM), serve(*WARM, preexec=without_net_admin)
    touch = "b = bytearray(4 << 20)"
    for code in (touch, f"import os\nif os.fork(): os.wait()\nelse:\n    {touch}\n    os._exit(0)"):
        early = run_until(with_, code, "record")["usage"]["minor_faults"]
        late = run_until(without, code, "wait")["usage"]["minor_faults"]
        assert early > 1024 and abs(early - late) < 0.1 * late, (early, late)


def test_doctor_says_that_there_are_none_and_starts_all_the_same():
    done = subprocess.run([PROGRAM, "doctor"], preexec_fn=without_net_admin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "taskstats" in done.stdout
    done = subprocess.run([PROGRAM, "doctor"], capture_output=True, text=True, check=False)
    assert done.returncode == 0 and "taskstats" not in done.stdout
