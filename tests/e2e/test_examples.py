"""The examples in the documents are what the server does."""
import json
import os
import re

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(os.path.join(TOP, path), encoding="utf-8") as f:
        return f.read()


EXAMPLES = re.findall(r"^    > (.+)\n    < (\d+) (.+)$", read("docs/api.md"), re.M)


def holds(want, have):
    """Every member of `want` is in `have`; only objects may have more."""
    if isinstance(want, dict):
        return isinstance(have, dict) and all(k in have and holds(v, have[k]) for k, v in want.items())
    return want == have


def test_there_are_examples():
    assert len(EXAMPLES) >= 10


@pytest.mark.parametrize("request_, status, reply", EXAMPLES, ids=range(len(EXAMPLES)))
def test_an_example_of_the_reference_is_what_the_server_answers(server, request_, status, reply):
    answer = server.post(request_.encode(), {"Content-Type": "application/json"})
    assert answer.status == int(status), answer
    assert holds(json.loads(reply), answer.json()), answer


def test_the_request_of_the_readme_has_its_reply(server):
    text = read("README.md")
    request_ = re.search(r"-d '(\{.*\})'", text)[1]
    shown = re.search(r'^    (\{"status".*?\})\n\n', text, re.M | re.S)[1].replace(",…]", "]")
    shown = json.loads(shown)
    answer = server.post(request_.encode(), {"Content-Type": "application/json"})
    have = answer.json()
    assert list(shown) == list(have), "the members and their order"
    for name in ("status", "stdout", "stderr", "exit_code", "cause", "signal", "limits", "output", "warnings"):
        assert shown[name] == have[name], name
    for name in ("usage", "isolation"):
        assert list(shown[name]) == list(have[name]), name
