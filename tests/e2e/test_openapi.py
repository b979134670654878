"""The document says what the server does: every exchange is held against it."""
import pytest

from harness.openapi import Document


@pytest.fixture(scope="module")
def document(server):
    answer = server.request("GET", "/openapi.json")
    assert answer.status == 200
    return Document(answer.json())


def test_the_document_is_openapi_3_1_and_complete(document):
    doc = document.doc
    assert doc["openapi"].startswith("3.1.")
    assert {"/execute", "/health", "/limits", "/openapi.json"} <= set(doc["paths"])
    assert doc["info"]["title"] and doc["info"]["version"] and doc["info"]["license"]
    assert doc["paths"]["/execute"]["post"]["operationId"] == "execute_code"
    assert {"200", "413", "415", "422", "503"} <= \
        set(doc["paths"]["/execute"]["post"]["responses"])


def test_every_reference_resolves(document):
    def walk(node):
        if isinstance(node, dict):
            if "$ref" in node:
                assert document.resolve(node) is not None
            for v in node.values():
                walk(v)
        elif isinstance(node, list):
            for v in node:
                walk(v)

    walk(document.doc)


def test_fields_defaults_and_ranges_are_those_of_limits(server, document):
    content = document.resolve(document.doc["paths"]["/execute"]["post"]["requestBody"])["content"]
    schema = document.resolve(content["application/json"]["schema"])
    limits = server.request("GET", "/limits").json()
    assert [one["required"] for one in schema["oneOf"]] == [["code"], ["entry_point", "files"]]
    for name in ("timeout_seconds", "memory_limit_mb", "cpu_limit", "pids_limit"):
        assert schema["properties"][name]["default"] == limits["defaults"][name], name
        assert schema["properties"][name]["maximum"] == limits["maxima"][name], name


def test_limits_are_the_documented_defaults_and_maxima(server):
    limits = server.request("GET", "/limits").json()
    assert {k: limits["defaults"][k] for k in
            ("timeout_seconds", "memory_limit_mb", "cpu_limit", "pids_limit")} == \
        {"timeout_seconds": 3, "memory_limit_mb": 64, "cpu_limit": 0.5, "pids_limit": 32}
    assert limits["maxima"]["timeout_seconds"] == 300 and limits["maxima"]["pids_limit"] == 512


@pytest.mark.parametrize("body", [
    {"code": "print(1)"},
    {"code": "", "timeout_seconds": 5.5, "memory_limit_mb": 80, "cpu_limit": 1, "pids_limit": 9,
     "allow_network": False, "cpu_time_seconds": 2},
    {"code": "1/0"},
    {"code": "import os; os.abort()"},
    {"code": "import os; os.write(1, b'\\xff'); os.write(2, b'x' * 3_000_000)"},
    {"code": "import time; time.sleep(9)", "timeout_seconds": 0.2},
    {"code": "b = b'x' * (200 << 20)", "memory_limit_mb": 64},
    {"code": "pass", "unknown": [1]},
    {"code": "pass", "timeout_seconds": None, "figures": None, "stdin_encoding": None, "entry_point": None, "files": None},
    {"code": None, "entry_point": "a.py", "files": [{"path": "a.py", "content": "", "encoding": None, "mode": None}]},
])
def test_replies_are_valid_by_the_document(server, document, body):
    answer = server.post(body)
    assert answer.status == 200
    assert document.response_complaints("POST", "/execute", answer) == []
    assert document.request_complaints("POST", "/execute", body) == []


@pytest.mark.parametrize("status, body, headers", [
    (422, {}, {}), (422, {"code": 5, "cpu_limit": "x"}, {}), (422, {"code": "x", "timeout_seconds": 0}, {}),
    (413, {"code": "#" * 3_000_000}, {}), (415, {"code": ""}, {"Content-Type": "text/plain"}),
    (403, {"code": ""}, {"Origin": "http://evil.example"}),
])
def test_refusals_are_valid_by_the_document(server, document, status, body, headers):
    answer = server.post(body, headers)
    assert answer.status == status
    assert document.response_complaints("POST", "/execute", answer) == []


@pytest.mark.parametrize("body", [{}, {"code": 5}, {"code": None}, {"entry_point": "a", "files": None},
                                  {"code": "", "entry_point": "a", "files": []}, {"code": "x", "timeout_seconds": 0},
                                  {"code": "x", "cpu_limit": "1"}, {"code": "x", "pids_limit": 1.5},
                                  {"code": "x", "memory_limit_mb": 10 ** 9}])
def test_what_the_server_refuses_is_invalid_by_the_document_too(document, body):
    assert document.request_complaints("POST", "/execute", body)


@pytest.mark.parametrize("path", ["/health", "/limits", "/openapi.json"])
def test_the_documents_of_the_server_are_valid_by_the_document(server, document, path):
    assert document.response_complaints("GET", path, server.request("GET", path)) == []
