"""libglovebox: the example in examples/ builds against what was built, and runs."""
import os
import shlex
import subprocess
from pathlib import Path

import pytest

from harness.server import PROGRAM, ROOT

BUILD = Path(os.environ.get("GLOVEBOX_BUILD") or Path(PROGRAM).parent)


def compiled(source, out):
    """A C program, compiled with nothing but the public header."""
    lib = next(iter([*BUILD.rglob("libglovebox.so"), *BUILD.rglob("libglovebox.a")]), None)
    assert lib, f"no libglovebox below {BUILD}"
    subprocess.run([*shlex.split(os.environ.get("CC", "cc")), "-std=c11", "-Wall", "-Wextra",
                    "-Werror", f"-I{ROOT / 'include'}", str(source),
                    "-o", str(out), f"-L{lib.parent}", "-lglovebox", f"-Wl,-rpath,{lib.parent}",
                    *(["-ljansson"] if lib.suffix == ".a" else [])],
                   check=True)
    return out


@pytest.fixture(scope="module")
def snippet(tmp_path_factory):
    return compiled(ROOT / "examples" / "run_snippet.c", tmp_path_factory.mktemp("library") / "run_snippet")


def run(program, *args):
    return subprocess.run([program, *args], capture_output=True, text=True, timeout=120, check=False,
                          env={"PATH": "/usr/bin:/bin", "GLOVEBOX_PROGRAM": PROGRAM})


# Argument: the flags of a session, or "old" for who was built with the first header, whose struct
# ended with four bytes that nobody had to set.
MANY_RUNS = """\
#include <glovebox.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    static const char code[] = "print('_glovebox' in open('/proc/self/maps').read())";
    struct gbx_options options = { .size = sizeof(options) };
    struct gbx_session *session = NULL;
    struct gbx_error error = { 0 };

    if (argc > 1 && strcmp(argv[1], "old") == 0) {
        options.size = 40;
        memset(&options.flags, 0xff, sizeof(options.flags));
    } else if (argc > 1) {
        options.flags = GBX_READY_CELLS;
    }
    if (gbx_open(&options, &session, &error) < 0) {
        puts(error.text);
        return 1;
    }
    for (int i = 0; i < 3; i++) {
        struct gbx_request request = { .size = sizeof(request), .code = code, .code_len = sizeof(code) - 1 };
        struct gbx_result result = { .size = sizeof(result) };

        if (gbx_run(session, &request, &result, &error) < 0) {
            puts(error.text);
            return 1;
        }
        printf("%s", result.out.bytes);
        gbx_result_clear(&result);
    }
    gbx_close(session);
    return 0;
}
"""


@pytest.mark.parametrize("args, warm", [((), "False"), (("ready",), "True"), (("old",), "False")])
def test_a_session_has_ready_cells_with_a_warm_interpreter_when_it_asks_for_them(tmp_path, args, warm):
    (tmp_path / "runs.c").write_text(MANY_RUNS)
    done = run(compiled(tmp_path / "runs.c", tmp_path / "runs"), *args)
    assert (done.returncode, done.stdout) == (0, f"{warm}\n" * 3), done


def test_the_example_builds_and_runs_a_snippet(snippet):
    done = run(snippet)
    assert done.returncode == 0, done
    assert "success" in done.stdout, done


def test_the_example_says_how_it_is_built_in_the_tree_and_which_program_it_lacks(tmp_path):
    text = (ROOT / "examples/run_snippet.c").read_text()
    build, start = [line[3:] for line in text.splitlines() if line.startswith((" *\tcc examples/", " *\tGLOVEBOX_PROGRAM="))]
    for name in ("include", "examples"):
        (tmp_path / name).symlink_to(ROOT / name)
    (tmp_path / "build").symlink_to(BUILD)
    env = {"PATH": "/usr/bin:/bin"}
    subprocess.run(["sh", "-c", build], cwd=tmp_path, check=True, env=env)
    done = subprocess.run(["sh", "-c", start], cwd=tmp_path, check=True, env=env, capture_output=True)
    assert done.stdout.endswith(b"\n45\n"), done
    done = subprocess.run(["unshare", "-m", "sh", "-c", "mount -t tmpfs none /usr/local && exec ./run_snippet"], cwd=tmp_path,
                          env=env, capture_output=True, check=False)
    assert done.returncode == 125 and b"GLOVEBOX_PROGRAM=PATH" in done.stderr, done


def test_the_library_exports_only_its_own_names():
    lib = next(BUILD.rglob("libglovebox.so"))
    names = subprocess.run(["nm", "-D", "--defined-only", str(lib)], capture_output=True,
                           text=True, check=True).stdout.split("\n")
    symbols = [line.split()[-1].split("@")[0] for line in names if line.strip()]
    foreign = [s for s in symbols if not s.startswith(("gbx_", "GLOVEBOX_"))]
    assert symbols and not foreign, foreign


def test_the_header_is_c_and_cplusplus():
    header = '#include "glovebox.h"\nint main(void) { return 0; }\n'
    for language, std in (("c", "c11"), ("c++", "c++17")):
        subprocess.run(["cc", "-x", language, f"-std={std}", "-Wall", "-Wextra", "-Werror",
                        "-fsyntax-only", f"-I{ROOT / 'include'}", "-"], input=header.encode(),
                       check=True)


DENIALS = r"""
#include <glovebox.h>
#include <stdio.h>
#include <stddef.h>
#include <string.h>

int main(void)
{
	static const char *codes[] = { "pass", "import os; os.sched_setaffinity(0, {0})" };
	struct gbx_session *s = NULL;
	struct gbx_error e;

	if (gbx_open(NULL, &s, &e) < 0)
		return 1;
	for (int i = 0; i < 2; i++) {
		struct gbx_request q = { .size = sizeof(q), .code = codes[i], .code_len = strlen(codes[i]) };
		struct gbx_result r = { .size = sizeof(r) };

		if (gbx_run(s, &q, &r, &e) < 0)
			return 2;
		printf("%zu %s %s %s\n", r.denial_count, r.denial_count ? r.denials[0].layer : "-",
			r.denial_count ? r.denials[0].what : "-", r.hint ? "hint" : "-");
		gbx_result_clear(&r);
		if (r.denials || r.hint || r.denial_count)
			return 3;
		/* As a program that was built against the first header: what is behind is its own. */
		memset(&r, 0x55, sizeof(r));
		r.size = offsetof(struct gbx_result, denials);
		if (gbx_run(s, &q, &r, &e) < 0 || r.exit_code != i)
			return 4;
		gbx_result_clear(&r);
		if (r.denial_count != (size_t)0x5555555555555555u)
			return 5;
	}
	gbx_close(s);
	return 0;
}
"""


def test_the_result_has_the_denials_also_for_programs_of_an_earlier_header(tmp_path):
    (tmp_path / "denials.c").write_text(DENIALS)
    done = subprocess.run([compiled(tmp_path / "denials.c", tmp_path / "denials")], timeout=120, check=False,
                          capture_output=True, env={"PATH": "/usr/bin:/bin", "GLOVEBOX_PROGRAM": PROGRAM})
    assert (done.returncode, done.stdout) == (0, b"0 - - -\n1 seccomp sched_setaffinity hint\n"), done


INPUTS = """\
#include <glovebox.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

int main(void)
{
	static const char code[] = "import os, sys, part; print(sys.argv, os.environ['A'], part.x, sys.stdin.read())";
	static const char *const args[] = { "--one", "", NULL }, *const env[] = { "A=b=c", NULL };
	static const char *const bad_env[] = { "LD_PRELOAD=x", NULL };
	struct gbx_file files[] = { { .path = "part.py", .bytes = "x = 7", .len = 5 },
		{ .path = "app/run.py", .bytes = "print(__file__)", .len = 15, .mode = 0600 } };
	struct gbx_session *s = NULL;
	struct gbx_error e;

	if (gbx_open(NULL, &s, &e) < 0)
		return 1;
	struct gbx_request q = { .size = sizeof(q), .code = code, .code_len = sizeof(code) - 1, .args = args, .env = env,
		.files = files, .file_count = 2, .input = "in", .input_len = 2 };
	struct gbx_result r = { .size = sizeof(r) };

	if (gbx_run(s, &q, &r, &e) < 0)
		return puts(e.text), 2;
	printf("%s%s", r.out.bytes, r.err.bytes);
	gbx_result_clear(&r);
	/* Built with the first header: what is behind is its own. */
	memset((char *)&q + offsetof(struct gbx_request, args), 0x55, sizeof(q) - offsetof(struct gbx_request, args));
	q.size = offsetof(struct gbx_request, args);
	q.code = "print('old')";
	q.code_len = 12;
	if (gbx_run(s, &q, &r, &e) < 0)
		return puts(e.text), 3;
	printf("%s", r.out.bytes);
	gbx_result_clear(&r);
	q.size--;
	if (gbx_run(s, &q, &r, &e) >= 0)
		return 4;
	puts(e.text);
	q = (struct gbx_request){ .size = sizeof(q), .files = files, .file_count = 2, .entry_point = "app/run.py" };
	if (gbx_run(s, &q, &r, &e) < 0)
		return puts(e.text), 5;
	printf("%s", r.out.bytes);
	gbx_result_clear(&r);
	for (int i = 0; i < 2; i++) {
		q.entry_point = files[0].path = i == 0 ? "-c" : "@c";
		if (gbx_run(s, &q, &r, &e) >= 0)
			return 7;
		puts(e.text);
	}
	q.entry_point = "none";
	for (int i = 0; i < 5; i++) {
		if (gbx_run(s, &q, &r, &e) >= 0)
			return 6;
		puts(e.text);
		q.entry_point = NULL;
		q.code = "print(1)";
		q.code_len = 8;
		q.env = i == 0 ? bad_env : NULL;
		files[0].path = i == 1 ? "../x" : i == 2 ? "app/run.py" : "ok";
		files[0].mode = i == 3 ? 04755 : 0;
	}
	gbx_close(s);
	return 0;
}
"""


def test_a_request_takes_inputs_and_says_what_is_wrong_with_them(tmp_path):
    (tmp_path / "inputs.c").write_text(INPUTS)
    done = subprocess.run([compiled(tmp_path / "inputs.c", tmp_path / "inputs")], timeout=120, check=False,
                          capture_output=True, text=True, env={"PATH": "/usr/bin:/bin", "GLOVEBOX_PROGRAM": PROGRAM})
    assert done.returncode == 0, done
    assert done.stdout.splitlines() == [
        "['main.py', '--one', ''] b=c 7 in", "old", "gbx_run: size is not set", "/workspace/app/run.py",
        *['entry_point must not begin with "-" or "@"'] * 2, "entry_point is the path of none of the files",
        'env: "LD_PRELOAD" is read before the program begins, or says what the cell is, and cannot be set',
        'files[0]: the path "../x" must have no component "." or ".."',
        'files[1]: the path "app/run.py" stands here twice',
        "files[0]: a mode above 0777, a reserved field, or a length without bytes"], done.stdout
