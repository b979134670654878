"""What goes into a run beside its code: stdin, arguments, environment, files, an entry point. And
what is wrong in them is named, with its index, and nothing is run."""
import base64
import importlib.util
import re
from pathlib import Path

import pytest

from harness.cli import glovebox
from harness.life import servers_by
from harness.poll import wait_for

FOLDER = Path(__file__).resolve().parents[1] / "warm"
spec = importlib.util.spec_from_file_location("warm_inputs", FOLDER / "inputs.py")
inputs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(inputs)

ROOMY = {"timeout_seconds": 30, "memory_limit_mb": 256, "cpu_limit": 1}
FLAGS_OF = {
    "cold": ["--cold", "--pool-size", "0"],
    "rehearsed": ["--cold=false", "--pool-size", "4"],
    "forked": ["--cold=false", "--pool-size", "0"],
}


@pytest.fixture(scope="module")
def servers():
    with servers_by(FLAGS_OF) as get:
        yield get


def post(server, **body):
    return server.post({**ROOMY, **body})


def reply(server, **body):
    answer = post(server, **body)
    assert answer.status == 200, answer
    return answer.json()


def result(answer):
    return {key: re.sub(r"0x[0-9a-f]+", "0x", str(answer[key]))
            for key in ("status", "cause", "exit_code", "stdout", "stderr", "warnings")}


@pytest.mark.parametrize("name", inputs.REQUESTS)
@pytest.mark.parametrize("way", ["rehearsed", "forked"])
def test_a_request_with_inputs_gives_the_same_result_warm_and_cold(servers, way, name):
    request = inputs.REQUESTS[name]
    assert result(reply(servers(way), **request)) == result(reply(servers("cold"), **request))


def test_a_warm_interpreter_stays_warm_where_it_can(servers):
    """By page faults: a cold start is 800 and more, and is only for what needs it."""
    def faults(name):
        return reply(servers("rehearsed"), **inputs.REQUESTS[name])["usage"]["minor_faults"]

    assert faults("hides_a_module") > 700
    for name in ("args", "env", "stdin", "module", "entry_point_main", "data_named_like_a_module"):
        assert faults(name) < 600, name


# ---- What the program finds ----

def test_stdin_is_what_was_sent_to_the_byte(server):
    data = bytes(range(256)) * 4096
    r = reply(server, code="import sys, hashlib\nd = sys.stdin.buffer.read()\nprint(len(d), hashlib.sha256(d).hexdigest())",
              stdin=base64.b64encode(data).decode(), stdin_encoding="base64")
    import hashlib
    assert r["stdout"] == f"{len(data)} {hashlib.sha256(data).hexdigest()}\n"


def test_a_program_that_does_not_read_its_stdin_ends_as_without(server):
    r = reply(server, code="print('done')", stdin="x" * 3000000)
    assert r["status"] == "success" and r["stdout"] == "done\n" and r["execution_time_ms"] < 10000


def test_a_program_that_closes_its_stdin_goes_on(server):
    r = reply(server, code="import os, sys\nos.close(0)\nprint('still here')", stdin="x" * 300000)
    assert r["status"] == "success" and r["stdout"] == "still here\n"


def test_stdin_left_unread_at_the_deadline_is_a_timeout(server):
    r = reply(server, code="import time\ntime.sleep(60)", stdin="x" * 300000, timeout_seconds=0.5)
    assert r["status"] == "timeout" and r["cause"] == "wall_timeout"


def test_files_are_the_programs_own_and_count_as_its_memory(server):
    r = reply(server, code="import os\nprint(os.stat('d').st_uid, os.stat('d/f').st_uid, os.getuid())",
              files=[{"path": "d/f", "content": "x" * 3000000}])
    assert r["stdout"] == "1000 1000 1000\n"
    # The kernel charges 64 pages ahead on each processor; what a ready cell has left of that costs the run nothing.
    assert r["usage"]["memory_peak_bytes"] > 2000000


def test_a_thousand_files_in_as_many_directories_arrive(server):
    files = [{"path": f"{i}/{i}", "content": str(i)} for i in range(1000)]
    r = reply(server, code="import os\nprint(sum(int(open(f'{i}/{i}').read()) for i in range(1000)), len(os.listdir('.')))",
              files=files)
    assert r["stdout"] == "499500 1001\n"


def test_a_path_as_long_as_one_may_be_arrives(server):
    path = "/".join(["n" * 255] * 3 + ["n" * 254, "n"])
    r = reply(server, code=f"print(open('{path}').read())", files=[{"path": path, "content": "far"}])
    assert len(path) == 1024 and r["stdout"] == "far\n"
    assert server.post({"code": "1", "files": [{"path": path + "n", "content": "too far"}]}).status == 422


def test_nothing_of_a_runs_inputs_is_found_in_the_next_one(server):
    reply(server, code="1", args=["secret-arg"], env={"SECRET": "secret-env"}, files=[{"path": "secret", "content": "x"}],
          stdin="secret-stdin")
    r = reply(server, code="import os, sys\nprint(os.listdir('.'), sys.argv, 'SECRET' in os.environ, sys.stdin.read())")
    assert r["stdout"] == "['main.py'] ['main.py'] False \n"


def test_a_program_sees_no_mapping_and_no_descriptor_of_its_inputs(servers):
    for way in FLAGS_OF:
        r = reply(servers(way), code="import os\nprint(os.listdir('/proc/self/fd'), 'memfd:code' in open('/proc/self/maps').read())",
                  args=["x"], files=[{"path": "f", "content": "y"}], stdin="z")
        assert r["stdout"] == "['0', '1', '2', '3'] False\n", way


# ---- What is refused ----

def refused(answer):
    assert answer.status == 422, answer
    return [(tuple(item["loc"][1:]), item["type"], item["msg"]) for item in answer.json()["detail"]]


def one_file(**fields):
    return {"code": "print(1)", "files": [{"path": "good", "content": ""}, {"path": "x", "content": "", **fields}]}


LONG = "n" * 300
BAD_PATHS = ["", "/etc/passwd", "../x", "a/../../x", "a/..", "..", ".", "./x", "a/./x", "a//b", "a/", "/", LONG,
             "a/" + LONG + "/b", "/".join(["d" * 200] * 6), "a\x00b", "a\nb", "\x7f", "\x1b[2J"]


@pytest.mark.parametrize("path", BAD_PATHS, ids=range(len(BAD_PATHS)))
def test_a_path_that_is_none_is_refused_by_its_index(server, path):
    found = refused(post(server, **one_file(path=path)))
    assert [f[:2] for f in found] == [(("files", 1, "path"), "value_error")], found
    assert "path must" in found[0][2]


@pytest.mark.parametrize("mode", ["4755", "2755", "1777", "07777", "888", "rwx", "", "0o644", "64", "-644", "00000644"])
def test_a_mode_that_is_none_is_refused(server, mode):
    found = refused(post(server, **one_file(mode=mode)))
    assert found[0][0] == ("files", 1, "mode") and "octal" in found[0][2]


@pytest.mark.parametrize("text", ["%", "QQ", "QQ=", "QR==", "QQ==\n", " QQ==", "QQ==QQ==", "Q=Q=", "=", "QUJ", "-_-_", "QQ=A"])
def test_base64_that_is_none_is_refused_with_the_place(server, text):
    found = refused(post(server, **one_file(content=text, encoding="base64")))
    assert found[0][0] == ("files", 1, "content") and "base64 from byte" in found[0][2], found
    found = refused(post(server, code="1", stdin=text, stdin_encoding="base64"))
    assert found[0][0] == ("stdin",) and "base64 from byte" in found[0][2]


@pytest.mark.parametrize("paths,wrong", [
    (["a", "a"], {1}), (["a", "b", "a", "a"], {2, 3}), (["a", "a/b"], {1}), (["a/b", "a"], {0}),
    (["a/b/c", "a.b", "a", "a/d"], {0, 3}), (["main.py"], {0}), (["main.py/x"], {0}),
])
def test_files_that_cannot_be_beside_each_other_are_refused(server, paths, wrong):
    found = refused(post(server, code="1", files=[{"path": p, "content": ""} for p in paths]))
    assert {f[0] for f in found} == {("files", i, "path") for i in wrong}, found


def test_ten_thousand_files_are_refused_at_once(server):
    files = [{"path": str(i), "content": ""} for i in range(10000)]
    found = refused(post(server, code="1", files=files))
    assert found == [(("files",), "too_long", "List should have at most 1000 items after validation, not 10000")]


def test_many_wrong_files_are_counted_and_the_answer_stays_short(server):
    answer = post(server, code="1", files=[{"path": "/x" * 400, "content": ""}] * 1000)
    found = refused(answer)
    assert len(found) == 17 and found[-1][0] == ("files",) and found[-1][2].endswith("984 more are wrong")
    assert len(answer.body) < 20000


def test_more_than_the_total_is_refused(server):
    found = refused(post(server, code="1", stdin="x" * 1000000,
                         files=[{"path": str(i), "content": "y" * 1100000} for i in range(2)]))
    assert found[0][0] == ("files",) and "3200000 bytes; this server takes at most 3145728" in found[0][2]
    found = refused(post(server, code="1", stdin="x" * 3145729))
    assert found[0][0] == ("stdin",) and "input-bytes" in found[0][2]


def test_a_file_that_is_too_large_alone_is_named_by_its_index(server):
    large = {"path": "large", "content": "x" * 3145729}
    found = refused(post(server, code="1", files=[{"path": "small", "content": "y"}, large]))
    assert found == [(("files", 1, "content"), "value_error", "Value error, this file holds 3145729 bytes; this server "
                      "takes at most 3145728 (input-bytes)")]


def test_files_that_leave_no_memory_are_refused_before_anything_runs(server):
    found = refused(post(server, code="1", memory_limit_mb=4, files=[{"path": "a", "content": "x" * 2097153}]))
    assert found[0][0] == ("files",) and "raise memory_limit_mb" in found[0][2]
    assert reply(server, code="1", memory_limit_mb=16, files=[{"path": "a", "content": "x" * 2097153}])["status"] == "success"


def test_more_files_than_the_workspace_holds_are_refused_before_anything_runs(serve):
    small = serve("--workspace-inodes", "16")
    found = refused(post(small, code="1", files=[{"path": f"{i}/{i}", "content": ""} for i in range(8)]))
    assert found[0][0] == ("files",) and "16 files and directories do not fit" in found[0][2]
    fits = [{"path": f"{i}/{i}", "content": ""} for i in range(7)]
    assert reply(small, code="import os\nprint(len(os.listdir('.')))", files=fits)["stdout"] == "8\n"


NAMES = ["PATH", "HOME", "LD_PRELOAD", "LD_LIBRARY_PATH", "PYTHONPATH", "PYTHONHASHSEED", "PYTHONSTARTUP",
         "GLOVEBOX_LOG_LEVEL", "GLIBC_TUNABLES", "MALLOC_ARENA_MAX", "LANG", "LC_ALL", "NODE_OPTIONS", "BASH_ENV",
         "", "1A", "A=B", "A B", "A-B", "BASH_FUNC_x%%", "ü", "A\n", "N" * 129]


@pytest.mark.parametrize("name", NAMES, ids=range(len(NAMES)))
def test_a_variable_that_cannot_be_set_is_refused_by_its_name(server, name):
    found = refused(post(server, code="1", env={"GOOD": "1", name: "x"}))
    assert len(found) == 1 and found[0][0] == ("env", name) and found[0][1] == "value_error", found


@pytest.mark.parametrize("body,where", [
    ({"args": "x"}, ("args",)), ({"args": [1]}, ("args", 0)), ({"args": ["a", None]}, ("args", 1)),
    ({"args": ["a\x00"]}, ("args", 0)), ({"args": ["x"] * 257}, ("args",)), ({"args": ["x" * 65536]}, ("args",)),
    ({"env": ["A=1"]}, ("env",)), ({"env": {"A": 1}}, ("env", "A")), ({"env": {"A": "\x00"}}, ("env", "A")),
    ({"env": {f"A{i}": "" for i in range(129)}}, ("env",)), ({"env": {"A": "x" * 65536}}, ("env",)),
    ({"stdin": 5}, ("stdin",)), ({"stdin": []}, ("stdin",)), ({"stdin_encoding": "hex"}, ("stdin_encoding",)),
    ({"files": {}}, ("files",)), ({"files": [5]}, ("files", 0)), ({"files": [{"path": "a"}]}, ("files", 0, "content")),
    ({"files": [{"content": "a"}]}, ("files", 0, "path")), ({"files": [{"path": 5, "content": ""}]}, ("files", 0, "path")),
    ({"files": [{"path": "a", "content": 5}]}, ("files", 0, "content")),
    ({"files": [{"path": "a", "content": "", "encoding": "hex"}]}, ("files", 0, "encoding")),
    ({"files": [{"path": "a", "content": "", "mode": 420}]}, ("files", 0, "mode")),
    ({"entry_point": "a", "files": [{"path": "a", "content": ""}]}, ("entry_point",)),
])
def test_what_is_of_the_wrong_kind_or_too_much_is_named(server, body, where):
    assert [f[0] for f in refused(post(server, code="1", **body))] == [where]


@pytest.mark.parametrize("body", [
    {"entry_point": "b"}, {"entry_point": 5}, {"entry_point": "-c"}, {"entry_point": "@c"}, {"entry_point": "u"},
])
def test_an_entry_point_that_is_no_readable_file_of_the_request_is_refused(server, body):
    files = [{"path": "a", "content": ""}, {"path": "-c", "content": ""}, {"path": "@c", "content": ""}, {"path": "u", "content": "", "mode": "200"}]
    assert [f[0] for f in refused(server.post({**body, "files": files}))] == [("entry_point",)]


def test_without_code_and_entry_point_code_is_missing(server):
    assert refused(server.post({"files": [{"path": "a", "content": ""}]})) == [(("code",), "missing", "Field required")]


def test_half_a_surrogate_in_a_file_is_refused_where_it_is(server):
    found = refused(server.post('{"code":"1","files":[{"path":"a","content":"\\ud800"}]}'.encode()))
    assert found[0][:2] == (("files", 0, "content"), "string_unicode")


def test_unknown_members_of_files_are_warned_of(server):
    r = reply(server, code="1", files=[{"path": "a", "content": "", "name": "x"}, {"path": "b", "content": "", "foo": 1}])
    assert r["warnings"] == ['unknown field "name" of files[0] was ignored', "1 more unknown fields of files were ignored"]


# ---- The command line ----

def run(tmp_path, *args, code="import os, sys\nprint(sys.argv[1:], sorted(os.listdir('.')), os.environ.get('A'))"):
    (tmp_path / "prog.py").write_text(code)
    (tmp_path / "data.csv").write_text("1,2\n")
    return glovebox("run", "--timeout", "30", *[str(a).replace("@", str(tmp_path)) for a in args])


def test_run_takes_files_variables_and_arguments(tmp_path):
    done = run(tmp_path, "--file", "@/data.csv", "--file=@/data.csv=in/other.csv", "--env", "A=b=c", "@/prog.py",
               "--timeout", "x", "--", "-")
    assert done.returncode == 0 and done.stderr == b"", done
    assert done.stdout == b"['--timeout', 'x', '--', '-'] ['data.csv', 'in', 'main.py'] b=c\n"


def test_run_has_a_program_of_several_files_with_its_entry_point(tmp_path):
    (tmp_path / "part.py").write_text("def name(): return __file__")
    code = "import os, part, sys\nprint(sys.argv, part.name(), os.listdir('.'))"
    done = run(tmp_path, "--entry-point", "app/run.py", "--file", "@/part.py=app/part.py", "@/prog.py", "x", code=code)
    assert (done.returncode, done.stderr) == (0, b""), done
    assert done.stdout == b"['app/run.py', 'x'] /workspace/app/part.py ['app']\n"
    done = glovebox("run", "--timeout", "30", "--language", "js", "--entry-point", "a.mjs", "-",
                    input="import fs from 'fs'; console.log(fs.readdirSync('.'))")
    assert (done.returncode, done.stdout) == (0, b"[ 'a.mjs' ]\n"), done


@pytest.mark.parametrize("name, words", [
    ("../x", '--entry-point ../x: the path "../x" must have no component'), ("", "--entry-point : the path \"\" must"),
    ("-c", '--entry-point must not begin with "-"'), ("data.csv", '--entry-point data.csv: the path "data.csv" stands here twice')])
def test_run_says_what_is_wrong_with_its_entry_point(tmp_path, name, words):
    done = run(tmp_path, "--file", "@/data.csv", f"--entry-point={name}", "@/prog.py")
    assert done.returncode == 125 and done.stdout == b"", done
    assert done.stderr.decode().startswith(f"glovebox: {words}"), done


@pytest.mark.parametrize("flags,words", [
    (["--file", "@/none"], "--file @/none: No such file"), (["--file", "@"], "--file @: Is a directory"),
    (["--file", "/dev/zero"], "--file /dev/zero: Invalid argument"),
    # Longer and shorter than it says that it is, as a file that somebody writes to meanwhile.
    (["--file", "/proc/self/status"], "--file /proc/self/status: it changed while it was read"),
    (["--file", "/sys/devices/system/cpu/online"], "it changed while it was read"),
    (["--file", "@/data.csv=../x"], '--file @/data.csv=../x: the path "../x" must have no component'),
    (["--file", "@/prog.py", "--file", "@/data.csv=main.py"], "--file @/data.csv=main.py: the path \"main.py\" is the file that holds the code"),
    (["--file", "@/data.csv", "--file", "@/./data.csv"], '--file @/./data.csv: the path "data.csv" stands here twice'),
    (["--env", "PATH=x"], "--env: \"PATH\" "), (["--env", "A"], '--env: "A" must be NAME=VALUE'),
])
def test_run_says_what_is_wrong_with_its_inputs(tmp_path, flags, words):
    done = run(tmp_path, *flags, "@/prog.py")
    assert done.returncode == 125 and done.stdout == b"", done
    assert done.stderr.startswith(b"glovebox: ") and words.replace("@", str(tmp_path)) in done.stderr.decode(), done.stderr
