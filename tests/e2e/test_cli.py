"""The command line: run, doctor, serve's flags, and what it says when it cannot."""
import ctypes
import hashlib
import json
import os
import re
import resource
import signal
import stat
import subprocess

import pytest

from harness import census
from harness.background import Background
from harness.cli import glovebox
from harness.poll import wait_for
from harness.reply import Reply
from harness.server import PROGRAM

ROOMY = ("--timeout", "30", "--cpu", "1")


def run(code, *flags, **kw):
    """`glovebox run -` with this program."""
    return glovebox("run", *ROOMY, *flags, "-", input=code, **kw)


def fails_with_125(done):
    assert done.returncode == 125, done
    assert done.stdout == b""
    assert done.stderr.startswith(b"glovebox: ") and done.stderr.endswith(b"\n"), done.stderr
    return done.stderr.decode()


# glovebox run -------------------------------------------------------------------


def test_run_needs_no_server_and_its_output_is_the_programs(tmp_path):
    script = tmp_path / "script.py"
    script.write_text("import sys\nprint('out')\nprint('err', file=sys.stderr)\n")
    done = glovebox("run", *ROOMY, script)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"out\n", b"err\n")


def test_run_passes_bytes_through_unchanged():
    done = run("import os; os.write(1, bytes(range(256))); os.write(2, b'\\xff\\0')")
    assert (done.stdout, done.stderr) == (bytes(range(256)), b"\xff\0")


@pytest.mark.parametrize("code, exit_code", [
    ("", 0), ("raise SystemExit(3)", 3), ("raise SystemExit(125)", 125), ("1/0", 1),
    ("import os; os.abort()", 134), ("import os; os.kill(os.getpid(), 9)", 137),
])
def test_run_exits_with_the_programs_exit_code(code, exit_code):
    assert run(code).returncode == exit_code


def test_run_exits_with_124_at_the_timeout_and_keeps_the_output():
    done = glovebox("run", "--timeout", "1", "-", input="print('so far')\nwhile True: pass")
    assert (done.returncode, done.stdout) == (124, b"so far\n")


def test_run_exits_with_137_over_the_memory_limit_and_keeps_the_output():
    done = run("print('so far')\nb = b'x' * (300 << 20)", "--memory", "64")
    assert (done.returncode, done.stdout) == (137, b"so far\n")


def test_run_takes_pids():
    done = run("import os, time\nn = 0\ntry:\n  while True:\n    if os.fork() == 0: time.sleep(9)\n"
               "    n += 1\nexcept OSError: print(n)", "--pids", "6")
    assert done.stdout == b"5\n"


def test_run_gives_the_stdin_file_to_the_program(tmp_path):
    data = bytes(range(256)) * 4000
    (tmp_path / "in").write_bytes(data)
    done = run("import sys, hashlib; print(hashlib.sha256(sys.stdin.buffer.read()).hexdigest())",
               "--stdin", tmp_path / "in")
    assert done.stdout.decode().strip() == hashlib.sha256(data).hexdigest()


def test_run_of_a_file_leaves_the_programs_stdin_at_its_end(tmp_path):
    (tmp_path / "s.py").write_text("import sys; print(repr(sys.stdin.read()))")
    done = glovebox("run", *ROOMY, tmp_path / "s.py", input=b"not for the program")
    assert done.stdout == b"''\n"


def test_run_json_is_the_reply_of_the_api():
    done = run("print('hi'); raise SystemExit(4)", "--json")
    reply = Reply(json.loads(done.stdout)).check()
    assert (reply.status, reply.stdout, reply.exit_code) == ("error", "hi\n", 4)
    assert done.returncode == 4 and done.stderr == b""


def test_run_json_has_both_streams_as_one_list_where_that_is_asked_for():
    code = "import os, time\nfor i in range(4):\n    os.write(1 + i % 2, b'%d\\n' % i)\n    time.sleep(0.2)"
    reply = Reply(json.loads(run(code, "--json", "--interleaved").stdout)).check()
    assert (reply.stdout, reply["stderr"]) == ("0\n2\n", "1\n3\n")
    told = reply["interleaved"]
    assert (told["chunks_omitted"], told["bytes_omitted"]) == (0, 0)
    assert [(c["stream"], c["text"]) for c in told["chunks"]] == [
        ("stdout", "0\n"), ("stderr", "1\n"), ("stdout", "2\n"), ("stderr", "3\n")]
    times = [c["ms"] for c in told["chunks"]]
    assert times[0] < reply["execution_time_ms"] and all(b - a >= 195 for a, b in zip(times, times[1:])), times
    assert times[-1] <= reply["execution_time_ms"] + 50
    assert json.loads(run(code, "--json").stdout)["interleaved"] is None


@pytest.mark.parametrize("code, told", [("int main(void) { return 0; }", {"chunks": [], "chunks_omitted": 0, "bytes_omitted": 0}),
                                        ("int main(void) { return x; }", None)])
def test_the_list_is_of_the_program_and_not_of_its_compiler(code, told):
    done = run(code, "--json", "--interleaved", "--language", "c", "--memory", "512", "--timeout", "20")
    assert json.loads(done.stdout)["interleaved"] == told, done


@pytest.mark.parametrize("name, args, code, hint", [
    ("a.sh", [], "echo $((6 * 7))", "{} was run as Python; --language bash runs it as that"),
    ("a.js", [], "let x = 6", "{} was run as Python; --language javascript runs it as that"),
    ("a.sh", ["--language", "bash"], "echo hi", "--language and --image go before {}; what follows it is the program's own"),
    ("a.sh", [], "print('hi')", None), ("a.py", [], "echo hi", None), ("noname", [], "echo hi", None),
])
def test_run_of_what_does_not_look_like_python_says_so_when_it_has_failed(tmp_path, name, args, code, hint):
    (tmp_path / name).write_text(code)
    said = glovebox("run", *ROOMY, tmp_path / name, *args).stderr.decode()
    if hint:
        assert said.endswith(f"glovebox: hint: {hint.format(tmp_path / name)}\n"), said
    else:
        assert "hint" not in said
    assert "hint" not in glovebox("run", *ROOMY, "--language", "bash", tmp_path / name).stderr.decode()


@pytest.mark.parametrize("args, word", [
    (["--figures", "png", "-"], "--interleaved and --output-bytes need --json"),
    (["--interleaved", "-"], "--interleaved and --output-bytes need --json"),
    (["--timeout", "5sec", "-"], 'timeout: "5sec" is not above 0 and of the form 3, 1.5s, 200ms or 2m'),
    (["--memory", "64MBit", "-"], "64 (MiB), 64M or 1.5G"),
    (["--memry", "64", "-"], "there is no option --memry; did you mean --memory?"),
    (["--language", "Python", "-"], 'none of those known here; did you mean "python"?'),
    (["/nonexistent.py"], "/nonexistent.py"), (["/tmp"], "/tmp"),
    (["--timeout", "0", "-"], "timeout"), (["--timeout", "x", "-"], "timeout"),
    (["--timeout", "-1", "-"], "timeout"), (["--timeout", "nan", "-"], "timeout"),
    (["--memory", "1e30", "-"], "memory"), (["--memory", "", "-"], "memory"),
    (["--cpu", "0", "-"], "cpu"), (["--pids", "0", "-"], "pids"), (["--pids", "1.5", "-"], "pids"),
    (["--stdin", "/nonexistent", "-"], "/nonexistent"), (["--no-such-flag", "-"], "no-such-flag"),
    ([], "FILE"), (["a.py", "b.py"], ""),
])
def test_run_fails_with_125_and_says_what_is_wrong(args, word):
    text = fails_with_125(glovebox("run", *args, input="print('was run')"))
    assert word in text


def test_run_without_the_rights_says_so():
    done = subprocess.run([PROGRAM, "run", "-"], input=b"print('was run')", capture_output=True,
                          timeout=60, user=65534, group=65534, extra_groups=[], check=False,
                          env={"PATH": "/usr/bin:/bin"})
    text = fails_with_125(done)
    assert "root" in text or "CAP_SYS_ADMIN" in text or "right" in text, text


def ignore_every_signal():
    """Also 32 and 33, which the C library keeps for itself."""
    libc = ctypes.CDLL(None)
    ignore = (ctypes.c_ulong * 4)(1)  # the kernel's struct sigaction, SIG_IGN
    for sig in range(1, 65):
        libc.syscall(13, sig, ctypes.byref(ignore), None, 8)


SIGNALS = "print(*[l.split()[1] for l in open('/proc/self/status') if l[:6] in ('SigBlk', 'SigIgn', 'SigCgt')])"
# What Python itself sets: SIGPIPE and SIGXFSZ ignored, SIGINT caught.
PYTHONS = f"{0:016x} {1 << 12 | 1 << 24:016x} {1 << 1:016x}\n"


def test_signals_that_the_caller_ignores_are_not_ignored_in_a_run():
    done = run(SIGNALS, preexec_fn=ignore_every_signal)
    assert done.stdout.decode() == PYTHONS


@pytest.mark.parametrize("start", [["--cold"], ["--cold=false"]], ids=["cold", "warm"])
def test_signals_that_the_caller_ignores_are_not_ignored_in_a_servers_cells(serve, start):
    s = serve(*start, preexec=ignore_every_signal)
    assert s.run(SIGNALS).stdout == PYTHONS
    s.rest()
    assert s.run(SIGNALS).stdout == PYTHONS


def test_run_is_killed_whole_when_the_command_is_killed(tmp_path):
    mark = tmp_path / "ready"
    mark.touch()
    base = 3_900_000_000
    p = subprocess.Popen([PROGRAM, "run", "--timeout", "200", "-"], stdin=subprocess.PIPE,
                         stdout=subprocess.PIPE, env={"PATH": "/usr/bin:/bin",
                                                      "GLOVEBOX_UID_BASE": str(base)})
    try:
        p.stdin.write(b"import time; print('on', flush=True); time.sleep(200)")
        p.stdin.close()
        assert p.stdout.readline() == b"on\n"
        assert census.program_processes(base)
    finally:
        p.kill()
        p.wait()
        p.stdout.close()
    wait_for("the program's end", lambda: not census.program_processes(base))


# doctor, version, help -------------------------------------------------------------


def test_doctor_lists_every_layer_and_says_that_the_server_would_start():
    done = glovebox("doctor")
    text = done.stdout.decode()
    assert done.returncode == 0, done
    for layer in ("user-namespace", "pid-namespace", "mount-namespace", "ipc-namespace",
                  "uts-namespace", "cgroup-namespace", "network-namespace", "read-only-root",
                  "proc", "cgroup-memory", "swap-off", "cgroup-cpu", "cgroup-pids", "cgroup-kill",
                  "capabilities", "no-new-privs", "seccomp", "landlock", "rlimits", "uid-range",
                  "watchdog"):
        assert layer in text, layer


def doctor_as_nobody(*flags):
    done = subprocess.run([PROGRAM, "doctor", *flags], capture_output=True, timeout=60, user=65534,
                          group=65534, extra_groups=[], check=False, stdin=subprocess.DEVNULL,
                          env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 1 and done.stderr == b"", done
    return done.stdout.decode()


def test_doctor_without_the_rights_calls_nothing_missing_that_it_did_not_try():
    text = doctor_as_nobody()
    assert "MISSING" not in text and "remedy" not in text
    assert len(re.findall(r"^\S+ +not tried$", text, re.M)) == 21, text
    assert "needs root" in text and "sudo" in text
    report = json.loads(doctor_as_nobody("--json"))
    assert [layer["in_force"] for layer in report["layers"]] == [None] * 21
    assert report["would_start"] is False and "sudo" in report["advice"][0]


def limited(files, *args, env=None):
    """The command under a hard limit of open files."""
    def limit():
        resource.setrlimit(resource.RLIMIT_NOFILE, (files, files))

    return glovebox(*args, preexec_fn=limit, env=env, input="print('hi')")


@pytest.mark.parametrize("args", [["doctor"], ["run", *ROOMY, "-"]])
def test_a_hard_limit_of_256_open_files_is_enough_for_a_few_runs(args):
    done = limited(256, *args, env={"GLOVEBOX_MAX_RUNS": "3", "GLOVEBOX_POOL_SIZE": "0"})
    assert done.returncode == 0, done


@pytest.mark.parametrize("files, runs", [(40, 4), (128, 4), (300, 30)])
def test_too_few_open_files_are_told_with_the_number_that_is_needed(files, runs):
    env = {"GLOVEBOX_MAX_RUNS": str(runs), "GLOVEBOX_POOL_SIZE": "0"}
    done = limited(files, "doctor", "--json", env=env)
    report = json.loads(done.stdout)
    (missing,) = [layer for layer in report["layers"] if layer["in_force"] is False]
    assert done.returncode == 1 and report["advice"] == []
    assert missing["name"] == "rlimits" and "open files" in missing["remedy"]
    needed = int(re.search(rf"is {files}; max-runs {runs} and pool-size 0 need (\d+)$", missing["why"]).group(1))
    assert "rlimits" in fails_with_125(limited(files, "run", "-", env=env))
    assert limited(needed, "doctor", env=env).returncode == 0
    assert limited(needed - 1, "doctor", env=env).returncode == 1


@pytest.mark.parametrize("lacking", [["CAP_SYS_ADMIN"], ["CAP_SETGID"], ["CAP_MKNOD"],
                                     ["CAP_KILL", "CAP_SYS_PTRACE"]])
def test_a_root_that_lacks_capabilities_is_told_which(lacking):
    less = ["setpriv", "--bounding-set", ",".join("-" + c[4:].lower() for c in lacking), PROGRAM]
    done = subprocess.run([*less, "doctor", "--json"], capture_output=True, timeout=60, check=False)
    (missing,) = [layer for layer in json.loads(done.stdout)["layers"] if layer["in_force"] is False]
    assert done.returncode == 1 and missing["name"] == "capabilities"
    assert re.findall(r"CAP_\w+", missing["why"]) == lacking
    for args in (["run", "-"], ["serve", "--listen", "127.0.0.1:0"]):
        done = subprocess.run([*less, *args], input=b"", capture_output=True, timeout=60, check=False)
        assert done.returncode in (1, 125) and all(c.encode() in done.stderr for c in lacking), done


def groups_named(name):
    return [path for path, dirs, _ in os.walk(census.CGROUP_ROOT) for d in dirs if d == name]


@pytest.fixture
def group():
    """A path for --cgroup that is nobody's."""
    name = f"gbx-e2e-{os.getpid()}"
    assert not groups_named(name)
    yield name
    left = [os.path.join(where, name) for where in groups_named(name)]
    for top in left:
        for path, _dirs, _files in os.walk(top, topdown=False):
            os.rmdir(path)
    assert not left, "the groups stayed"


def test_groups_that_were_made_for_cgroup_go_with_the_command(serve, group):
    assert glovebox("doctor", "--cgroup", f"/{group}/a").returncode == 0
    assert not groups_named(group)
    assert run("print('hi')", "--cgroup", f"/{group}/a/b").stdout == b"hi\n"
    assert not groups_named(group)
    s = serve("--cgroup", f"/{group}")
    assert s.run("print('hi')").stdout == "hi\n" and groups_named(group)
    assert s.stop() == 0
    assert not groups_named(group)


def test_commands_that_share_a_cgroup_do_not_pull_it_from_under_each_other(group):
    for _ in range(3):
        jobs = [Background(run, f"print({n})", "--cgroup", f"/{group}") for n in range(4)]
        assert [job.result().stdout for job in jobs] == [b"%d\n" % n for n in range(4)]
    # The one that made it may have ended before the last: the next start takes it away.
    assert run("print('hi')").stdout == b"hi\n"
    assert not groups_named(group)


def test_a_group_that_was_there_stays(group):
    where = census.instance_bases()
    for base in where:
        os.mkdir(f"{base}/{group}")
    try:
        assert run("print('hi')", "--cgroup", f"/{group}/a").stdout == b"hi\n"
        assert len(groups_named(group)) == len(where) and not groups_named("a")
    finally:
        for base in where:
            os.rmdir(f"{base}/{group}")


def test_version_is_one_line():
    done = glovebox("--version")
    assert done.returncode == 0 and done.stderr == b""
    assert done.stdout.startswith(b"glovebox ") and done.stdout.count(b"\n") == 1


@pytest.mark.parametrize("verb", [[], ["serve"], ["run"], ["doctor"]])
def test_help_is_on_every_verb(verb):
    done = glovebox(*verb, "--help")
    assert done.returncode == 0 and done.stderr == b""
    assert b"Usage: glovebox" in done.stdout and len(done.stdout.splitlines()) > 4


@pytest.mark.parametrize("verb", ["serve", "run", "doctor"])
def test_help_has_no_stray_lines(verb):
    text = glovebox(verb, "--help").stdout.decode()
    assert not re.search(r"[ \t]$", text, re.M), text
    options = text.split("\n\n")[1]
    assert options.startswith("  ") and "-V, --version" in options


def test_help_of_serve_names_every_setting():
    text = glovebox("serve", "--help").stdout.decode()
    for flag in ("listen", "insecure", "cgroup", "uid-base", "allow-degraded", "max-runs",
                 "max-queue", "timeout", "memory", "cpu", "pids", "max-timeout", "max-memory",
                 "max-cpu", "max-pids", "output-bytes", "body-bytes", "code-bytes",
                 "workspace-inodes", "artifact-files", "artifact-file-bytes", "artifact-bytes",
                 "artifact-inline-bytes", "artifact-store", "artifact-dir", "artifact-keep", "network", "network-connections", "network-bytes", "network-rate", "max-connections", "shutdown-grace", "log-level", "config"):
        assert f"--{flag}" in text, flag


@pytest.mark.parametrize("args", [[], ["nonsense"], ["--nonsense"], ["@supervisor"], ["@keeper"], ["@front"]])
def test_what_is_no_verb_is_refused_with_a_hint(args):
    done = glovebox(*args)
    assert done.returncode not in (0, 124, 137) and done.returncode < 128, done
    assert done.stderr.startswith(b"glovebox") or b"Usage" in done.stderr, done


# Settings --------------------------------------------------------------------------


def defaults(server):
    return server.request("GET", "/limits").json()["defaults"]


def test_flags_win_over_environment_and_environment_over_the_file(serve, tmp_path):
    config = tmp_path / "glovebox.yaml"
    config.write_text("timeout: 11s\nmemory: 71M\npids: 21\n")
    s = serve("--config", str(config), "--timeout", "13s",
              env={"GLOVEBOX_TIMEOUT": "12s", "GLOVEBOX_MEMORY": "72M"})
    d = defaults(s)
    assert (d["timeout_seconds"], d["memory_limit_mb"], d["pids_limit"]) == (13, 72, 21)


def refused(*args, env=None):
    done = glovebox("serve", *args, env=env, timeout=60)
    assert 0 < done.returncode < 124 or done.returncode == 125, done
    assert b"listening on" not in done.stdout
    return done.stderr.decode()


@pytest.mark.parametrize("text, word", [
    ("pids: 9\ntimeout: [1]\n", "line 2"), ("timeot: 3s\n", "timeot"), ("timeout: -1s\n", "timeout"),
    ("pids: 1e99\n", "pids"), ("a: b: c\n", ""), ("timeout: 3s\ntimeout: 4s\n", "timeout"),
    ("memory: 64 potatoes\n", "memory"), ("timeout: 500s\n", "timeout"), ("- 1\n", ""),
    ("pids: &a 3\nmax-pids: *a\n", ""),
])
def test_a_bad_config_file_stops_the_start_and_names_the_place(tmp_path, text, word):
    config = tmp_path / "glovebox.yaml"
    config.write_text(text)
    assert word in refused("--config", str(config))


@pytest.mark.parametrize("flag, value", [
    ("--timeout", "0"), ("--timeout", "soon"), ("--memory", "-5"), ("--max-runs", "10000"),
    ("--uid-base", "1000"), ("--uid-base", "99999999999"), ("--log-level", "loud"),
    ("--allow-degraded", "everything"), ("--listen", "nowhere"), ("--listen", "127.0.0.1:99999"),
    ("--listen", "127.0.0.1"), ("--listen", "unix:"), ("--body-bytes", "1"),
])
def test_a_bad_flag_stops_the_start_and_is_named(flag, value):
    assert flag.lstrip("-") in refused(flag, value)


def test_a_bad_variable_stops_the_start_and_is_named():
    text = refused(env={"GLOVEBOX_PIDS": "many"})
    assert "GLOVEBOX_PIDS" in text or "pids" in text


def test_an_unknown_variable_is_said_and_is_no_obstacle():
    done = run("print('hi')", env={"GLOVEBOX_POTATOES": "3"})
    assert (done.returncode, done.stdout) == (0, b"hi\n")
    assert b"GLOVEBOX_POTATOES" in done.stderr


@pytest.mark.parametrize("flags, word", [
    (["--image-dir", "{tmp}", "--image", "nope"], 'image: there is no image "nope" in {tmp}'),
    (["--image-dir", "{tmp}/none", "--image", "nope"], "{tmp}/none: No such file or directory"),
    (["--artifact-dir", "{tmp}/none"], "artifact-dir: {tmp}/none: No such file or directory"),
    (["--artifact-dir", "{tmp}/file"], "artifact-dir: {tmp}/file: Not a directory"),
])
def test_config_check_looks_for_what_the_settings_name(tmp_path, flags, word):
    (tmp_path / "file").touch()
    tmp_path.chmod(0o755)
    done = glovebox("serve", "--config-check", "--config", "", *(f.format(tmp=tmp_path) for f in flags))
    assert done.returncode == 1 and word.format(tmp=tmp_path) in done.stderr.decode(), done
    done = glovebox("serve", "--config-check", "--config", "", "--artifact-dir", tmp_path)
    assert (done.returncode, done.stdout) == (0, b"glovebox: the settings and the manifests are right\n"), done


def test_a_config_file_that_is_not_there_stops_the_start():
    assert "/nonexistent.yaml" in refused("--config", "/nonexistent.yaml")


@pytest.mark.parametrize("address", ["0.0.0.0:0", "[::]:0", "192.0.2.1:0"])
def test_listening_beyond_loopback_needs_insecure(address):
    assert "--insecure" in refused("--listen", address)


def test_insecure_listens_beyond_loopback(serve):
    s = serve("--insecure", listen="0.0.0.0:0")
    assert s.run("print('hi')").stdout == "hi\n"


def test_a_unix_socket_serves_and_is_gone_afterwards(serve, tmp_path):
    path = tmp_path / "glovebox.sock"
    s = serve(listen=f"unix:{path}")
    assert stat.S_ISSOCK(path.stat().st_mode)
    assert not path.stat().st_mode & 0o007, "anybody on this host could use it"
    assert s.run("print('hi')").stdout == "hi\n"
    assert s.stop() == 0
    s.must_leave_nothing()
    assert not path.exists()


def test_a_dead_servers_unix_socket_is_no_obstacle_but_a_living_ones_is(serve, tmp_path):
    path = tmp_path / "glovebox.sock"
    first = serve(listen=f"unix:{path}")
    assert str(path) in refused("--listen", f"unix:{path}", "--uid-base", "3900000000")
    assert first.run("print('hi')").stdout == "hi\n"
    first.stop(signal.SIGKILL)
    assert path.exists()
    assert serve(listen=f"unix:{path}").run("print('hi')").stdout == "hi\n"


def test_a_taken_port_stops_the_start_and_is_named(serve):
    s = serve()
    text = refused("--listen", f"127.0.0.1:{s.port}", "--uid-base", "3900000000")
    assert str(s.port) in text and "something else listens there; --listen" in text


@pytest.mark.parametrize("verb", ["", "serve", "run", "doctor", "image", "selftest"])
def test_h_is_short_for_help(verb):
    short, long = (glovebox(*[verb] * bool(verb), flag) for flag in ("-h", "--help"))
    assert short.returncode == 0 and short.stdout == long.stdout and b"Usage: glovebox" in short.stdout, short


def test_the_operators_maxima_hold(serve):
    s = serve("--max-timeout", "5s", "--max-memory", "80M", "--max-pids", "40")
    for field, value in (("timeout_seconds", 5.1), ("memory_limit_mb", 81), ("pids_limit", 41)):
        answer = s.post({"code": "print('was run')", field: value})
        assert answer.status == 422 and answer.json()["detail"][0]["loc"] == ["body", field]
    assert s.execute("print('hi')", timeout_seconds=5, memory_limit_mb=80, pids_limit=40)


def test_a_small_output_cap_is_the_cap(serve):
    s = serve("--output-bytes", "2000")
    r = s.run("print('x' * 5000, end='')")
    assert (r.written("stdout"), r.dropped("stdout"), r.stdout.count("x") >= 2000) == (5000, 3000, True)
