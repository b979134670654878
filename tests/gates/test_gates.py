"""Each gate is fed a small tree that is right and one that is wrong: a gate that
cannot fail would guard nothing."""
import os
import shutil
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree to write into, and the gates that judge it."""
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    class Tree:
        def write(self, path, text):
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
            return str(target)

        def gate(self, name, *args):
            done = subprocess.run([f"{TOP}/tools/check-{name}", *args], cwd=tmp_path, check=False,
                                  stdin=subprocess.DEVNULL, capture_output=True, text=True)
            return done.returncode, done.stdout + done.stderr

        def passes(self, name, *args):
            status, said = self.gate(name, *args)
            assert (status, said) == (0, "")

        def fails(self, name, *words, args=()):
            status, said = self.gate(name, *args)
            assert status == 1, said
            for word in words:
                assert word in said
            return said

        def compile(self, output, source, *flags):
            path = self.write("object.c", source)
            target = tmp_path / output
            target.parent.mkdir(parents=True, exist_ok=True)
            subprocess.run(["gcc", "-o", target, path, *flags], check=True, cwd=tmp_path)

    (tmp_path / "src").mkdir()
    return Tree()


HEADER = "/* A thing.\n *\n *   runs in    every process\n */\n#pragma once\n\nint thing(void);\n"


# Layers.

def test_layers_allow_what_the_table_allows(tree):
    tree.write("src/base/io.h", HEADER)
    tree.write("src/kernel/confine.h", HEADER)
    tree.write("src/edge/a.c", '#include "base/io.h"\n#include "kernel/confine.h"\n'
                               "#include <event2/event.h>\n#include <stdio.h>\n")
    tree.write("src/kernel/b.c", "#include <linux/sched.h>\nlong f(void) { return syscall(1); }\n")
    tree.passes("layers")


@pytest.mark.parametrize("path, line, why", [
    ("src/edge/a.c", '#include "priv/x.h"', "edge/ may not use priv/"),
    ("src/edge/a.c", '#include "kernel/x.h"', "edge/ may not use kernel/"),
    ("src/priv/a.c", '#include "edge/x.h"', "priv/ may not use edge/"),
    ("src/base/a.h", '#include "wire/x.h"', "base/ may not use wire/"),
    ("src/caller/lib/a.c", '#  include "kernel/x.h"', "caller/ may not use kernel/"),
    ("src/edge/a.c", '#include "x.h"', "not a path from src/"),
    ("src/priv/a.c", "#include <jansson.h>", "priv/ may not use this library"),
    ("src/box/a.c", "#include <linux/seccomp.h>", "only kernel/ includes kernel headers"),
    ("src/priv/a.c", "long r = syscall(435, 0, 0);", "only kernel/ makes raw system calls"),
    ("src/new/a.c", "int x;", "not in the layer table"),
])
def test_layers_refuse_a_crossing(tree, path, line, why):
    for zone in ("priv", "edge", "kernel", "wire"):
        tree.write(f"src/{zone}/x.h", HEADER)
    tree.write(path, line + "\n")
    tree.fails("layers", f"{path}:1: ", why)


# Sizes.

def function(name, lines=1, parameters="void", body="\tx++;\n"):
    return f"int {name}({parameters})\n{{\n\tint x = 0;\n" + body * lines + "\treturn x;\n}\n"


def test_sizes_within_bounds_pass(tree):
    tree.write("src/base/a.c", function("f", 90, "int a, int b, int c, int d, int e, int g"))
    tree.passes("size")


@pytest.mark.parametrize("path, text, why", [
    ("src/base/a.c", "int x;\n" * 1001, "lines: 1001 lines"),
    ("src/base/a.h", "int x;\n" * 401, "lines: 401 lines"),
    ("src/base/a.c", function("f", 100), "f: 105 lines, at most 100"),
    ("src/base/a.c", function("f", 15, body="\tif (x)\n\t\tx++;\n"), "f: cyclomatic complexity 16"),
    ("src/base/a.c", function("f", 1, "int a, int b, int c, int d, int e, int g,\n\tint (*h)(int, int)"),
     "f: 7 parameters"),
])
def test_sizes_over_a_bound_fail(tree, path, text, why):
    tree.write(path, text)
    tree.fails("size", why)


def test_size_exception_needs_a_reason_and_a_use(tree):
    tree.write("src/base/a.c", "int x;\n" * 1001)
    tree.write("tools/size-exceptions", "# comment\nsrc/base/a.c lines a table of numbers\n")
    tree.passes("size")
    tree.write("tools/size-exceptions", "src/base/a.c lines\n")
    tree.fails("size", "no reason")
    tree.write("src/base/a.c", "int x;\n")
    tree.write("tools/size-exceptions", "src/base/a.c lines a table of numbers\n")
    tree.fails("size", "not needed any more: src/base/a.c lines")


# Format.

def test_format_accepts_its_own_output_and_nothing_else(tree):
    shutil.copy(f"{TOP}/.clang-format", tree.write(".clang-format", ""))
    tree.write("src/base/a.c", "int f(int a)\n{\n\treturn a;\n}\n")
    tree.passes("format")
    tree.write("tests/unit/a.c", "int f(int a) { return a; }\n")
    tree.fails("format", "tests/unit/a.c:1")


# Headers.

def test_header_that_stands_alone_passes(tree):
    tree.write("src/base/a.h", HEADER)
    tree.passes("headers")


@pytest.mark.parametrize("text, why", [
    (HEADER + "size_t f(void);\n", "does not compile alone with gcc"),
    (HEADER.replace("#pragma once\n", "enum e { A };\n"), "no #pragma once"),
    (HEADER.replace("   runs in ", "   stands in "), "does not say where it runs"),
    ("\n" + HEADER, "no contract block at its head"),
])
def test_header_that_does_not_stand_alone_fails(tree, text, why):
    tree.write("src/base/a.h", text)
    tree.fails("headers", "base/a.h", why)


def test_public_header_has_to_be_plain_c99_and_cxx(tree):
    tree.write("include/glovebox.h", "int f(int new_one);\n")
    tree.passes("headers")
    tree.write("include/glovebox.h", "int f(int new);\n")
    tree.fails("headers", "glovebox.h: does not compile alone with g++")


# Banned calls.

def test_words_in_comments_and_strings_are_no_calls(tree):
    tree.write("src/base/a.c", '/* system(x), a // b */\nconst char *f = "http://x strcpy(a)";\n')
    tree.compile("build/src/base/a.c.o", "int f(void) { return 0; }\n", "-c")
    tree.passes("banned", "build")


@pytest.mark.parametrize("text, why", [
    ("int f(char *a) {\n\tstrcpy(a, a);\n}\n", "src/base/a.c:2: calls strcpy()"),
    ("/* one\n * two */\nint x = fork();\n", "src/base/a.c:3: calls fork()"),
    ("int f(void) {\n\tgoto out;\nout:;\n}\n", "src/base/a.c:2: goto"),
    ("int x; // why\n", "src/base/a.c:1: // comment"),
    ("long f(void) {\n\treturn time(NULL);\n}\n", "src/base/a.c:2: asks time() for the wall clock"),
    ("int f(void *t) {\n\treturn clock_gettime(CLOCK_REALTIME, t);\n}\n", "src/base/a.c:2: the wall clock"),
])
def test_banned_text_fails(tree, text, why):
    tree.compile("build/src/base/a.c.o", "int f(void) { return 0; }\n", "-c")
    tree.write("src/base/a.c", text)
    tree.fails("banned", why, args=["build"])


@pytest.mark.parametrize("call, name", [
    ("strcat(a, a)", "strcat"), ("(f)()", "fork"), ("__strcpy_chk(a, a, 9)", "strcpy"),
])
def test_banned_symbol_in_an_object_fails(tree, call, name):
    tree.compile("build/src/base/a.c.o", "char *strcat(), *__strcpy_chk(); int fork(void);\n"
                 f"void *g(char *a) {{ int (*f)(void) = fork; return (void *)(long){call}; }}\n",
                 "-c", "-w", "-fno-builtin")
    tree.fails("banned", f"refers to {name}()", args=["build"])


def test_no_object_is_no_proof(tree):
    tree.fails("banned", "build first", args=["build"])


# Hardening.

SOURCE = """#include <stdio.h>
#include <string.h>
int gbx_f(const char *a) { char b[64]; strcpy(b, a); return printf("%s", b); }
int main(int c, char **v) { return gbx_f(v[c - 1]); }
#ifdef NEWER
const char *strerrordesc_np(int);
const char *gbx_g(int c) { return strerrordesc_np(c); }
#endif
"""
HARD = ["-O2", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong", "-Wl,-z,relro,-z,now"]


def harden(tree, **replace):
    """The four binaries, hardened, with other flags for those that `replace` names."""
    flags = {"glovebox": [*HARD, "-fPIE", "-pie"],
             "library": [*HARD, "-fPIC", "-shared"],
             "box": [*HARD, "-fPIE", "-static-pie"],
             "cold": [*HARD, "-fPIC", "-shared"], **replace}
    tree.compile("build/glovebox", SOURCE, *flags["glovebox"])
    tree.compile("build/src/caller/libglovebox.so", SOURCE.replace("main", "gbx_main"),
                 *flags["library"])
    tree.compile("build/src/box/box", SOURCE, *flags["box"])
    tree.compile("build/src/box/glovebox_cold.so", SOURCE, *flags["cold"])


def test_hardened_binaries_pass(tree):
    harden(tree)
    tree.passes("hardening", "build")


@pytest.mark.parametrize("which, flags, why", [
    ("glovebox", [*HARD, "-no-pie"], "fixed address"),
    ("glovebox", [*HARD, "-fPIE", "-pie", "-Wl,-z,lazy"], "not bound at start"),
    ("glovebox", [*HARD, "-fPIE", "-pie", "-Wl,-z,norelro"], "no RELRO"),
    ("glovebox", [*HARD, "-fPIE", "-pie", "-Wl,-z,execstack"], "stack is data"),
    ("glovebox", [*HARD, "-fPIE", "-pie", "-U_FORTIFY_SOURCE"], "no fortified call"),
    ("glovebox", [*HARD, "-fPIE", "-pie", "-fno-stack-protector"], "no stack protector"),
    ("glovebox", [*HARD, "-fPIE", "-pie", "-Wl,-rpath,/x"], "folder of its own"),
    ("glovebox", [*HARD, "-fPIE", "-pie", "-Wl,--no-as-needed", "-levent"], "more of libevent"),
    ("library", [*HARD, "-fPIC", "-shared", "-Df=g", "-Dgbx_f=other"], "outside gbx_"),
    ("box", [*HARD, "-fPIE", "-pie"], "asks for a loader"),
    ("cold", [*HARD, "-fPIC", "-shared", "-DNEWER"], "asks for GLIBC_2.32"),
])
def test_missing_hardening_fails(tree, which, flags, why):
    harden(tree, **{which: flags})
    tree.fails("hardening", why, args=["build"])


def test_missing_binary_is_no_proof(tree):
    tree.fails("hardening", "build first", args=["build"])


# Documents.

def test_documents_that_name_what_exists_pass(tree):
    tree.write("src/base/io.c", "")
    tree.write("docs/zones/base.md", "See `src/base/io.c`, [io](../../src/base/io.c), "
               "`src/base/*.c`, `policy/NAME.seccomp`, https://example.org/src/x and `make build`.\n")
    tree.write("Makefile", "build:\n")
    tree.passes("docs")


@pytest.mark.parametrize("text, why", [
    ("See `src/base/gone.c`.", "src/base/gone.c does not exist"),
    ("See `tests/none/*.c`.", "tests/none/*.c does not exist"),
    ("See [it](gone.md).", "link to gone.md"),
    ("Run `make nothing`.", "make nothing is no target"),
])
def test_document_that_names_what_is_not_there_fails(tree, text, why):
    tree.write("README.md", f"# Title\n{text}\n")
    tree.fails("docs", "README.md:2: ", why)


def test_zone_without_a_page_fails(tree):
    tree.write("src/edge/a.c", "")
    tree.fails("docs", "docs/zones/edge.md is missing")


def test_manual_page_with_a_mistake_fails(tree):
    page = open(f"{TOP}/man/glovebox.1", encoding="utf-8").read()
    tree.write("man/glovebox.1", page)
    tree.passes("docs")
    tree.write("man/glovebox.1", page + ".Nosuchmacro x\n")
    tree.fails("docs", "man/glovebox.1", "Nosuchmacro")


# Places outside the tree.

def test_words_that_only_look_like_places_pass(tree):
    tree.write("README.md", "/usr/share/x, a shared library, /workspace/main.py, /tmp/x, farm/x\n")
    tree.passes("paths")


@pytest.mark.parametrize("text", [
    "see ../share" + "d/x", "see share" + "d/DESIGN", "in /wor" + "k/main", "a sub" + "agent did",
    "from deb.debia" + "n.org", "in /root/" + ".cache",
])
def test_places_outside_the_tree_fail(tree, text):
    tree.write("src/base/a.c", f"int x;\n/* {text} */\n")
    tree.fails("paths", "src/base/a.c:2:")
