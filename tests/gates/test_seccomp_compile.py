"""The policy compiler refuses what it cannot be sure about, and says where and why."""
import os
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEFAULT = "default errno ENOSYS # unknown calls\n"


@pytest.fixture(scope="module")
def compiler(tmp_path_factory):
    program = tmp_path_factory.mktemp("tool") / "seccomp-compile"
    subprocess.run(["gcc", "-D_GNU_SOURCE", "-o", program, f"{TOP}/tools/seccomp-compile.c",
                    "-lseccomp"], check=True)
    return program


@pytest.fixture
def compile_policy(compiler, tmp_path):
    def run(text):
        policy, header = tmp_path / "try.seccomp", tmp_path / "out.h"
        policy.write_text(text, encoding="utf-8")
        done = subprocess.run([compiler, header, policy], check=False, capture_output=True,
                              text=True)
        return done.returncode, done.stderr, header

    return run


def test_a_sound_policy_becomes_a_header_that_compiles(compile_policy, tmp_path):
    status, said, header = compile_policy(DEFAULT + "allow read # input\n")
    assert (status, said) == (0, "")
    (tmp_path / "use.c").write_text('#include "out.h"\nint main(void)\n'
                                    "{ return seccomp_try[0].code == 0; }\n")
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", tmp_path / "use", tmp_path / "use.c"], check=True)
    assert header.exists()


def test_the_same_policy_gives_the_same_bytes(compile_policy):
    text = DEFAULT + "allow read write # bytes\nerrno EPERM ioctl if low1 == TIOCSTI # typing\n" \
        "allow ioctl # rest\n"
    first = compile_policy(text)[2].read_bytes()
    assert compile_policy(text)[2].read_bytes() == first


@pytest.mark.parametrize("line, complaint", [
    ("allow read", "every line says why"),
    ("allow read #", "every line says why"),
    ("allow raed # typing error", "raed: no such system call"),
    ("allow # nothing", "no call is named"),
    ("permit read # no action", "permit is no action"),
    ("errno EFROG read # no errno", "EFROG is no known errno"),
    ("allow read read # twice", "an earlier line has decided already"),
    ("allow ioctl if low1 == TCGETS # no otherwise", "no unconditional line"),
    ("allow ioctl if low9 == 1 # argument", "low9 is no argument"),
    ("allow ioctl if low1 = 1 # operator", "= is no comparison"),
    ("allow ioctl if low1 == # value", "the line ends too early"),
    ("allow ioctl if low1 == TCGUTS # constant", "TCGUTS is neither a number nor a known"),
    ("allow ioctl if low1 == 0x100000000 # too wide", "can never be seen"),
    ("allow ioctl if low1 & 0xF == 0x10 # mask", "can never be seen"),
    ("allow ioctl if low1 == 1 or low1 == 2 # or", "or is not understood"),
    ("allow listmount@12 # number", "have one number everywhere"),
    ("allow openat2@999 # contradiction", "libseccomp says that it is 437"),
    ("default allow # twice", "a second default"),
])
def test_a_line_that_is_wrong_is_refused_with_its_place(compile_policy, line, complaint):
    status, said, header = compile_policy(DEFAULT + line + "\n")
    assert status == 1
    assert complaint in said
    assert "try.seccomp:" in said


def test_a_policy_without_a_default_is_refused(compile_policy):
    status, said, _ = compile_policy("allow read # input\n")
    assert status == 1
    assert "no default line" in said
