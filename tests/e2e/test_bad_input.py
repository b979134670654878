"""What is wrong with a request is said by field, and nothing is run."""
import json

import pytest

from harness.poll import wait_for
from harness.reply import Reply

RUN = "print('was run')"


def detail_of(answer):
    """The 422's list of complaints, each in FastAPI's shape."""
    assert answer.status == 422, answer
    detail = answer.json()["detail"]
    assert isinstance(detail, list) and detail
    for item in detail:
        assert {"type", "loc", "msg", "input"} <= set(item), item
        assert item["loc"][0] == "body" and item["msg"]
    return detail


def complaint(answer, field):
    found = [d for d in detail_of(answer) if d["loc"] == ["body", field]]
    assert len(found) == 1, answer
    return found[0]


def raw(server, body, **headers):
    return server.post(body if isinstance(body, bytes) else body.encode(), headers)


BAD_VALUES = [
    *[("code", v) for v in (5, 1.5, True, None, [], {}, ["print(1)"])],
    *[("timeout_seconds", v) for v in (0, -1, -0.0, 1e-9, 1e9, 1e18, 9223372036854775808, 10 ** 400,
                                       301, "1", "3s", True, False, [], {})],
    *[("memory_limit_mb", v) for v in (0, -1, -64, 0.0001, 1e9, 1e300, 2 ** 44, 2 ** 64, "64", True, [64], {})],
    *[("cpu_limit", v) for v in (0, -0.5, 1e-6, 1e6, 4096, 2 ** 63, "0.5", True, [], {})],
    *[("pids_limit", v) for v in (0, -1, 1.5, 10 ** 6, 2 ** 32, 2 ** 64, "32", True, [], {})],
    *[("cpu_time_seconds", v) for v in (0, -1, 1e12, "1", True, [], {})],
    *[("output_bytes", v) for v in (0, -1, 1.5, 2 ** 20 + 1, 2 ** 64, "1000", True, [], {})],
    *[("allow_network", v) for v in ("false", "no", 0, 1, 0.0, [], {})],
]


@pytest.mark.parametrize("field, value", BAD_VALUES, ids=lambda v: str(v)[:24])
def test_a_bad_value_is_a_422_that_names_the_field(server, field, value):
    item = complaint(server.post({"code": RUN, field: value}), field)
    if isinstance(value, (int, str, bool)) and len(str(value)) < 19:
        assert item["input"] == value and type(item["input"]) is type(value)


@pytest.mark.parametrize("field, value", [("timeout_seconds", 100000), ("memory_limit_mb", 10 ** 8),
                                          ("cpu_limit", 100000), ("pids_limit", 100000)])
def test_a_value_over_the_maximum_says_the_maximum_of_limits(server, field, value):
    item = complaint(server.post({"code": RUN, field: value}), field)
    maximum = server.request("GET", "/limits").json()["maxima"][field]
    assert f"{maximum:g}" in item["msg"], (item, maximum)
    assert item["type"] == "less_than_equal" and item["ctx"]["le"] == maximum


def test_null_stands_for_a_field_that_is_left_out(server):
    """As dataclasses, pydantic's model_dump() and clients made from a schema send it."""
    fields = ["language", "image", "timeout_seconds", "memory_limit_mb", "cpu_limit", "allow_network", "network", "pids_limit",
              "cpu_time_seconds", "stdin", "stdin_encoding", "args", "env", "files", "entry_point", "report",
              "return_last", "figures", "output_bytes", "interleaved", "artifacts"]
    document = server.request("GET", "/openapi.json").json()
    assert {"code", *fields} == set(document["components"]["schemas"]["ExecutionRequest"]["properties"])
    plain = server.execute("print('was run')")
    r = Reply(server.post({"code": "print('was run')", **dict.fromkeys(fields)}).json()).check()
    assert (r.stdout, r["limits"], r["language"], r.warnings) == ("was run\n", plain["limits"], "python", []), r
    # What a reply says of its limits can be sent back.
    again = server.post({"code": "pass", **r["limits"]}).json()
    assert (again["limits"], again["warnings"]) == (r["limits"], [])
    r = server.execute(None, entry_point="a.py", files=[{"path": "a.py", "content": "print('was run')", "encoding": None,
                                                         "mode": None}])
    assert r.stdout == "was run\n"


def test_the_maximum_itself_is_accepted(server):
    maxima = server.request("GET", "/limits").json()["maxima"]
    r = server.execute("print('was run')", cpu_limit=maxima["cpu_limit"],
                       pids_limit=maxima["pids_limit"], timeout_seconds=maxima["timeout_seconds"],
                       memory_limit_mb=maxima["memory_limit_mb"])
    assert r.stdout == "was run\n"


def test_all_wrong_fields_are_named_at_once(server):
    answer = server.post({"timeout_seconds": -1, "memory_limit_mb": "x", "cpu_limit": []})
    assert [d["loc"][-1] for d in detail_of(answer)] == \
        ["code", "timeout_seconds", "memory_limit_mb", "cpu_limit"]


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "nan", "1e999", "-1e999", "0x10",
                                    "1.", ".5", "+1", "01", "1_0"])
def test_numbers_that_json_does_not_have_are_a_422(server, number):
    detail_of(raw(server, '{"code": "%s", "timeout_seconds": %s}' % (RUN, number)))


def test_where_code_is_missing_the_fields_that_nobody_knows_are_named(server):
    item = complaint(server.post({"codes": RUN, "timeout_seconds": 3}), "code")
    assert (item["type"], item["ctx"]) == ("missing", {"unknown": ["codes"]})


def test_a_missing_code_is_missing(server):
    item = complaint(server.post({"timeout_seconds": 3}), "code")
    assert (item["type"], item["msg"], item["input"]) == \
        ("missing", "Field required", {"timeout_seconds": 3})


@pytest.mark.parametrize("body", ["", "null"])
def test_no_body_is_a_missing_body(server, body):
    (item,) = detail_of(raw(server, body))
    assert (item["type"], item["loc"], item["input"]) == ("missing", ["body"], None)


@pytest.mark.parametrize("body", ["[]", '["print(1)"]', '"code"', "5", "true"])
def test_a_body_that_is_no_object_is_a_422(server, body):
    (item,) = detail_of(raw(server, body))
    assert (item["type"], item["loc"]) == ("model_attributes_type", ["body"])


@pytest.mark.parametrize("body", [
    "{", '{"code": "print(1)", ', '{"code": "x"} x', '{"code": "x"}{}', "{'code': 'x'}",
    '{"code": "x",}', '{code: "x"}', '{"code": "raw\nnewline"}', '{"code": "\\x"}', '{"code": tru}',
    '{"code": "x", "code": "y"}', '{"code": "x", "timeout_seconds": 1, "timeout_seconds": 2}',
    '{"code": "x", "a": {"b": 1, "b": 2}}',
])
def test_malformed_json_is_a_422_with_the_place(server, body):
    (item,) = detail_of(raw(server, body))
    assert item["type"] == "json_invalid" and item["loc"][0] == "body"


@pytest.mark.parametrize("body", [
    b'{"code": "\xff"}', b'{"code": "\xed\xa0\x80"}', b'{"code": "\xc0\xaf"}', b'{"code": "\xe2\x82"}',
    b'{"code": "\\ud800"}', b'{"code": "\\udc00x"}', b'{"co\xffde": "x"}',
    '{"code": "print(1)"}'.encode("utf-16"),
])
def test_code_that_is_not_unicode_text_is_a_422(server, body):
    detail_of(raw(server, body))


def test_a_byte_order_mark_before_the_body_is_skipped(server):
    assert raw(server, b"\xef\xbb\xbf" + json.dumps({"code": RUN}).encode()).status == 200


def test_code_over_the_limit_is_a_413_with_the_limit(server):
    answer = server.post({"code": "#" * (2 * 1024 * 1024 + 1)})
    assert answer.status == 413 and "2097152" in answer.json()["detail"]


def test_code_of_exactly_the_limit_runs(server):
    code = "print('was run')\n#"
    r = server.run(code + "x" * (2 * 1024 * 1024 - len(code)), memory_limit_mb=256)
    assert r.stdout == "was run\n"


def test_a_body_over_the_limit_is_a_413_with_the_limit(server):
    answer = server.post({"code": RUN, "pad": "x" * (4 * 1024 * 1024)})
    assert answer.status == 413 and "4194304" in answer.json()["detail"]


@pytest.mark.parametrize("network, loc", [
    ([], []), (True, []), ({"alow": []}, ["alow"]), ({"allow": "a.org"}, ["allow"]), ({"deny": [1]}, ["deny", 0]),
    ({"allow": ["a.org", "10.0.0.1/8"]}, ["allow", 1]), ({"max_bytes": 0}, ["max_bytes"])])
def test_a_network_that_is_wrong_is_refused_and_not_ignored(server, network, loc):
    answer = server.post({"code": RUN, "network": network})
    assert answer.status == 422 and detail_of(answer)[0]["loc"] == ["body", "network", *loc], answer
    assert complaint(server.post({"code": RUN, "network": {}, "allow_network": False}), "network")


@pytest.mark.parametrize("path", ["/nothing", "/execute/x", "/Execute", "/../etc/passwd",
                                  "/%2e%2e/etc/passwd", "/execute%00"])
def test_an_unknown_path_is_a_404(server, path):
    answer = server.request("GET", path)
    assert answer.status == 404 and answer.json()["detail"]


@pytest.mark.parametrize("method, path, allowed", [
    ("GET", "/execute", "POST"), ("PUT", "/execute", "POST"), ("DELETE", "/execute", "POST"),
    ("OPTIONS", "/execute", "POST"), ("POST", "/health", "GET"), ("POST", "/limits", "GET"),
    ("DELETE", "/openapi.json", "GET"),
])
def test_a_wrong_method_is_a_405_with_allow(server, method, path, allowed):
    answer = server.request(method, path)
    assert answer.status == 405, answer
    assert allowed in [m.strip() for m in answer.headers["Allow"].split(",")]
    assert answer.json() == {"detail": "Method Not Allowed"}


@pytest.mark.parametrize("media", ["text/plain", "application/x-www-form-urlencoded",
                                   "multipart/form-data; boundary=x", "text/plain; charset=utf-8"])
def test_a_type_that_forms_can_send_is_a_415(server, media):
    answer = server.post({"code": RUN}, {"Content-Type": media})
    assert answer.status == 415 and isinstance(answer.json()["detail"], str)


@pytest.mark.parametrize("media", ["application/json", "application/json; charset=utf-8",
                                   "Application/JSON", "application/vnd.x+json"])
def test_json_types_are_taken(server, media):
    assert server.post({"code": RUN}, {"Content-Type": media}).status == 200


def test_no_type_at_all_is_taken_as_json(server):
    answer = server.request("POST", "/execute", json.dumps({"code": RUN}).encode())
    assert answer.status == 200, answer


@pytest.mark.parametrize("headers", [
    {"Origin": "http://evil.example"}, {"Origin": "null"}, {"Host": "attacker.example"},
    {"Host": "attacker.example:8000"}, {"Host": "127.0.0.1.evil.example"},
])
def test_a_foreign_origin_or_host_is_a_403(server, headers):
    answer = server.post({"code": RUN}, headers)
    assert answer.status == 403 and isinstance(answer.json()["detail"], str)
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_the_own_origin_is_welcome(server):
    own = f"http://127.0.0.1:{server.port}"
    assert server.post({"code": RUN}, {"Origin": own}).status == 200
    assert server.post({"code": RUN}, {"Host": f"localhost:{server.port}"}).status == 200


def test_a_page_of_another_local_server_is_a_403(server):
    for origin in ("http://127.0.0.1", f"http://127.0.0.1:{server.port ^ 1}",
                   f"http://localhost:{server.port}", f"https://127.0.0.1:{server.port}"):
        assert server.post({"code": RUN}, {"Origin": origin}).status == 403, origin


def test_a_page_that_does_not_say_that_it_sends_json_is_a_415(server):
    body = json.dumps({"code": RUN}).encode()
    own = {"Origin": f"http://127.0.0.1:{server.port}"}
    assert server.request("POST", "/execute", body, own).status == 415
    assert server.request("POST", "/execute", body).status == 200


def test_the_log_shows_no_run_for_any_refusal(server):
    """Last in this file: one line a request, and an id only where something ran."""
    lines = wait_for("the log", lambda: [l for l in server.log().splitlines() if " ev=request " in l])
    refused = [l for l in lines if " http=200 " not in l and 'path="/execute"' in l]
    ran = [l for l in lines if " http=200 " in l and 'path="/execute"' in l]
    assert refused and all(" id=- " in l and " status=- " in l for l in refused)
    assert ran and all(" id=- " not in l and " status=success " in l for l in ran)
    wait_for("every program to be gone", lambda: not server.programs())
