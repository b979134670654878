"""The policy compiler refuses what it cannot be sure about, and says where and why."""
import os
import platform
import random
import re
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
DEFAULT = "default errno ENOSYS # unknown calls\n"
ARCHES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
ALLOW, EPERM, EACCES, ENOSYS = 0x7FFF0000, 0x00050001, 0x0005000D, 0x00050026


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
    ("allow ioctl if arg1 in 1 0x100000001 # two upper halves", "have the same upper half"),
    ("allow ioctl if low1 == 1 or low1 == 2 # there is no or", "or is not understood"),
    ("allow listmount@12 # number", "have one number everywhere"),
    ("allow openat2@999 # contradiction", "libseccomp says that it is 437"),
    ("default allow # twice", "a second default"),
    ("deny read # no errno", "read is no known errno"),
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


# The code that it generates, against the meaning of the lines.

def read_program(header):
    return [tuple(int(x, 0) for x in m)
            for m in re.findall(r"\{ (0x\w+), +(\d+), +(\d+), (0x\w+) \}", header.read_text())]


def evaluate(header, nr, args):
    """What the kernel would do with the only program in `header`."""
    program = read_program(header)
    assert 0 < len(program) <= 4096
    words = [nr, ARCHES[platform.machine()], 0, 0]
    for arg in args:
        words += [arg & 0xFFFFFFFF, arg >> 32]
    acc = pc = 0
    while True:
        code, yes, no, k = program[pc]
        pc += 1
        if code == 0x06:
            return k
        if code == 0x20:
            acc = words[k // 4]
        elif code == 0x54:
            acc &= k
        elif code == 0x05:
            pc += k
        elif code in (0x15, 0x35):
            pc += yes if (acc == k if code == 0x15 else acc >= k) else no
        else:
            raise AssertionError(hex(code))


def random_term(rng):
    low = rng.random() < 0.5
    full = 0xFFFFFFFF if low else 0xFFFFFFFFFFFFFFFF
    mask = rng.choice([full, 0xFF, 0xF0F, full & ~1, full & 0xFF000000FF])
    upper = rng.choice([0, 1 << 32])
    values = [(rng.choice([0, 1, 2, 0x100]) | upper) & mask for _ in range(rng.randint(1, 30))]
    arg, negate = rng.randrange(6), rng.random() < 0.3
    values = values[:1] if negate else values
    masked = "" if mask == full else f" & {mask:#x}"
    text = f"{'low' if low else 'arg'}{arg}{masked} " + (
        f"!= {values[0]}" if negate else "in " + " ".join(map(str, values)))
    return text, lambda a: ((a[arg] & mask) in values) != negate


def random_policy(rng, calls):
    """Its text, and a function that says what it means. `calls` are (name, number)."""
    lines, meaning = [DEFAULT], {}
    for name, number in calls:
        rules = meaning.setdefault(number, [])
        for _ in range(rng.randint(0, 10)):
            terms = [random_term(rng) for _ in range(rng.randint(1, 3))]
            action = rng.choice([("allow", ALLOW), ("errno EPERM", EPERM)])
            lines.append(f"{action[0]} {name} if {' and '.join(t for t, _ in terms)} # random\n")
            rules.append((action[1], [holds for _, holds in terms]))
        rules.append((ENOSYS if len(rules) % 2 else ALLOW, []))
        lines.append(f"{'errno ENOSYS' if rules[-1][0] == ENOSYS else 'allow'} {name} # random\n")

    def mean(nr, args):
        for action, terms in meaning.get(nr, []):
            if all(holds(args) for holds in terms):
                return action
        return ENOSYS

    return "".join(lines), mean


@pytest.mark.parametrize("seed", range(6))
def test_the_program_does_what_the_lines_say(compile_policy, seed):
    # Numbers from 424 on are the same on every architecture. Four calls with all their
    # conditions make jumps that are longer than a conditional one can be.
    rng = random.Random(seed)
    calls = [("pidfd_send_signal", 424), ("open_tree", 428), ("clone3", 435), ("openat2", 437)]
    text, mean = random_policy(rng, calls)
    status, said, header = compile_policy(text)
    assert (status, said) == (0, "")
    for _ in range(400):
        nr = rng.choice([number for _, number in calls] + [0, 425, 436, 438])
        args = [rng.choice([0, 1, 2, 3, 0x100, 1 << 32, (1 << 32) | 1, 0xFFFFFFFFFFFFFFFF])
                for _ in range(6)]
        assert evaluate(header, nr, args) == mean(nr, args), (nr, args)


# A conditional jump skips at most 255 instructions; these jumps take every length around it.

def several(n):
    return " ".join(str(i) for i in range(1, n + 1))


def test_the_search_for_the_number_arrives_however_long_the_jump(compile_policy):
    lengths, lengthened = set(), False
    for lines in (6, 7, 8):
        filling = "".join(f"allow clone3 if low{i % 4} in {several(30)} # filling\n" for i in range(lines))
        for plain in range(1, 31):
            _, _, header = compile_policy(
                DEFAULT + filling + f"allow clone3 if low4 in {several(plain)} # one each\n"
                "allow clone3 if low5 & 0xFF == 7 # three in all\n"
                "errno EPERM clone3 # below\nerrno EACCES openat2 # above\n")
            assert [evaluate(header, nr, [0] * 6) for nr in (434, 435, 436, 437, 438)] == [
                ENOSYS, EPERM, ENOSYS, EACCES, ENOSYS]
            assert evaluate(header, 435, [0, 0, 0, 0, plain, 0]) == ALLOW
            assert evaluate(header, 435, [0, 0, 0, 0, 0, 7]) == ALLOW
            assert evaluate(header, 435, [0, 0, 0, 30, 0, 0]) == ALLOW
            for code, yes, no, _ in read_program(header):
                lengths |= {yes, no} if code in (0x15, 0x35) else set()
                lengthened |= code == 0x05
    assert {253, 254, 255} <= lengths and lengthened


def test_a_condition_that_fails_goes_to_the_next_line(compile_policy):
    for first in (1, 2, 31):
        for second in (1, 30):
            _, _, header = compile_policy(
                DEFAULT + "allow openat2 if low0 == 1 "
                f"and arg1 & 0xFF000000FF in {several(first)} "
                f"and arg2 & 0xFFFFFFFF000000FF in {several(second)} # three conditions\n"
                "errno EPERM openat2 # otherwise\n")
            assert evaluate(header, 437, [0, 1, 1, 0, 0, 0]) == EPERM
            assert evaluate(header, 437, [1, 0, 1, 0, 0, 0]) == EPERM
            assert evaluate(header, 437, [1, 1, 0, 0, 0, 0]) == EPERM
            assert evaluate(header, 437, [1, 1 << 32 | first, second, 0, 0, 0]) == EPERM
            assert evaluate(header, 437, [1, first, second, 0, 0, 0]) == ALLOW


def test_returns_are_shared(compile_policy):
    """The kernel translates the whole program for each process that installs it."""
    _, _, header = compile_policy(DEFAULT + "".join(
        f"allow {name} # every other number\n" for name in ("read", "open", "stat", "lstat", "lseek", "mprotect")))
    assert len([code for code, *_ in read_program(header) if code == 0x06]) == 3  # kill, allow, ENOSYS


def test_what_is_not_named_cannot_be_told_of(compile_policy):
    status, said, _ = compile_policy("default deny EPERM # everything\nallow read # input\n")
    assert status == 1 and "what is not named cannot be told of" in said


def test_a_denial_is_an_errno_with_a_second_program_for_a_listener(compile_policy):
    plain = compile_policy(DEFAULT + "errno EPERM mount # denied\nallow read # input\n")[2].read_text()
    status, said, header = compile_policy(DEFAULT + "deny EPERM mount # denied\nallow read # input\n")
    both = header.read_text()
    assert (status, said) == (0, "") and both.startswith(plain)
    told = both[len(plain):]
    assert "seccomp_try_told" in told and "0x7fc00001" in told and "0x7fc0" not in plain
    assert "seccomp_try_told" not in plain


def test_the_names_are_those_of_denied_calls(compiler, tmp_path):
    (tmp_path / "try.seccomp").write_text(
        DEFAULT + "deny EPERM mount listmount@458 # denied\nerrno EPERM umount2 # denied\nallow read # input\n"
        "deny EPERM ioctl if low1 == TIOCSTI # some\nallow ioctl # rest\n")
    subprocess.run([compiler, "--names", tmp_path / "names.h", tmp_path / "try.seccomp"], check=True)
    names = re.findall(r'\{ (\d+), "(\w+)" \}', (tmp_path / "names.h").read_text())
    assert sorted(name for _, name in names) == ["ioctl", "listmount", "mount"]
    assert ("458", "listmount") in names
    (tmp_path / "use.c").write_text('#include "names.h"\nint main(void)\n{ return denied_calls[0].number == 0; }\n')
    subprocess.run(["gcc", "-Wall", "-Werror", "-o", tmp_path / "use", tmp_path / "use.c"], check=True)
