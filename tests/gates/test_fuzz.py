"""tools/fuzz: a target that finds something, or never ran, is a failure; and no target is
without a corpus that is replayed. tools/coverage: what it calls not covered."""
import importlib.machinery
import importlib.util
import os
import shutil
import subprocess

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RULES = "rule nothing\n  command = true\nbuild tests/fuzz/fuzz_%s: nothing\n"
STATS = "echo '#9 DONE   cov: 12 ft: 3' >&2; echo stat::number_of_executed_units: %s >&2; " \
        "echo stat::average_exec_per_sec: 7 >&2; exit %d"


def load(name):
    loader = importlib.machinery.SourceFileLoader(name, f"{TOP}/tools/{name}")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(name, loader))
    loader.exec_module(module)
    return module


def run(tmp_path, body, *args):
    """tools/fuzz in a tree with the one target `a`, which is this shell script."""
    for folder in ("tools", "tests/fuzz/corpus/a", "build-fuzz/tests/fuzz"):
        (tmp_path / folder).mkdir(parents=True)
    shutil.copy(f"{TOP}/tools/fuzz", tmp_path / "tools")
    (tmp_path / "tests/fuzz/meson.build").write_text("x = [\n    ['a', ['base'], []],\n]\n")
    (tmp_path / "build-fuzz/build.ninja").write_text(RULES % "a")
    target = tmp_path / "build-fuzz/tests/fuzz/fuzz_a"
    target.write_text(f"#!/bin/sh\n{body}\n")
    target.chmod(0o755)
    return subprocess.run(["tools/fuzz", "--seconds", "1", *args], cwd=tmp_path, check=False,
                          capture_output=True, text=True, stdin=subprocess.DEVNULL)


@pytest.mark.parametrize("body, status, last", [
    (STATS % (5, 0), 0, "1 passed, 0 failed, 0 skipped"),
    (STATS % (5, 77), 1, "0 passed, 1 failed, 0 skipped"),  # it found something
    (STATS % (0, 0), 1, "0 passed, 1 failed, 0 skipped"),   # it did nothing
    ("exit 0", 1, "0 passed, 1 failed, 0 skipped"),         # it is no fuzzer
])
def test_a_target_is_good_only_if_it_ran_and_found_nothing(tmp_path, body, status, last):
    done = run(tmp_path, body)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (status, last)


def test_a_target_that_is_not_there_is_refused(tmp_path):
    assert run(tmp_path, STATS % (5, 0), "b").returncode == 2


def test_every_target_is_listed_and_has_a_corpus():
    written = {name[len("fuzz_"):-len(".c")] for name in os.listdir(f"{TOP}/tests/fuzz")
               if name.startswith("fuzz_") and name.endswith(".c")}
    assert set(load("fuzz").targets()) == written
    for name in written:
        assert os.listdir(f"{TOP}/tests/fuzz/corpus/{name}"), name


def test_corpora_stay_small():
    for name in os.listdir(f"{TOP}/tests/fuzz/corpus"):
        folder = f"{TOP}/tests/fuzz/corpus/{name}"
        assert sum(os.path.getsize(f"{folder}/{f}") for f in os.listdir(folder)) <= 131072, name


COVERAGE = load("coverage")
PROFDATA = "#!/bin/sh\nshift; to=$2; shift 2; cat \"$@\" >\"$to\"\n"  # merge -o TO FROM…
SOURCE = ["if (r < 0 && x)", "if (r < 0)", "if (r < 0)"]


def entry(*rows):
    return {"functions": {(1, 9): "f"}, "branches": [[*row, 0, 0, 4] for row in rows]}


def test_a_branch_is_covered_only_if_it_went_both_ways_in_some_program():
    both, split = [(1, 5, 1, 10, 3, 4)], [(1, 14, 1, 15, 1, 0), (1, 14, 1, 15, 0, 5)]
    one = [(2, 5, 2, 10, 1, 0), (3, 5, 3, 10, 0, 0)]
    assert list(COVERAGE.one_way(entry(*both, *split, *one), SOURCE)) == \
        [(2, ("f", "r < 0 #2"), "false"), (3, ("f", "r < 0 #3"), "both")]


def test_what_was_counted_before_is_kept_where_no_changed_program_can_meet_it(tmp_path, monkeypatch):
    """With its runtime, a program that finds another's counts in its file would count nothing."""
    tool, raw = tmp_path / "bin" / "llvm-profdata", tmp_path / "counters" / "1.profraw"
    tool.parent.mkdir()
    raw.parent.mkdir()
    tool.write_text(PROFDATA)
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tool.parent}:{os.environ['PATH']}")

    def all_counts():
        return sorted("".join(open(path, encoding="ascii").read() for path in COVERAGE.counted(tmp_path)))
    COVERAGE.put_aside(tmp_path, True)  # nothing yet
    for n in "abc":
        raw.write_text(n)
        before = all_counts()
        COVERAGE.put_aside(tmp_path, True)
        assert not raw.exists() and all_counts() == before
    assert before == ["a", "b", "c"]
    raw.write_text("d")
    COVERAGE.put_aside(tmp_path, False)
    assert COVERAGE.counted(tmp_path) == []


@pytest.mark.parametrize("found, entries, wrong", [
    ({}, {}, []),
    ({"a": "true"}, {"a": ("true", "bug", False)}, []),
    ({"a": "true"}, {}, ["not explained: a: never true"]),
    ({"a": "true"}, {"a": ("false", "bug", False)},
     ["not explained: a: never true (explained: false)"]),
    ({"a": "true"}, {"a": ("both", "race", True)}, []),
    ({}, {"a": ("true", "bug", False)}, ["stale: a: never true, it says, and it went both ways"]),
    ({}, {"a": ("true", "race", True)}, []),
    ({}, {"gone": ("true", "race", True)}, ["stale: gone: there is no such branch"]),
    ({"a": "true"}, {"a": ("true", "because", False)}, ["no such reason: a: because"]),
])
def test_what_is_one_sided_is_explained_and_what_is_explained_is_one_sided(found, entries, wrong):
    def tuples(names):
        return {(name,): what for name, what in names.items()}
    assert list(COVERAGE.judge(tuples(found), {("a",)}, tuples(entries), {"bug", "race"})) == wrong


@pytest.mark.parametrize("line, sometimes", [
    ("src/a.c\tf\tr < 0\ttrue\tbug", False),
    ("src/a.c\tf\tr < 0\ttrue\trace\tsometimes", True),
    ("src/a.c\tf\tr < 0\ttrue\trace\tsometimes\twhile it is killed", True),
    ("src/a.c\tf\tr < 0\ttrue\tbug\t\tnobody calls it so", False),
])
def test_a_line_may_say_more_than_its_reason(tmp_path, line, sometimes):
    (tmp_path / "x.tsv").write_text(f"# head\n{line}\n", encoding="utf-8")
    (value,) = COVERAGE.read_explained(tmp_path / "x.tsv").values()
    assert value == ("true", line.split("\t")[4], sometimes)


@pytest.mark.parametrize("line", [
    "src/a.c\tf\tr < 0\ttrue", "src/a.c\tf\tr < 0\tnever\tbug", "src/a.c\tf\tr < 0\ttrue\tbug\tperhaps",
    "src/a.c\tf\tr < 0\ttrue\tbug\t\t"])
def test_a_line_that_is_none_is_refused(tmp_path, line):
    (tmp_path / "x.tsv").write_text(line + "\n", encoding="utf-8")
    with pytest.raises(SystemExit):
        COVERAGE.read_explained(tmp_path / "x.tsv")


def test_each_explained_branch_names_a_function_of_its_file_and_a_reason():
    reasons = COVERAGE.read_reasons(COVERAGE.REASONS)
    for (path, function, _), (_, reason, _) in COVERAGE.read_explained(COVERAGE.EXPLAINED).items():
        assert function in open(f"{TOP}/{path}", encoding="utf-8").read(), (path, function)
        assert reason in reasons, reason
