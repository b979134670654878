"""The corpus as a whole: what docs/attacks.md says of it is so."""
import importlib.util
import re
from pathlib import Path

import pytest

from corpus import Attack
from harness.server import ROOT

FILES = sorted(Path(__file__).parent.glob("test_*.py"))
# Of the page's table: | class | what stops it | file | entries |
ROW = re.compile(r"\| `tests/escape/(test_\w+\.py)` \| (\d+) \|$", re.M)
# Checks of the checks, which attack nothing.
NO_CLASS = {"test_corpus.py", "test_invariants.py"}


def attacks(path):
    """{list's name: its attacks} of one file."""
    spec = importlib.util.spec_from_file_location(f"entries_of_{path.stem}", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {name: value for name, value in vars(module).items()
            if isinstance(value, list) and any(isinstance(a, Attack) for a in value)}


def test_the_page_has_every_class_and_counts_its_entries():
    rows = ROW.findall((ROOT / "docs" / "attacks.md").read_text(encoding="utf-8"))
    said = {name: int(count) for name, count in rows}
    assert len(said) == len(rows)
    found = {path.name: sum(map(len, attacks(path).values())) for path in FILES if path.name not in NO_CLASS}
    assert said == {name: count for name, count in found.items() if count}


@pytest.mark.parametrize("path", [p for p in FILES if p.name not in NO_CLASS], ids=lambda p: p.stem)
def test_names_are_there_and_unique_in_their_list(path):
    for group, entries in attacks(path).items():
        names = [a.name for a in entries]
        assert all(names) and len(set(names)) == len(names), group
        codes = [a.code for a in entries]
        assert len(set(codes)) == len(codes), f"{group}: a program is there twice"
