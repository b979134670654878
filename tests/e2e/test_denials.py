"""Why it was stopped: denials[] and hint say what a run has run into, and nothing else."""
import re

import pytest

from harness import census
from harness.cli import glovebox
from harness.poll import PATIENCE

ROOMY = ["--timeout", "30", "--memory", "128", "--cpu", "1"]
ANSWERED = 128  # denied calls of one run that are answered one by one (launch/refusals.h)

CALL = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
def call(name, *args):
    return getattr(libc, name)(*args), ctypes.get_errno()
"""
# From outside it is the same whether it is made in Python or by a library.
CONNECT = """
import socket
for family, address in {tries!r}:
    try:
        socket.socket(family, 2).connect((address, 9))
        print('GOT')
    except OSError as e:
        print(e.errno)
"""
ADDRESSES = [(2, "192.0.2.1"), (2, "198.51.100.7"), (10, "2001:db8::1")]  # RFC 5737, RFC 3849


def told(reply):
    """The denials without their words; that they have them is seen here."""
    for d in reply.denials:
        assert d["what"] and d["count"] >= 1 and d["evidence"] in ("counted", "stderr"), d
        assert set(d) == {"layer", "what", "count", "exact", "evidence"}
    assert (reply.hint is None) == (reply.denials == []), reply
    assert reply.hint is None or ("\n" not in reply.hint and 10 < len(reply.hint) < 256), reply.hint
    return [(d["layer"], d["count"], d["exact"], d["evidence"]) for d in reply.denials]


def test_each_attempt_to_reach_the_outside_is_counted_by_the_kernel(server):
    r = server.run(CONNECT.format(tries=ADDRESSES))
    assert r.stdout == "101\n" * 3
    assert told(r) == [("network", 3, True, "counted")]
    assert r.hint.startswith("this run has no network; put what the program needs into its code, or set allow_network")


def test_what_stays_inside_is_no_attempt_to_leave(server):
    r = server.run("""
import socket, threading
s = socket.create_server(('127.0.0.1', 0))
t = threading.Thread(target=lambda: s.accept()[0].send(b'hi'))
t.start()
print(socket.create_connection(s.getsockname()).recv(2))
t.join()
try:
    socket.create_connection(('127.0.0.1', 1), 1)
except ConnectionRefusedError:
    print('refused')
""")
    assert (r.stdout, told(r)) == ("b'hi'\nrefused\n", [])


def test_a_name_that_was_looked_up_is_known_from_the_error_output_only(server):
    r = server.run("import urllib.request\nurllib.request.urlopen('http://name.invalid/')")
    assert told(r) == [("network", 1, False, "stderr")]
    assert "its error output says" in r.hint and "no network" in r.hint


@pytest.mark.parametrize("code", [
    "fetch('http://name.invalid').then(r => r.text()).then(console.log)",
    "require('http').get('http://name.invalid')",
    "require('dns').promises.resolve4('name.invalid')",
])
def test_a_name_that_node_looks_up_is_known_as_well(server, code):
    r = server.run(code, language="javascript", timeout_seconds=30, cpu_limit=1)
    assert told(r) == [("network", 1, False, "stderr")], r
    assert "no network" in r.hint


@pytest.mark.parametrize("fields, hint", [
    ({"code": "import not_there"}, "nothing can be installed in a run; GET /runtimes"),
    ({"code": "import os, subprocess\nopen('x', 'w').close()\nos.chmod('x', 0o755)\nsubprocess.run(['/workspace/x'])"},
     "start its interpreter instead"),
    ({"code": "echo echo >x; chmod +x x; ./x", "language": "bash"}, "start its interpreter instead"),
    ({"code": "int main(", "language": "c", "timeout_seconds": 30}, "compile.stderr"),
])
def test_a_hint_may_stand_without_a_denial(server, fields, hint):
    r = server.run(**fields)
    assert r.status == "error" and r.denials == [] and hint in r.hint, r


def test_refused_processes_are_counted(server):
    r = server.run("""
import os, time
refused = 0
for i in range(40):
    try:
        if os.fork() == 0:
            time.sleep(30)
            os._exit(0)
    except BlockingIOError:
        refused += 1
print(refused)
""", pids_limit=10)
    assert told(r) == [("pids", int(r.stdout), True, "counted")]
    assert re.search(r"raise pids_limit \(now 10, at most \d+ here\)", r.hint)
    assert any("pids_limit (10) refused" in w for w in r.warnings)


def test_too_much_memory_says_what_to_raise(server):
    r = server.run("x = bytearray(200 << 20)\nfor i in range(0, len(x), 4096): x[i] = 1",
                   memory_limit_mb=32)
    (denial,) = told(r)
    assert (r.status, denial[0], denial[3]) == ("memory_exceeded", "memory", "counted")
    assert r.hint.startswith("it used more memory than it may; raise memory_limit_mb (now 32, ")


def test_files_that_took_the_memory_are_named_as_the_reason(server):
    r = server.run("f = open('/tmp/a', 'wb')\nwhile True: f.write(bytes(1 << 20))", memory_limit_mb=32)
    assert r.status == "memory_exceeded" and told(r)[0][0] == "memory"
    assert "files in /workspace, /tmp or /dev/shm, which count as memory" in r.hint


def test_memory_that_nobody_gave_is_known_from_the_error_output_only(server):
    r = server.run("x = bytearray(1 << 46)")
    assert told(r) == [("memory", 1, False, "stderr")]


def test_too_many_files_are_seen_at_the_end(server):
    code = "for i in range(5000): open(f'/workspace/{i}', 'w').close()"
    r = server.run(code, memory_limit_mb=256)
    assert told(r) == [("disk", 1, False, "counted")]
    assert r.denials[0]["what"] == "no more files in /workspace" and "fewer files" in r.hint
    # With the error caught and all files gone again there is nothing to be seen.
    gone = server.run(f"import os\ntry:\n    {code}\nexcept OSError: pass\n"
                      "for n in os.listdir('/workspace'): os.unlink(n)", memory_limit_mb=256)
    assert told(gone) == []


def test_a_file_that_is_too_large_ends_a_program_that_does_not_ignore_the_signal(server):
    r = server.run("import signal\nsignal.signal(signal.SIGXFSZ, signal.SIG_DFL)\n"
                   "open('a', 'wb').truncate(1 << 40)")
    assert (r.signal, told(r)) == ("SIGXFSZ", [("disk", 1, True, "counted")])
    assert "memory_limit_mb" in r.hint
    said = server.run("open('a', 'wb').truncate(1 << 40)")
    assert told(said) == [("disk", 1, False, "stderr")]


def test_the_clock_and_the_cpu_say_what_to_raise(server):
    r = server.run("import time; time.sleep(60)", timeout_seconds=0.3)
    assert told(r) == [("wall_clock", 1, True, "counted")]
    assert r.hint.startswith("its time was up; raise timeout_seconds (now 0.3, ")
    r = server.run("while True: pass", timeout_seconds=30, cpu_time_seconds=0.2)
    assert told(r) == [("cpu_time", 1, True, "counted")]
    assert "raise cpu_time_seconds (now 0.2, " in r.hint


def test_a_run_that_its_share_of_a_cpu_made_late_is_told_of_that_first(server):
    r = server.run("while True: pass", timeout_seconds=2, cpu_limit=0.05)
    held, late = told(r)
    assert held[0] == "cpu" and late == ("wall_clock", 1, True, "counted")
    assert held[1] == int(r.usage["throttled_ms"]) and "raise cpu_limit (now 0.05, " in r.hint


def test_dropped_output_is_counted_to_the_byte(server):
    r = server.run("import sys\nprint('x' * 3000000)\nsys.stderr.write('y' * 2000000)")
    dropped = [r.dropped("stdout"), r.dropped("stderr")]
    assert told(r) == [("output", n, True, "counted") for n in dropped] and min(dropped) > 0


@pytest.mark.parametrize("code", [
    "open('/etc/x', 'w')", "open('/etc/passwd', 'a')", "import os; os.mkdir('/usr/x')",
    "import subprocess; subprocess.run(['touch', '/usr/bin/x'], check=False).returncode and exit(1)",
])
def test_a_write_to_a_read_only_path_is_known_from_the_error_output_only(server, code):
    r = server.run(code)
    assert told(r) == [("read_only", 1, False, "stderr")]
    assert "write below /workspace or /tmp" in r.hint


def test_denied_system_calls_are_counted_by_name_and_answered_as_ever(server):
    r = server.run(CALL + """
import os, socket
for i in range(3):
    print(call('mount', b'x', b'/', b'tmpfs', 0, None))
print(call('unshare', 0x10000000))
for kind in (40, 1, 0), (2, 3, 1):
    try:
        socket.socket(*kind)
    except OSError as e:
        print(e.errno)
try:
    os.sched_setaffinity(0, {0})
except OSError as e:
    print(e.errno)
""")
    assert r.stdout == "(-1, 1)\n" * 4 + "97\n1\n1\n"
    assert [(d["layer"], d["what"], d["count"], d["exact"]) for d in r.denials] == [
        ("seccomp", "mount", 3, True), ("seccomp", "unshare", 1, True),
        ("seccomp", "socket", 2, True), ("seccomp", "sched_setaffinity", 1, True)]
    assert r.hint.startswith("mount: this system call") and told(r)


def test_calls_of_children_and_threads_count_for_their_run(server):
    r = server.run(CALL + """
import os, threading
pid = os.fork()
if pid == 0:
    call('ptrace', 0, 0, 0, 0)
    os._exit(0)
os.waitpid(pid, 0)
t = threading.Thread(target=call, args=('ptrace', 0, 0, 0, 0))
t.start()
t.join()
""")
    assert [(d["what"], d["count"]) for d in r.denials] == [("ptrace", 2)]


def test_libraries_that_look_what_there_is_are_denied_nothing(server):
    r = server.run("""
import asyncio, concurrent.futures, multiprocessing, os, shutil, socket, sqlite3, ssl, subprocess, tempfile, threading
if __name__ == '__main__':
    with multiprocessing.Pool(2) as pool:
        pool.map(abs, [1, -2])
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        list(pool.map(abs, range(8)))
    async def child():
        p = await asyncio.create_subprocess_exec('true')
        await p.wait()
    asyncio.run(child())
    subprocess.run(['ls', '-l', '/'], capture_output=True, check=True)
    with tempfile.TemporaryDirectory() as d:
        sqlite3.connect(d + '/a').execute('create table a (b)')
        shutil.copytree('/etc/ssl', d + '/ssl')
    ssl.create_default_context()
    print(socket.getaddrinfo('localhost', 80)[0][4][1], os.cpu_count() > 0)
""", memory_limit_mb=256)
    assert (r.stdout, r.stderr, told(r)) == ("80 True\n", "", [])


FLOODS = {
    "seccomp": CALL + "for i in range(100000): call('unshare', 0x20000)\n",
    "network": "import socket\ns = socket.socket(2, 2)\nfor i in range(100000):\n"
               "    try: s.connect(('192.0.2.1', 9))\n    except OSError: pass\n",
    "pids": "import os, time\nn = 0\nwhile n < 2000:\n    try:\n"
            "        if os.fork() == 0:\n            time.sleep(60)\n            os._exit(0)\n"
            "    except BlockingIOError: n += 1\n",
    "output": "import sys\nfor i in range(100000): sys.stdout.write('x' * 1000)\n",
}


@pytest.mark.parametrize("layer", FLOODS)
def test_a_flood_of_denials_costs_the_server_a_bounded_amount(server, layer):
    server.run("pass")
    before, answer = census.cpu_seconds(server.pid), server.run(FLOODS[layer], timeout_seconds=120)
    used = census.cpu_seconds(server.pid) - before
    (denial,) = told(answer)
    assert denial[0] == layer
    assert {"seccomp": denial[1:3] == (ANSWERED, False), "network": denial[1:3] == (100000, True),
            "pids": denial[1] >= 2000, "output": denial[1] > 90_000_000}[layer], denial
    # 100,000 answers would take it a second; a cage and a run take it some 5 ms.
    assert used < 0.4 * PATIENCE, f"the supervisor used {used:.2f} s"
    assert len(answer.denials) == 1 and server.run("print(1)").stdout == "1\n"


def test_a_call_that_is_no_longer_counted_is_still_denied(server):
    r = server.run(CALL + f"""
for i in range({ANSWERED + 10}):
    if call('sched_setaffinity', 0, 8, b'\\1' + bytes(7))[0] == 0:
        print('LET THROUGH')
print(call('sched_setaffinity', 0, 8, b'\\1' + bytes(7)), call('mount', b'x', b'/', b'tmpfs', 0, None))
""")
    assert r.stdout == "(-1, 38) (-1, 38)\n"
    assert [(d["what"], d["count"], d["exact"]) for d in r.denials] == [("sched_setaffinity", ANSWERED, False)]


def test_the_listener_is_nowhere_in_the_cell(server):
    r = server.run("import os\nprint(sorted(os.readlink(f'/proc/self/fd/{n}').split(':')[0] "
                   "for n in os.listdir('/proc/self/fd') if int(n) > 2))")
    assert "seccomp" not in r.stdout and told(r) == []


def test_a_program_that_dies_while_it_waits_for_an_answer_leaves_nothing(server):
    before = server.rest()
    r = server.run(CALL + """
import os, signal
for i in range(8):
    if os.fork() == 0:
        while True:
            call('ptrace', 0, 0, 0, 0)
""")
    assert r.status == "success" and {d["layer"] for d in r.denials} <= {"seccomp"}
    server.settles_to(before)


def test_the_next_program_in_a_cage_begins_at_zero(serve):
    s = serve("--pool-size", "1", "--max-runs", "1", "--cage-runs", "100")
    cage = "import os\nprint(os.readlink('/proc/self/ns/pid'))\n"
    seen = []
    for code, layer in ((CALL + "call('mount', b'x', b'/', b'tmpfs', 0, None)\n", "seccomp"), ("", None),
                        (CONNECT.format(tries=ADDRESSES), "network"), ("", None),
                        ("for i in range(5000): open(f'/tmp/{i}', 'w').close()", "disk"), ("", None),
                        ("import os\nfor i in range(40):\n    try: os.fork() or os._exit(0)\n"
                         "    except OSError: pass\n", "pids"), ("", None)) * 2:
        r = s.run(cage + code, pids_limit=8)
        seen.append(r.stdout.split()[0])
        assert [t[0] for t in told(r)][:1] == ([layer] if layer else []), (layer, r.denials)
    s.stop()
    s.must_leave_nothing()
    assert len(seen) == 16


def test_the_command_says_it_in_a_line_and_in_its_json():
    code = CONNECT.format(tries=ADDRESSES)
    done = glovebox("run", *ROOMY, "-", input=code)
    assert (done.returncode, done.stdout) == (0, b"101\n" * 3)
    assert re.fullmatch(rb"glovebox: hint: this run has no network; .* "
                        rb"\[network, attempts to reach an address outside: 3\]\n", done.stderr)
    assert glovebox("run", *ROOMY, "-", input="print(1)").stderr == b""
    done = glovebox("run", *ROOMY, "--json", "-", input=code)
    assert done.stderr == b"" and b'"layer":"network"' in done.stdout and b'"hint":"this run' in done.stdout


@pytest.mark.parametrize("code, flags, hint", [
    ("import time; time.sleep(60)", ["--timeout", "0.3"],
     r"its time was up; raise --timeout \(now 0.3, at most 300 here\) \[wall_clock, ended at --timeout: 1\]"),
    ("b = b'x' * (300 << 20)", ["--memory", "32"],
     r"it used more memory than it may; raise --memory \(now 32, at most [0-9.]+ here\) "
     r"\[memory, processes killed at --memory: 1\]"),
    ("import os, time\nfor i in range(9):\n    if os.fork() == 0: time.sleep(9)", ["--pids", "4"],
     r"it wanted more .*; raise --pids \(now 4, at most 512 here\) \[pids, .*\]"),
    # What only its error output says, which nobody keeps here.
    ("import sys, urllib.request\nsys.stderr.write('x\\n' * 100000)\nurllib.request.urlopen('http://name.invalid')", [],
     r"its error output says that it looked up a name; this run has no network; put .*, or give it one \(--allow-network\) "
     r"\[network, look-ups of a name: at least 1\]"),
    ("open('/etc/x', 'w')", [],
     r"its error output says .*; write below /workspace or /tmp \[read_only, .*: at least 1\]"),
    ("import not_there", [], r"its error output says .*; an image may have it \(--image\)"),
])
def test_the_command_says_it_in_terms_of_its_options(code, flags, hint):
    done = glovebox("run", *ROOMY, *flags, "-", input=code)
    assert done.returncode != 0
    last = done.stderr.decode().splitlines()[-1]
    assert re.fullmatch(f"glovebox: hint: {hint}", last), last


def test_the_command_says_nothing_behind_a_compiler():
    done = glovebox("run", *ROOMY, "--language", "c", "-", input="int main(")
    assert done.returncode == 1 and b"error" in done.stderr and b"hint" not in done.stderr, done
