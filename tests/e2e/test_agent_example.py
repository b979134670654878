"""examples/agent_tool: the simulated agent asks, sees errors, corrects them, finishes."""
import json
import os
import subprocess

from harness.server import PROGRAM, ROOT

RUN = ROOT / "examples" / "agent_tool" / "run"


def agent(*args):
    done = subprocess.run([RUN, *args], capture_output=True, text=True, timeout=170, check=False,
                          env={"PATH": os.environ.get("PATH", "/usr/bin:/bin"), "LANG": "C.UTF-8",
                               "GLOVEBOX_PROGRAM": PROGRAM})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_agent_corrects_its_errors_and_finishes_with_the_right_answer(server):
    text = agent(server.url)
    assert "AttributeError" in text and "status: timeout" in text
    assert "148933" in text.splitlines()[-1] and "4.0" in text.splitlines()[-1]
    sent = agent(server.url, "--json")
    calls = [m for m in json.loads(sent) if m["role"] == "tool"]
    assert [c["result"]["status"] for c in calls] == ["error", "success", "timeout", "success"]


def test_without_a_server_at_its_url_the_agent_says_so_in_a_line():
    done = subprocess.run([RUN, "http://127.0.0.1:9"], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done
    assert done.stderr.startswith("http://127.0.0.1:9: ") and "is a server there?" in done.stderr


def test_the_agent_starts_a_server_of_its_own_when_given_none():
    assert "148933" in agent()
