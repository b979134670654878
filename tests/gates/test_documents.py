"""Documents that are held against the code: settings, diagrams, and the tests they name."""
import glob
import importlib.machinery
import importlib.util
import os
import re

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SETTING = re.compile(r'X\("([^"]+)",\s*[\w.]+,\s*\w+,\s*"([^"]*)",\s*\w+,\s*\w+,\s*"([^"]*)"\)')
TEST_FILE = re.compile(r"`(tests/[\w/]+/test_\w+\.(?:c|py))`")
TEST_NAME = re.compile(r"`([a-z0-9]+(?:_[a-z0-9]+){2,})`")


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


def settings():
    """(key, default, text) of each line of SETTINGS."""
    text = re.sub(r"\\\n\s*", " ", read("src/wire/settings.h"))
    body = text[text.index("#define SETTINGS(X)"):text.index("enum listen_kind")]
    found = SETTING.findall(body)
    assert len(found) == body.count('X("') > 20
    return found


def test_the_page_of_settings_has_every_key_with_its_default_and_text():
    rows = {row[0].strip("` "): row for row in
            (line.strip("|").split(" | ") for line in read("docs/configuration.md").splitlines()
             if line.startswith("| `"))}
    for key, default, text in settings():
        assert key in rows, key
        _key, _type, shown, _range, what = (cell.strip() for cell in rows[key])
        assert shown == (f"`{default}`" if default else "none"), key
        assert what.rstrip("| ") == text, key


def test_the_page_of_settings_has_no_key_that_does_not_exist():
    section = read("docs/configuration.md").split("## Settings")[1].split("\n- ")[0]
    assert set(re.findall(r"^\| `([a-z-]+)`", section, re.M)) == {key for key, _, _ in settings()}


def test_the_sample_file_and_the_manual_have_every_key():
    for path in ("deploy/glovebox.yaml", "man/glovebox.1"):
        text = read(path)
        for key, _, _ in settings():
            assert re.search(rf"(?<![\w-]){key}(?![\w-])", text), (path, key)


def test_the_diagram_of_a_run_is_the_table_in_the_code(monkeypatch):
    monkeypatch.chdir(TOP)
    loader = importlib.machinery.SourceFileLoader("print_diagrams", "tools/print-diagrams")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    picture = module.job()
    assert picture.count("->") == 6
    assert read("docs/diagrams/job.dot") == picture


def promises(text):
    """(file, test) pairs: a test's name belongs to the file named last before it in its line."""
    for line in text.splitlines():
        named = None
        for word in re.findall(r"`[^`]+`", line):
            path, name = TEST_FILE.fullmatch(word), TEST_NAME.fullmatch(word)
            if path:
                named = path[1]
            elif name and named:
                yield named, name[1]


def test_the_comparison_has_the_same_rows_for_everybody_and_tests_for_what_is_ours():
    tables = [[[cell.strip() for cell in line.strip("|").split(" | ")] for line in part.splitlines()]
              for part in re.findall(r"(?:^\|.*\n)+", read("docs/comparison.md"), re.M)]
    ours, *others = tables
    assert len(others) == 2 and len(ours) > 15
    for table in others:
        assert [row[0] for row in table[2:]] == [row[0] for row in ours[2:]]
        assert all(len(row) == len(table[0]) and all(row) for row in table[2:]), table
    for _what, said, tests in ours[2:]:
        assert tests if said != "not yet" else not tests, (said, tests)


def test_every_test_that_a_document_names_exists():
    seen = 0
    for path in glob.glob(f"{TOP}/*.md") + glob.glob(f"{TOP}/docs/**/*.md", recursive=True):
        for file, name in promises(read(path)):
            seen += 1
            assert re.search(rf"\b{name}\(", read(file)), f"{path}: {file} has no {name}"
    assert seen > 40


def test_a_test_that_is_not_there_would_be_seen():
    assert list(promises("| x | `tests/unit/test_job.c`: `no_such_test_here`; `kernel` |")) == \
        [("tests/unit/test_job.c", "no_such_test_here")]
