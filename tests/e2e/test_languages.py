"""Languages other than the default one: each folder of runtimes/ runs programs with their inputs and
ends them by the same limits; what is not installed, not known or not fitting is a 422."""
import importlib.util
import re
import socket
from pathlib import Path

import pytest

from harness.cli import glovebox
from harness.reply import Reply

TOP = Path(__file__).resolve().parents[2]
spec = importlib.util.spec_from_file_location("programs", TOP / "tests" / "languages" / "programs.py")
programs = importlib.util.module_from_spec(spec)
spec.loader.exec_module(programs)

PROGRAMS = programs.PROGRAMS
NAMES = sorted(PROGRAMS)
COMPILED = [name for name in NAMES if "wrong" in PROGRAMS[name]]
INPUTS = {
    "args": ["one", "two words"],
    "env": {"GREETING": "good day"},
    "files": [{"path": "data/in.txt", "content": "of the file"}],
    "stdin": "of the pipe",
}
SAID = "one two words\ngood day\nof the file\nof the pipe\n"


def command(*args):
    """The program as a command, and its output as text."""
    r = glovebox(*args)
    r.stdout, r.stderr = r.stdout.decode(), r.stderr.decode()
    return r


@pytest.fixture(scope="module")
def runtimes(server):
    answer = server.request("GET", "/runtimes")
    assert answer.status == 200, answer
    return {r["name"]: r for r in answer.json()["runtimes"]}


def run(server, language, **body):
    """The reply. A host without the toolchain is not what tools/setup makes of it, and a failure."""
    answer = server.post({"language": language, "timeout_seconds": 30, "cpu_limit": 1, **body})
    assert answer.status == 200, answer
    return Reply(answer.json(), answer.wall_s).check()


def test_every_folder_of_runtimes_is_a_language_and_has_programs_here(runtimes):
    folders = {p.parent.name for p in (TOP / "runtimes").glob("*/runtime.yaml")}
    assert folders == set(runtimes) == set(PROGRAMS)


@pytest.mark.parametrize("language", NAMES)
def test_a_program_is_run(server, language):
    r = run(server, language, code=PROGRAMS[language]["hello"])
    assert (r.stdout, r.status, r.exit_code, r["language"]) == ("hello\n", "success", 0, language), r


@pytest.mark.parametrize("language", NAMES)
def test_it_has_its_arguments_variables_files_and_stdin(server, language):
    r = run(server, language, code=PROGRAMS[language]["inputs"], **INPUTS)
    assert (r.stdout, r.stderr, r.exit_code) == (SAID, "to stderr\n", 3), r
    assert (r.status, r.cause) == ("error", "exit"), r


@pytest.mark.parametrize("language", NAMES)
def test_a_file_can_be_the_program(server, language):
    program = {"path": PROGRAMS[language]["path"], "content": PROGRAMS[language]["inputs"]}
    r = run(server, language, entry_point=program["path"],
            **{**INPUTS, "files": INPUTS["files"] + [program]})
    assert (r.stdout, r.exit_code) == (SAID, 3), r


@pytest.mark.parametrize("language", NAMES)
def test_an_error_of_the_program_is_one(server, language):
    r = run(server, language, code=PROGRAMS[language]["fails"])
    assert r.status == "error" and r.exit_code != 0, r


@pytest.mark.parametrize("language", NAMES)
def test_a_program_that_does_not_end_is_ended(server, language):
    r = run(server, language, code=PROGRAMS[language]["spins"], timeout_seconds=1.5)
    assert (r.status, r.cause) == ("timeout", "wall_timeout"), r


@pytest.mark.parametrize("language", NAMES)
def test_a_program_that_hoards_memory_is_ended(server, language):
    r = run(server, language, code=PROGRAMS[language]["hoards"], memory_limit_mb=256)
    assert (r.status, r.cause) == ("memory_exceeded", "oom_kill"), r


@pytest.mark.parametrize("language", NAMES)
def test_its_default_limits_are_those_of_its_manifest(server, runtimes, language):
    answer = server.post({"language": language, "code": PROGRAMS[language]["hello"]})
    assert answer.status == 200 and answer.json()["status"] == "success", answer
    said = {k: v for k, v in answer.json()["limits"].items() if k in runtimes[language]["limits"]}
    assert said == runtimes[language]["limits"]


@pytest.mark.parametrize("language, code", [
    ("bash", "python3 -c 'import json; print(json.dumps(6 * 7))'"),
    ("javascript", "console.log(require('child_process').execSync(`python3 -c 'print(6 * 7)'`).toString().trim())"),
    ("typescript", "import { execSync } from 'child_process';\n"
                   "console.log(execSync(`python3 -c 'print(6 * 7)'`).toString().trim())"),
])
def test_python_starts_from_a_program_in(server, language, code):
    r = server.run(code, language=language, timeout_seconds=30, cpu_limit=1)
    assert (r.stdout, r.stderr, r.exit_code) == ("42\n", "", 0), r


def test_an_alias_is_the_language(server):
    reply = server.execute("echo hello", language="sh", timeout_seconds=30)
    assert (reply["language"], reply.stdout) == ("bash", "hello\n")


def test_what_is_known_of_each_is_listed(runtimes):
    for name, r in runtimes.items():
        assert r["start"] in (("warm", "cold") if name == "python" else ("cold",)), r
        assert r["main_file"] and r["debian_package"], r
        assert r["installed"] is True and re.match(r"\d+(\.\d+)+", r["version"]), r
        assert isinstance(r["packages"], list) and r["why"] is None, r
    assert "numpy" in {p["name"] for p in runtimes["python"]["packages"]}
    assert "Core" in {p["name"] for p in runtimes["php"]["packages"]}
    assert runtimes["javascript"]["limits"]["memory_limit_mb"] == 256


@pytest.mark.parametrize("value, said", [
    ("cobol", "this server knows the languages python, bash, "), ("", "this server knows"),
    ("Python", 'did you mean "python"?'), ("python\0", "this server knows"), ("pyhton", 'did you mean "python"?'),
    ("python3.11", 'did you mean "python'), ("cobol", "known after the next one"),
    (7, "valid string"), (["lua"], "valid string"),
])
def test_a_language_that_is_none_is_refused(server, value, said):
    answer = server.post({"code": "1", "language": value})
    assert answer.status == 422, answer
    (item,) = answer.json()["detail"]
    assert item["loc"] == ["body", "language"] and said in item["msg"], item


def test_an_entry_point_that_does_not_fit_the_language_is_refused(server):
    answer = server.post({"language": "js", "entry_point": "main.py",
                          "files": [{"path": "main.py", "content": "print(1)"}]})
    assert answer.status == 422, answer
    (item,) = answer.json()["detail"]
    assert item["loc"] == ["body", "entry_point"], item
    assert 'a program in javascript must have a name that ends in ".js" or ".mjs" or ".cjs"' in item["msg"], item


def test_what_only_python_tells_is_refused_elsewhere(server):
    answer = server.post({"language": "lua", "code": "return 1", "return_last": True})
    assert answer.status == 422, answer
    (item,) = answer.json()["detail"]
    assert item["loc"] == ["body", "return_last"] and "a program in lua tells no last value" in item["msg"], item


def test_a_file_in_the_place_of_the_code_is_refused_by_the_languages_own_name(server):
    files = [{"path": "main.lua", "content": "1"}]
    answer = server.post({"language": "lua", "code": "print(1)", "files": files})
    assert answer.status == 422 and "the file that holds the code" in answer.json()["detail"][0]["msg"], answer
    assert server.post({"language": "python", "code": "print(1)", "files": files}).status == 200


def test_they_leave_nothing_and_take_no_ready_cell(server):
    before = server.rest()
    for language in set(NAMES) - {"python"}:
        run(server, language, code=PROGRAMS[language]["hello"])
        assert server.health().json()["ready_cells"] == server.health().json()["pool_size"]
    server.settles_to(before)


# ---- compilers ----

@pytest.mark.parametrize("language", COMPILED)
def test_what_a_compiler_refuses_is_told_and_not_run(server, language):
    r = run(server, language, code=PROGRAMS[language]["wrong"])
    assert (r.status, r.cause, r.stdout, r.stderr) == ("error", "compile", "", ""), r
    assert r["compile"]["status"] == "error" and r["compile"]["exit_code"] == r.exit_code != 0, r
    assert PROGRAMS[language]["complaint"] in r["compile"]["stderr"] + r["compile"]["stdout"], r
    assert r.execution_time_ms == 0 and r["compile"]["execution_time_ms"] > 0, r


@pytest.mark.parametrize("language", COMPILED)
def test_a_compilers_part_is_in_the_answer(server, runtimes, language):
    r = run(server, language, code=PROGRAMS[language]["hello"])
    assert (r["compile"]["status"], r["compile"]["exit_code"]) == ("success", 0), r
    assert r["compile"]["limits"] == runtimes[language]["compile_limits"]
    assert 0 < r["compile"]["memory_used_mb"] <= r["compile"]["limits"]["memory_limit_mb"], r


def test_a_language_without_a_compiler_has_no_such_part(server):
    assert "compile" not in server.execute("echo 1", language="bash", timeout_seconds=30)


ENDLESS = """
#include <stdio.h>
#define A(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x) B(x)
#define B(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x) C(x)
#define C(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x) D(x)
#define D(x) E(x) E(x) E(x) E(x) E(x) E(x) E(x) E(x)
#define E(x) F(x) F(x) F(x) F(x) F(x) F(x) F(x) F(x)
#define F(x) x x x x x x x x
int main(void) { A(A(puts("");)) }
"""


@pytest.fixture
def hasty(serve):
    """A server whose compilers may take half a second, or 48 MiB."""
    def start(tmp_path, limits):
        text = (TOP / "runtimes" / "c" / "runtime.yaml").read_text()
        text = re.sub(r"  limits:\n(    .*\n)+", f"  limits: {limits}\n", text, count=1)
        return serve("--runtimes", str(manifest(tmp_path, "c", text)))
    return start


def test_a_compiler_that_does_not_end_is_ended(hasty, tmp_path):
    r = hasty(tmp_path, "{timeout: 500ms, memory: 1G}").execute(ENDLESS, language="c", timeout_seconds=30)
    assert (r.status, r.cause, r.exit_code) == ("error", "compile", 124), r
    assert (r["compile"]["status"], r["compile"]["cause"]) == ("timeout", "wall_timeout"), r


def test_a_compiler_that_takes_all_memory_is_ended(hasty, tmp_path):
    r = hasty(tmp_path, "{timeout: 20s, memory: 48M}").execute(ENDLESS, language="c", timeout_seconds=30)
    assert (r.status, r.cause) == ("error", "compile"), r
    assert (r["compile"]["status"], r["compile"]["cause"]) == ("memory_exceeded", "oom_kill"), r


LOOK = """
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void try(const char *what, int r) { printf("%s: %s\\n", what, r < 0 ? strerror(errno) : "done"); }

int main(int argc, char **argv)
{
    char bytes[65536];
    int from = open("/build/program", O_RDONLY), to = open("/workspace/copy", O_WRONLY | O_CREAT, 0755);
    for (ssize_t n; (n = read(from, bytes, sizeof(bytes))) > 0;)
        (void)!write(to, bytes, n);
    close(to);
    try("change", open("/build/program", O_WRONLY));
    try("add", open("/build/more", O_WRONLY | O_CREAT, 0755));
    try("remove", unlink("/build/program"));
    try("mode", chmod("/build/program", 0777));
    try("execute a copy", execl("/workspace/copy", "copy", NULL));
}
"""


def test_a_program_can_neither_change_what_was_built_nor_execute_what_it_wrote(server):
    r = server.execute(LOOK, language="c", timeout_seconds=30)
    # Its cell can have the compiler's slot and by that its uid: then the file is its own, and what is
    # being executed cannot be written to.
    assert r.stdout.replace("Text file busy", "Permission denied") == \
        "change: Permission denied\nadd: Read-only file system\n" \
        "remove: Read-only file system\nmode: Read-only file system\nexecute a copy: Permission denied\n", r


def test_what_a_compiler_leaves_that_cannot_be_executed_is_the_programs_failure(serve, tmp_path):
    text = (TOP / "runtimes" / "c" / "runtime.yaml").read_text()
    argv = re.search(r"\[/usr/bin/gcc.*\]", text).group()
    text = text.replace(argv, "[/usr/bin/bash, main.c]")
    server = serve("--runtimes", str(manifest(tmp_path, "c", text)))
    for code, status, said in (("true", 127, "No such file"), ("echo x > /build/program", 126, "Permission denied"),
                               ("printf x > /build/program; chmod 755 /build/program", 126, "Exec format error"),
                               # The program may have the uid of its compiler, and is kept out all the same.
                               ("cp /usr/bin/true /build/program; chmod 600 /build", 126, "Permission denied")):
        r = server.execute(code, language="c", timeout_seconds=30)
        assert (r.status, r.cause, r.exit_code) == ("error", "exit", status) and said in r.stderr, (code, r)


def test_a_compiler_has_the_cage_of_a_program(serve, tmp_path):
    text = (TOP / "runtimes" / "c" / "runtime.yaml").read_text()
    argv = re.search(r"\[/usr/bin/gcc.*\]", text).group()
    text = text.replace(argv, "[/usr/bin/bash, main.c]")
    server = serve("--runtimes", str(manifest(tmp_path, "c", text)))
    code = """
id -u; (cd /proc/self/fd; echo *)
grep -E '^(CapInh|CapPrm|CapEff|CapBnd|CapAmb|NoNewPrivs|Seccomp):' /proc/self/status
ls /proc/net 2>/dev/null; (: < /dev/tcp/192.0.2.1/9) 2>&1 | sed 's/.*: //' | tail -1
find / -xdev -writable -type d 2>/dev/null | sort
echo "$GREETING/$#/$(cat)"
cp /usr/bin/true /build/program; /build/program 2>&1 | sed 's/.*: //'
"""
    r = server.execute(code, language="c", timeout_seconds=30, stdin="secret", args=["x"], env={"GREETING": "hi"})
    assert r["compile"]["stdout"] == """1000
0 1 2 3
CapInh:\t0000000000000000
CapPrm:\t0000000000000000
CapEff:\t0000000000000000
CapBnd:\t0000000000000000
CapAmb:\t0000000000000000
NoNewPrivs:\t1
Seccomp:\t2
Network is unreachable
/build
/tmp
/workspace
/0/
Permission denied
""", r


def test_no_build_outlives_its_run(server):
    before = server.rest()
    for code in (PROGRAMS["c"]["hello"], PROGRAMS["c"]["wrong"], PROGRAMS["c"]["spins"]):
        server.execute(code, language="c", timeout_seconds=0.5)
    server.settles_to(before)


def test_a_client_that_leaves_at_any_time_leaves_no_build(server):
    import time
    before = server.rest()
    body = b'{"language": "c", "code": "int main(void) { for (;;); }", "timeout_seconds": 30}'
    head = b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body)
    for ms in range(0, 400, 20):
        with server.socket() as s:
            s.sendall(head + body)
            time.sleep(ms / 1000)  # wherever it is then
            s.shutdown(socket.SHUT_RDWR)
    server.settles_to(before)
    assert server.execute(PROGRAMS["c"]["hello"], language="c", timeout_seconds=30).stdout == "hello\n"


# Its main process ends at a time that the client knows, and what it leaves takes some time to be killed.
LEAVES_CHILDREN = """
for i in 1 2 3 4 5 6; do perl -e '$x = "a" x (15 << 20); sleep 1000' </dev/null >/dev/null 2>&1 & done
while [ ${EPOCHREALTIME/[.,]/} -lt %d ]; do sleep 0.001; done
cp /usr/bin/true /build/program
"""


def test_a_client_that_leaves_while_the_compiler_is_killed_leaves_no_build(serve, tmp_path):
    import json
    import struct
    import time
    text = (TOP / "runtimes" / "c" / "runtime.yaml").read_text()
    argv = re.search(r"\[/usr/bin/gcc.*\]", text).group()
    server = serve("--runtimes", str(manifest(tmp_path, "c", text.replace(argv, "[/usr/bin/bash, main.c]"))))
    before = server.rest()
    for ms in range(0, 40, 4):
        end = time.time() + 0.7
        body = json.dumps({"language": "c", "code": LEAVES_CHILDREN % (end * 1e6)}).encode()
        with server.socket() as s:
            s.sendall(b"POST /execute HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            time.sleep(max(0, end + ms / 1000 - time.time()))
            s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))  # a reset
    server.settles_to(before)
    assert server.execute("cp /usr/bin/true /build/program", language="c", timeout_seconds=30).status == "success"


# ---- manifests ----

def manifest(folder, name, text):
    path = folder / name
    path.mkdir()
    (path / "runtime.yaml").write_text(text)
    path.chmod(0o755)
    (path / "runtime.yaml").chmod(0o644)
    return folder


# As docs/runtimes.md shows it.
AWK = re.search(r"```yaml\n(name: awk\n.*?)```", (TOP / "docs" / "runtimes.md").read_text(), re.S).group(1)


def test_a_language_is_added_by_a_manifest_alone(serve, tmp_path):
    server = serve("--runtimes", str(manifest(tmp_path, "awk", AWK)))
    reply = server.execute('{ print $2 }', language="awk", stdin="one two\n", timeout_seconds=30)
    assert reply.stdout == "two\n", reply
    (r,) = [r for r in server.request("GET", "/runtimes").json()["runtimes"] if r["name"] == "awk"]
    assert r["installed"] is True and r["version"], r


ODD = "import os\nprint('LD_PRELOAD' in os.environ, 'GLOVEBOX_REPORT' in os.environ, os.listdir('/proc/self/fd'))"


@pytest.mark.parametrize("argv, code", [
    ("[/usr/bin/env, python3, main.py]", ODD + "; 1 / 0"),
    ("[/usr/bin/bash, main.py]", 'echo ${LD_PRELOAD+True}False ${GLOVEBOX_REPORT+True}False "$(cd /proc/self/fd; echo *)"; nothing'),
    ("[/usr/bin/busybox, sh, main.py]", 'echo ${LD_PRELOAD+True}False ${GLOVEBOX_REPORT+True}False "$(cd /proc/self/fd; echo *)"; nothing'),
    ("[/usr/bin/ldd, main.py]", None),
], ids=["what becomes one", "a shell", "a static binary", "a script"])
def test_an_interpreter_that_cannot_tell_runs_its_programs_and_tells_nothing(serve, tmp_path, argv, code):
    text = (TOP / "runtimes" / "python" / "runtime.yaml").read_text()
    text = re.sub(r"(?m)^argv: .*$", "argv: " + argv, text.replace("name: python", "name: odd"), count=1)
    text = re.sub(r"(?m)^aliases: .*\n", "", text)
    server = serve("--runtimes", str(manifest(tmp_path, "odd", text)))
    r = server.execute(code or "1", language="odd", timeout_seconds=30)
    assert "symbol lookup" not in r.stderr and (r["error"], r["result"], r["figures"]) == (None, None, []), r
    assert r["warnings"] == [] and r.status == "error", r
    if code:
        preload, told, fds = r.stdout.split(" ", 2)
        assert (preload, told, sorted(re.findall(r"\d+", fds))) == ("False", "False", ["0", "1", "2", "3"]), r


def test_the_command_line_shows_what_a_compiler_says(tmp_path):
    program = tmp_path / "p"
    program.write_text('#include <stdio.h>\n#warning beware\nint main(int n, char **v) { puts(v[1]); return 4; }')
    r = command("run", "--language", "c", program, "x")
    assert (r.returncode, r.stdout) == (4, "x\n") and "beware" in r.stderr, r
    program.write_text("int main(void) { return x; }")
    r = command("run", "--language", "c", program)
    assert (r.returncode, r.stdout) == (1, "") and "main.c:1:" in r.stderr, r
    r = command("run", "--json", "--language", "c", program)
    import json
    assert json.loads(r.stdout)["cause"] == "compile", r


def test_the_command_line_runs_any_language(tmp_path):
    program = tmp_path / "p"
    program.write_text("echo $1; exit 5")
    r = command("run", "--language", "bash", program, "x")
    assert (r.returncode, r.stdout, r.stderr) == (5, "x\n", ""), r
    program.write_text("{ print 1 + NR }")
    r = command("run", "--runtimes", manifest(tmp_path, "awk", AWK), "--language", "awk",
                 "--stdin", program, program)
    assert (r.returncode, r.stdout) == (0, "2\n"), r
    r = command("run", "--language", "cobol", program)
    assert r.returncode == 125 and '"cobol" is none of those known here: python, bash' in r.stderr, r


def test_what_is_not_installed_is_told_with_its_package(serve, tmp_path):
    text = AWK.replace("/usr/bin/mawk", "/usr/bin/no-such-awk")
    folder = manifest(tmp_path, "awk", text)
    server = serve("--runtimes", str(folder))
    answer = server.post({"code": "1", "language": "awk"})
    assert answer.status == 422, answer
    (item,) = answer.json()["detail"]
    assert item["loc"] == ["body", "language"] and item["input"] == "awk"
    assert item["msg"] == "Value error, awk is not installed on this server: there is no " \
        "/usr/bin/no-such-awk; on Debian: apt-get install mawk"
    (r,) = [r for r in server.request("GET", "/runtimes").json()["runtimes"] if r["name"] == "awk"]
    assert r["installed"] is False and "apt-get install mawk" in r["why"]
    program = tmp_path / "p"
    program.write_text("1")
    r = command("run", "--runtimes", folder, "--language", "awk", program)
    assert r.returncode == 125 and "apt-get install mawk" in r.stderr, r


@pytest.mark.parametrize("change, said", [
    (("main-file:", "mainfile:"), 'awk/runtime.yaml line 3, column 1: "mainfile" is no key that is known here'),
    (("package: mawk", "package: mawk\nlimits:\n  memory: 64M\n  pid: 3"),
     'awk/runtime.yaml line 7, column 3: "pid" is no key that is known here'),
    (("package: mawk", "package: mawk\nlimits:\n  memory: much"),
     'awk/runtime.yaml line 6, column 3: limits: memory: "much" is not a size such as'),
    (("package: mawk", "package: mawk\nlimits:\n  memory: 1K"),
     'line 6, column 3: limits: memory: "1K" is not a size such as 64M or 1.5G, from 4M to 4T'),
    (("package: mawk", "package: mawk\nlimits:\n  memory: 64"), 'limits: memory: "64" is not a size such as 64M or 1.5G, from 4M'),
    (("package: mawk", "package: mawk\nlimits:\n  pids: 99999"), 'limits: pids: "99999" is not a whole number'),
    (("- LANG=C.UTF-8", "- LANG"), "awk/runtime.yaml line 6, column 1: runtime: an entry of env is not NAME=VALUE"),
    (("package: mawk", "package: mawk\npackage: gawk"), 'line 5, column 1: "package" is there twice'),
    (("name: awk", "name: gawk"), 'name is "gawk", but a language has the name of its folder'),
    (("name: awk", "name: AWK"), "a name is not of small letters"),
    (("aliases: [mawk]", "aliases: [js]"), 'awk/runtime.yaml: "js" is also a name of javascript'),
    (("main-file: main.awk", "main-file: ../main.awk"), "line 3, column 1: runtime: main-file is not a plain file name"),
    (("- /usr/bin", "- /usr/../etc"), "an entry of roots is not an absolute path"),
    (("/usr/bin/mawk", "mawk"), "argv does not begin with an absolute path"),
    (("name: awk", "name: [awk"), "awk/runtime.yaml"),
])
def test_a_manifest_with_a_mistake_is_refused_with_its_place(tmp_path, change, said):
    assert change[0] in AWK
    folder = manifest(tmp_path, "awk", AWK.replace(*change, 1))
    check = command("serve", "--config-check", "--config", "", "--runtimes", folder)
    start = command("serve", "--config", "", "--listen", "127.0.0.1:0", "--runtimes", folder)
    for r in (check, start):
        assert r.returncode == 1 and said in r.stderr, r


@pytest.mark.parametrize("there, folder, said", [
    ("awk/runtime.yaml", "awk", "/awk/runtime.yaml: the manifest lies in the folder of its language; name the folder above"),
    ("awk.yaml", "", "/awk.yaml: a manifest is "), ("awk/runtime.yml", "", "/awk: holds no runtime.yaml"),
])
def test_a_manifest_that_lies_in_the_wrong_place_is_no_silence(tmp_path, there, folder, said):
    (tmp_path / there).parent.mkdir(exist_ok=True)
    (tmp_path / "README").touch()
    (tmp_path / there).write_text(AWK)
    for flags in (["--config-check"], ["--listen", "127.0.0.1:0"]):
        r = command("serve", "--config", "", *flags, "--runtimes", tmp_path / folder)
        assert r.returncode == 1 and said in r.stderr, r


@pytest.mark.parametrize("root, said", [
    ("/nonexistent", "there is no /nonexistent, one of the roots of its manifest; on Debian"),
    ("/usr/bin/mawk", "awk cannot be used: /usr/bin/mawk, one of the roots of its manifest, is no directory"),
])
def test_a_root_that_cannot_be_shown_is_named_as_that(tmp_path, root, said):
    folder = manifest(tmp_path, "awk", AWK.replace("  - /usr/bin\n", f"  - /usr/bin\n  - {root}\n"))
    program = tmp_path / "p"
    program.write_text("{ print }")
    r = command("run", "--runtimes", folder, "--language", "awk", program)
    assert r.returncode == 125 and said in r.stderr, r


def test_a_manifest_that_others_may_write_is_refused(tmp_path):
    folder = manifest(tmp_path, "awk", AWK)
    (folder / "awk" / "runtime.yaml").chmod(0o666)
    r = command("serve", "--config-check", "--config", "", "--runtimes", folder)
    assert r.returncode == 1 and "chmod go-w it" in r.stderr, r
    r = command("serve", "--config-check", "--config", "", "--runtimes", folder / "none")
    assert r.returncode == 1 and "No such file" in r.stderr, r
