"""What tools/soak says of figures that are fed to it: each kind of leak, and a slow end."""
import copy
import importlib.machinery
import importlib.util
import json
import os

import pytest

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def load():
    loader = importlib.machinery.SourceFileLoader("soak", f"{TOP}/tools/soak")
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader("soak", loader))
    loader.exec_module(module)
    return module


soak = load()
COUNTS = {"processes": 19, "control groups": 36, "net namespaces": 11, "supervisor: descriptors": 129,
          "supervisor: mounts": 22, "front: threads": 1}
MEMORY = {"supervisor: RSS kB": 4344, "front: PSS kB": 673, "zygote: RSS kB": 21104}


def censuses():
    return [{"counts": dict(COUNTS), "memory": dict(MEMORY), "dying groups": 0} for _ in range(6)]


def test_flat_figures_are_good():
    assert not list(soak.leaks(censuses())) and not list(soak.growth(censuses()))
    assert not list(soak.slowdown([0.002] * 5000))


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("more", [1, -1])
def test_one_more_or_less_of_anything_is_named(name, more):
    seen = censuses()
    seen[-1]["counts"][name] += more
    (why,) = soak.leaks(seen)
    assert why.startswith(f"{name}: ") and "census 5" in why


def test_what_is_counted_only_later_is_named():
    seen = censuses()
    seen[3]["counts"]["zygote: descriptors"] = 6
    assert "zygote: descriptors: None" in next(soak.leaks(seen))


@pytest.mark.parametrize("name", MEMORY)
def test_memory_that_grows_with_each_census_is_named_and_a_single_step_at_first_is_not(name):
    seen = censuses()
    for n, census in enumerate(seen):
        census["memory"][name] += n * 1000
    (why,) = soak.growth(seen)
    assert why.startswith(name)
    steady = copy.deepcopy(censuses())
    for census in steady[1:]:
        census["memory"][name] += 3000
    assert not list(soak.growth(steady))


def test_a_tail_that_grew_by_a_third_is_named_and_by_a_quarter_is_not():
    first = [0.002] * 980 + [0.010] * 20
    assert list(soak.slowdown(first + [0.002] * 980 + [0.0134] * 20))
    assert not list(soak.slowdown(first + [0.002] * 980 + [0.0125] * 20))


REPLY = {"status": "success", "stdout": "soak-1\n", "stderr": "", "exit_code": 0}
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2"


@pytest.mark.parametrize("head, reply, left", [
    (OK, {**REPLY, "stdout": "soak-2\n"}, b""),
    (OK, {**REPLY, "stdout": "soak-1\nsoak-1\n"}, b""),
    (OK, {**REPLY, "status": "error", "exit_code": 1}, b""),
    (OK, {**REPLY, "stderr": "x"}, b""),
    (b"HTTP/1.1 500 Internal Server Error", {"detail": "the code did not run"}, b""),
    (OK, REPLY, b"HTTP/1.1 200 OK"),
])
def test_an_answer_that_is_not_the_one_is_wrong(head, reply, left):
    client = soak.Client(0)
    client.check(b"soak-1", OK, json.dumps(REPLY).encode())
    client.left = left
    with pytest.raises(soak.Wrong):
        client.check(b"soak-1", head, json.dumps(reply).encode())
