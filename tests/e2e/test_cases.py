"""The request cases of tests/cases/, each posted to a server of our own.

Two run at a time (the cases' README: at most one a CPU): all chosen ones are handed to
a pool when the first is asked for, and each test awaits its own."""
import importlib.util
import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from harness.server import START

FOLDER = Path(__file__).resolve().parents[1] / "cases"
FLAGS = ["--max-runs", "4", "--network"]

_spec = importlib.util.spec_from_file_location("cases_run", FOLDER / "run.py")
run = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(run)

CASES = run.load_cases(FOLDER / "cases.jsonl")
EXCEPTIONS = json.loads((FOLDER / "exceptions.json").read_text(encoding="utf-8"))


def exception_to(case):
    """The entry for this case, if there is one for the way in which programs are started."""
    entry = EXCEPTIONS.get(case["id"])
    return entry if entry and entry.get("start", START) == START else None


@pytest.fixture(scope="module")
def outcome(request, server):
    chosen = {item.callspec.params["case"]["id"] for item in request.session.items
              if item.path == request.path and hasattr(item, "callspec")}
    with ThreadPoolExecutor(max_workers=min(2, os.cpu_count() or 1)) as pool:
        futures = {c["id"]: pool.submit(run.run_case, c, server.url, {}, 40.0)
                   for c in CASES if c["id"] in chosen}
        yield lambda case: futures[case["id"]].result()
        for f in futures.values():
            f.cancel()


@pytest.mark.parametrize("case", CASES, ids=lambda c: c["id"])
def test_case(case, outcome):
    complaints = outcome(case)
    exception = exception_to(case)
    if exception:
        assert complaints, f"{case['id']} passes now: take it out of exceptions.json"
        assert any(exception["seen"] in c for c in complaints), complaints
        return
    assert not complaints, case["title"] + "\n" + "\n".join(complaints)


def test_every_exception_names_a_case_and_gives_a_reason():
    ids = {c["id"] for c in CASES}
    page = (FOLDER.parents[1] / "docs" / "cases.md").read_text(encoding="utf-8")
    for name, entry in EXCEPTIONS.items():
        assert name in ids and len(entry["why"]) > 20
        assert name in page, f"docs/cases.md does not explain {name}"


def test_no_case_was_lost():
    assert len(CASES) == len({c["id"] for c in CASES}) == 162
