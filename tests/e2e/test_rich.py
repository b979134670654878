"""What an interpreter tells of its program beside the output: the exception that ended it and the
value of its last statement. The same warm and cold, and on stderr nothing is other than it is."""
import json

import pytest

from harness.life import servers_by

ROOMY = {"timeout_seconds": 30, "memory_limit_mb": 256, "cpu_limit": 1}
FLAGS_OF = {"warm": ["--cold=false", "--pool-size", "2"], "cold": ["--cold"]}


@pytest.fixture(scope="module", params=FLAGS_OF)
def started(request):
    """A server of each way of starting interpreters."""
    with servers_by(FLAGS_OF) as get:
        yield get(request.param)


def run(server, code, **fields):
    return server.execute(code, **{**ROOMY, **fields})


def error_of(server, code, **fields):
    """Its error; stderr is what an interpreter that tells nothing says."""
    told = run(server, code, **fields)
    silent = run(server, code, report=False, **fields)
    assert (told["stderr"], told["exit_code"], told["stdout"]) == \
        (silent["stderr"], silent["exit_code"], silent["stdout"])
    assert silent["error"] is None
    assert told["warnings"] == [], told
    return told["error"]


def value_of(server, code, **fields):
    reply = run(server, code, return_last=True, **fields)
    assert reply["status"] == "success", reply
    assert reply["warnings"] == [], reply
    return reply["result"]


# ---- error ----

def test_an_exception_comes_with_type_message_line_and_traceback(started):
    code = "def f(n):\n    return 1 / n\n\n\nprint('a')\nf(0)\n"
    assert error_of(started, code) == {
        "type": "ZeroDivisionError", "message": "division by zero", "line": 2,
        "traceback": [
            {"file": "/workspace/main.py", "line": 6, "function": "<module>", "text": "f(0)"},
            {"file": "/workspace/main.py", "line": 2, "function": "f", "text": "return 1 / n"}],
        "frames_omitted": 0, "related": [], "related_omitted": 0}


@pytest.mark.parametrize("code, expected", {
    "key": ("{}['a']", ("KeyError", "'a'", 1)),
    "own_class": ("class Oops(ValueError): pass\nraise Oops('x', 1)", ("Oops", "('x', 1)", 2)),
    "of_a_module": ("import json\njson.loads('{')",
                    ("json.decoder.JSONDecodeError",
                     "Expecting property name enclosed in double quotes: line 1 column 2 (char 1)", 2)),
    "note": ("e = ValueError('v')\ne.add_note('n1')\ne.add_note('n2')\nraise e", ("ValueError", "v\nn1\nn2", 4)),
    "no_message": ("raise RuntimeError", ("RuntimeError", "", 1)),
    "interrupt": ("raise KeyboardInterrupt", ("KeyboardInterrupt", "", 1)),
    "assertion": ("\n\nassert 1 == 2, 'not equal'", ("AssertionError", "not equal", 3)),
    "bad_str": ("class E(Exception):\n    def __str__(self): 1/0\nraise E", ("E", "<exception str() failed>", 3)),
    "unicode": ("raise ValueError('é☃\\udc80')", ("ValueError", "é☃\ufffd", 1)),
    "long": ("raise ValueError('x' * 20000)", ("ValueError", "x" * 16383 + "…", 1)),
    "hook": ("import sys\nsys.excepthook = lambda *a: print('mine')\n1/0", ("ZeroDivisionError", "division by zero", 3)),
    "no_stderr": ("import sys\nsys.stderr = None\n1/0", ("ZeroDivisionError", "division by zero", 3)),
    "memory": ("x = b'x' * (1 << 60)", ("MemoryError", "", 1)),
    "syntax": ("x = 1\nif x\n    pass", ("SyntaxError", "expected ':'", 2)),
    "indent": ("if 1:\npass", ("IndentationError", "expected an indented block after 'if' statement on line 1", 2)),
    "syntax_later": ("compile('(', 'other.py', 'exec')", ("SyntaxError", "'(' was never closed", 1)),
    "in_library": ("import statistics\n\nstatistics.mean([])",
                   ("statistics.StatisticsError", "mean requires at least one data point", 3)),
    "deleted": ("import os\nos.remove('main.py')\n1/0", ("ZeroDivisionError", "division by zero", 3)),
    "atexit_goes_on": ("import atexit\natexit.register(print, 'end')\n1/0", ("ZeroDivisionError", "division by zero", 3)),
}.values(), ids=str)
def test_each_kind_of_exception_is_told_as_stderr_tells_it(started, code, expected):
    e = error_of(started, code)
    assert (e["type"], e["message"], e["line"]) == expected
    assert e["related"] == []


@pytest.mark.parametrize("code", [
    "import sys; sys.exit()", "import sys; sys.exit(3)", "import sys; sys.exit('bye')", "raise SystemExit",
    "import os; os._exit(3)", "try: 1/0\nexcept ZeroDivisionError: pass", "import os, signal; os.kill(os.getpid(), 9)",
    "import threading\nt = threading.Thread(target=lambda: 1/0)\nt.start()\nt.join()",
    "import os\nif os.fork(): os.wait()\nelse: 1/0",
    "import sys, subprocess\nsubprocess.run([sys.executable, '-c', '1/0'])"])
def test_what_is_no_end_by_an_exception_is_no_error(started, code):
    reply = run(started, code)
    assert reply["error"] is None and reply["result"] is None and reply["figures"] == []


def test_a_syntax_error_has_its_place_as_the_last_frame(started):
    e = error_of(started, "x = (1,\n  print(")
    assert e["traceback"] == [
        {"file": "/workspace/main.py", "line": e["line"], "function": None, "text": "print("}]


def test_a_module_of_the_programs_is_in_the_traceback_and_the_line_is_the_programs(started):
    e = error_of(started, "import part\npart.f()",
                 files=[{"path": "part.py", "content": "def f():\n    1/0\n"}])
    assert e["line"] == 2
    assert e["traceback"][-1] == {"file": "/workspace/part.py", "line": 2, "function": "f", "text": "1/0"}


def test_the_line_is_that_of_the_entry_point(started):
    server, files = started, [{"path": "app/run.py", "content": "\nimport part\n"},
                              {"path": "app/part.py", "content": "def f(:\n"}]
    reply = server.post({"entry_point": "app/run.py", "files": files, **ROOMY}).json()
    e = reply["error"]
    assert (e["type"], e["line"]) == ("SyntaxError", 2)
    assert e["traceback"][-1] == {"file": "/workspace/app/part.py", "line": 1, "function": None, "text": "def f(:"}


def test_causes_and_contexts_are_related_in_their_order(started):
    e = error_of(started, """
def f(): {}['a']
try:
    try: f()
    except KeyError: [][1]
except IndexError as e:
    raise ValueError('v') from e
""")
    assert (e["type"], e["line"]) == ("ValueError", 7)
    assert [(r["relation"], r["type"], r["line"]) for r in e["related"]] == \
        [("cause", "IndexError", 5), ("context", "KeyError", 2)]
    assert [f["function"] for f in e["related"][1]["traceback"]] == ["<module>", "f"]
    hidden = error_of(started, "try: {}['a']\nexcept KeyError: raise ValueError('v') from None")
    assert hidden["related"] == []


def test_a_groups_members_are_related(started):
    e = error_of(started, "raise ExceptionGroup('g', [ValueError('a'), ExceptionGroup('h', [TypeError('b')])])")
    assert (e["type"], e["message"]) == ("ExceptionGroup", "g (2 sub-exceptions)")
    assert [(r["relation"], r["type"], r["message"]) for r in e["related"]] == \
        [("member", "ValueError", "a"), ("member", "TypeError", "b")]
    many = error_of(started, "raise ExceptionGroup('g', [ValueError(i) for i in range(20)])")
    assert len(many["related"]) == 16 and many["related_omitted"] == 4


def test_of_a_deep_traceback_the_ends_are_told(started):
    e = error_of(started, "import sys\ndef f(n): return f(n - 1) if n else 1 / 0\nf(500)")
    assert len(e["traceback"]) == 64 and e["frames_omitted"] == 502 - 64
    assert e["line"] == 2
    assert [e["traceback"][0]["function"], e["traceback"][-1]["function"]] == ["<module>", "f"]


def test_an_error_of_very_long_parts_is_still_told(started):
    e = error_of(started, "try:\n    def f(n):\n        if n: f(n - 1)  # " + "é" * 900 +
                 "\n        raise ValueError('\\x01' * 16000)\n    f(60)\nexcept ValueError as e: raise e from KeyError('x' * 9999)")
    assert e["type"] == "ValueError" and e["message"].startswith("\x01" * 100)


def test_without_report_nothing_is_told(started):
    reply = run(started, "1/0", report=False, return_last=True)
    assert reply["error"] is None and reply["result"] is None


# ---- result ----

@pytest.mark.parametrize("code, shown, mime", [
    ("6 * 7", "42", 42),
    ("'é\\n'", "'é\\n'", "é\n"),
    ("x = [1, 2.5, None, True]\nx", "[1, 2.5, None, True]", [1, 2.5, None, True]),
    ("(1, (2,))", "(1, (2,))", [1, [2]]),
    ("{'a': {'b': []}}", "{'a': {'b': []}}", {"a": {"b": []}}),
    ("'a docstring'", "'a docstring'", "a docstring"),
    ("'a docstring'\n__doc__", "'a docstring'", "a docstring"),
    ("from __future__ import annotations\nf = lambda: 1\nf()", "1", 1),
    ("2 ** 62", str(2 ** 62), 2 ** 62),
    ("0.1", "0.1", 0.1),
    ("1e300", "1e+300", 1e300),
    ("import collections\ncollections.OrderedDict(a=1)", "OrderedDict([('a', 1)])", {"a": 1}),
    ("print('out')\nTrue", "True", True),
    ("if 1:\n    x = 3\nx", "3", 3),
    ("# coding: latin-1\n'\\xe9'  # end\n\n# more", "'é'", "é"),
    ("1;", "1", 1),
])
def test_the_value_of_the_last_expression_comes_as_text_and_as_json(started, code, shown, mime):
    r = value_of(started, code)
    assert r == {"repr": shown, "repr_length": len(shown), "omitted": [],
                 "mime_bundle": {"text/plain": shown, "application/json": mime}}


@pytest.mark.parametrize("code, shown", [
    ("{1: 2}", "{1: 2}"), ("2 ** 64", str(2 ** 64)), ("float('nan')", "nan"), ("{1, 2}", "{1, 2}"), ("b'x'", "b'x'"),
    ("'\\udc80'", "'\\udc80'"), ("1j", "1j"), ("x = []\nx.append(x)\nx", "[[...]]"), ("...", "Ellipsis"),
])
def test_what_json_cannot_say_exactly_comes_as_text_only(started, code, shown):
    r = value_of(started, code)
    assert r["repr"] == shown and r["mime_bundle"] == {"text/plain": shown}


@pytest.mark.parametrize("code", [
    "None", "print(1)", "x = 1", "for x in [1]: x", "", "# nothing", "def f(): pass", "1\nx = 2", "import sys; sys.exit(0)"])
def test_where_the_last_statement_has_no_value_there_is_no_result(started, code):
    assert value_of(started, code) is None


def test_without_asking_there_is_no_result(started):
    assert run(started, "6 * 7")["result"] is None


def test_an_exception_in_the_last_expression_is_an_error_and_no_result(started):
    code = "def f():\n    raise ValueError(1)\n\nf()"
    reply, silent = run(started, code, return_last=True), run(started, code, report=False)
    assert reply["result"] is None and reply["error"]["line"] == 2
    assert [f["line"] for f in reply["error"]["traceback"]] == [4, 2]
    assert reply["stderr"] == silent["stderr"]


def test_what_a_value_says_of_itself_is_in_the_bundle(started):
    r = value_of(started, """
class Shown:
    def __repr__(self): return 'shown'
    def _repr_html_(self): return '<b>é</b>'
    def _repr_svg_(self): return None
    def _repr_png_(self): return b'\\x89PNG'
    def _repr_latex_(self): 1 / 0
    def _repr_mimebundle_(self, include=None, exclude=None):
        return {'text/x-mine': 'm', 'application/vnd.x+json': {'a': [1]}, 3: 'no', 'a\\nb': 'no', 'text/none': None}, {}
Shown()
""")
    assert r["mime_bundle"] == {"text/plain": "shown", "text/html": "<b>é</b>", "image/png": "iVBORw==",
                                "text/x-mine": "m", "application/vnd.x+json": {"a": [1]}}
    assert r["omitted"] == ["_repr_latex_: ZeroDivisionError: division by zero"] + ["_repr_mimebundle_: a key that is no type"] * 2


def test_a_class_is_not_asked_what_its_instances_say(started):
    r = value_of(started, "class A:\n    def _repr_html_(self): return 'x'\nA")
    assert r["mime_bundle"] == {"text/plain": "<class '__main__.A'>"}


def test_a_repr_that_raises_is_said_and_the_run_goes_on(started):
    reply = run(started, "class A:\n    def __repr__(self): raise SystemExit(3)\nimport atexit\natexit.register(print, 'end')\nA()",
                return_last=True)
    assert (reply["status"], reply["stdout"]) == ("success", "end\n")
    assert reply["result"] == {"repr": None, "repr_length": 0, "omitted": ["repr: SystemExit: 3"], "mime_bundle": {}}


def test_a_long_repr_is_cut_and_its_length_told(started):
    r = value_of(started, "'x' * 1000000")
    assert r["repr"] == "'" + "x" * 65534 + "…" and r["repr_length"] == 1000002
    assert r["mime_bundle"] == {"text/plain": r["repr"]}
    large = value_of(started, "class A:\n    def _repr_html_(self): return 'x' * (2 << 20)\nA()")
    assert list(large["mime_bundle"]) == ["text/plain"]
    assert large["omitted"] == ["text/html: 2097152 bytes are more than there is room for"]


def test_a_data_frame_comes_as_html(started):
    r = value_of(started, "import pandas\npandas.DataFrame({'a': [1, 2]})", memory_limit_mb=512)
    assert r["repr"] == "   a\n0  1\n1  2"
    assert "<table" in r["mime_bundle"]["text/html"] and set(r["mime_bundle"]) == {"text/plain", "text/html"}


def test_a_repr_that_hangs_is_ended_by_the_deadline(started):
    reply = run(started, "class A:\n    def __repr__(self):\n        while True: pass\nprint('before')\nA()",
                return_last=True, timeout_seconds=1)
    assert (reply["status"], reply["stdout"], reply["result"]) == ("timeout", "before\n", None)


def test_an_error_survives_what_the_program_does_after_it(started):
    """It is told before hooks and exit functions run: one that hangs does not lose it."""
    reply = run(started, "import atexit, time\natexit.register(time.sleep, 60)\n1/0", timeout_seconds=1)
    assert reply["status"] == "timeout" and reply["error"]["type"] == "ZeroDivisionError"


# ---- What the program sees of it ----

def test_a_program_finds_no_descriptor_and_no_variable_of_ours(started):
    code = """
import json, os, sys
names = sorted(os.listdir('/proc/self/fd'), key=int)
print(json.dumps([names[:3], len(names), sorted(os.environ), open('/proc/self/environ').read().count('GLOVEBOX'),
                  open('/proc/self/environ').read().count('LD_PRELOAD'), sys.argv, sys.orig_argv, sys._getframe().f_back is None]))
"""
    told, silent = run(started, code), run(started, code, report=False)
    assert told["stdout"] == silent["stdout"]
    assert json.loads(told["stdout"])[1] == 4  # and that of the listing


def test_closing_everything_loses_nothing(started):
    assert error_of(started, "import os\nos.closerange(3, 256)\n1/0")["line"] == 3


# ---- The request ----

@pytest.mark.parametrize("field, value, kind", [
    ("return_last", "yes", "bool_parsing"), ("return_last", [], "bool_type"), ("report", 1, "bool_parsing"),
    ("figures", "jpeg", "literal_error"), ("figures", True, "literal_error"), ("figures", [], "literal_error")])
def test_a_wrong_wish_is_refused_by_its_name(started, field, value, kind):
    r = started.post({"code": "1", field: value})
    assert r.status == 422
    [item] = r.json()["detail"]
    assert (item["type"], item["loc"]) == (kind, ["body", field])
