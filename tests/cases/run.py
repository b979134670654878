#!/usr/bin/env python3
"""Post the request cases to a running server and compare.

    run.py BASE_URL [-j N] [--only WORD ...]
                    [--header 'Name: value' ...] [--ids-only] [--list]

Each line of cases.jsonl (next to this file, or --cases FILE) is posted to
BASE_URL/execute and the answer is compared with its "expect" object.
Exit status 1 when a case fails. Python 3.11, standard
library only.

Case keys: id, title, area, source, and one of
  request        JSON object posted as the body
  raw_body       text posted as the body, as it stands
  raw_body_b64   bytes posted as the body, base64
plus, optionally,
  expand         {token: [text, count]}: each token in the code (or raw body)
                 is replaced by text * count before posting
  repeat         post that many times, one after another; all must pass
The token @@PORT@@ is always replaced by the port number of BASE_URL.

Expect keys: http_status (number or list, default 200; for another expected
status the body is not looked at), status, exit_code (one value or a list),
stdout_equals, stderr_equals, stdout_contains, stderr_contains,
stdout_not_contains, stderr_not_contains (text or list of texts), max_wall_ms,
execution_time_ms_between, memory_used_mb_between ([low, high]).

Every 200 answer must also be UTF-8 JSON with the six fields status, stdout,
stderr, exit_code, execution_time_ms, memory_used_mb of the right types;
"success" must go with exit code 0 and "error" must not; texts hold no lone
surrogates.
"""
import argparse
import base64
import concurrent.futures
import http.client
import json
import os
import ssl
import sys
import time
import urllib.parse

STATUSES = ("success", "timeout", "memory_exceeded", "error")


def as_list(v):
    return v if isinstance(v, list) else [v]


def short(v, n=220):
    r = repr(v)
    return r if len(r) <= n else r[: n // 2] + " ... " + r[-n // 3:] + " (%d chars)" % len(r)


def build_body(case, port):
    exp = {k: v[0] * v[1] for k, v in case.get("expand", {}).items()}
    exp["@@PORT@@"] = str(port)

    def sub(text):
        for k, v in exp.items():
            text = text.replace(k, v)
        return text

    if "raw_body_b64" in case:
        return base64.b64decode(case["raw_body_b64"])
    if "raw_body" in case:
        return sub(case["raw_body"]).encode("utf-8")
    req = dict(case["request"])
    if isinstance(req.get("code"), str):
        req["code"] = sub(req["code"])
    return json.dumps(req, ensure_ascii=False, allow_nan=False).encode("utf-8")


def post(url, body, headers, limit_s):
    """Return (http_status, body_bytes, wall_ms)."""
    u = urllib.parse.urlsplit(url)
    if u.scheme == "https":
        conn = http.client.HTTPSConnection(u.hostname, u.port or 443, timeout=limit_s,
                                           context=ssl.create_default_context())
    else:
        conn = http.client.HTTPConnection(u.hostname, u.port or 80, timeout=limit_s)
    t = time.monotonic()
    try:
        h = {"Content-Type": "application/json", "Accept": "application/json", "Connection": "close"}
        h.update(headers)
        try:
            conn.request("POST", u.path.rstrip("/") + "/execute", body=body, headers=h)
        except (BrokenPipeError, ConnectionResetError):
            # A server may answer (413) and close before it has read a large body.
            pass
        r = conn.getresponse()
        data = r.read()
        return r.status, data, (time.monotonic() - t) * 1000.0
    finally:
        conn.close()


def is_num(v):
    return isinstance(v, (int, float)) and not isinstance(v, bool)


def check(case, http_status, data, wall_ms):
    """Return a list of complaints."""
    e = case["expect"]
    bad = []
    if "max_wall_ms" in e and wall_ms > e["max_wall_ms"]:
        bad.append("took %.0f ms, allowed %d" % (wall_ms, e["max_wall_ms"]))
    allowed = as_list(e.get("http_status", 200))
    if http_status not in allowed:
        bad.append("http status %d, wanted %s; body %s" % (http_status, allowed, short(data[:300])))
        return bad
    if http_status != 200:
        return bad
    try:
        r = json.loads(data.decode("utf-8"))
    except ValueError as ex:
        bad.append("answer is not UTF-8 JSON: %s; %s" % (ex, short(data[:300])))
        return bad
    if not isinstance(r, dict):
        return bad + ["answer is not a JSON object"]
    for k in ("status", "stdout", "stderr"):
        if not isinstance(r.get(k), str):
            bad.append("field %s is %s, wanted a string" % (k, short(r.get(k, "missing"), 60)))
    if "exit_code" not in r or not (r["exit_code"] is None or
                                    (isinstance(r["exit_code"], int) and not isinstance(r["exit_code"], bool))):
        bad.append("field exit_code is %s" % short(r.get("exit_code", "missing"), 60))
    for k in ("execution_time_ms", "memory_used_mb"):
        if not is_num(r.get(k)) or r[k] < 0:
            bad.append("field %s is %s, wanted a number >= 0" % (k, short(r.get(k, "missing"), 60)))
    if bad and any(b.startswith("field") for b in bad):
        return bad
    if r["status"] not in STATUSES:
        bad.append("unknown status %r" % r["status"])
    if r["status"] == "success" and r["exit_code"] != 0:
        bad.append("status success with exit_code %r" % r["exit_code"])
    if r["status"] == "error" and r["exit_code"] == 0:
        bad.append("status error with exit_code 0")
    for k in ("stdout", "stderr"):
        if any(0xD800 <= ord(c) <= 0xDFFF for c in r[k]):
            bad.append("%s holds a lone surrogate" % k)
    for k in ("status", "exit_code"):
        if k in e and r[k] not in as_list(e[k]):
            bad.append("%s %r, wanted %s" % (k, r[k], as_list(e[k]) if isinstance(e[k], list) else repr(e[k])))
    for k in ("stdout", "stderr"):
        if k + "_equals" in e and r[k] != e[k + "_equals"]:
            bad.append("%s is %s, wanted %s" % (k, short(r[k]), short(e[k + "_equals"])))
        for t in as_list(e.get(k + "_contains", [])):
            if t not in r[k]:
                bad.append("%s lacks %s; it is %s" % (k, short(t, 100), short(r[k])))
        for t in as_list(e.get(k + "_not_contains", [])):
            if t in r[k]:
                bad.append("%s must not contain %s; it is %s" % (k, short(t, 100), short(r[k])))
    for k in ("execution_time_ms", "memory_used_mb"):
        if k + "_between" in e:
            lo, hi = e[k + "_between"]
            if not lo <= r[k] <= hi:
                bad.append("%s %s, wanted %s..%s" % (k, r[k], lo, hi))
    if bad and "stderr" in r and r["stderr"] and not any("stderr" in b for b in bad):
        bad.append("(stderr: %s)" % short(r["stderr"]))
    return bad


def run_case(case, base, headers, slack_s):
    u = urllib.parse.urlsplit(base)
    port = u.port or (443 if u.scheme == "https" else 80)
    try:
        body = build_body(case, port)
    except Exception as ex:  # a broken case, not a broken service
        return ["case cannot be built: %r" % ex]
    limit = 120.0
    req = case.get("request")
    if isinstance(req, dict) and is_num(req.get("timeout_seconds")) and 0 < req["timeout_seconds"] < 300:
        limit = req["timeout_seconds"] + slack_s
    if "max_wall_ms" in case["expect"]:
        limit = max(limit, case["expect"]["max_wall_ms"] / 1000.0 + 5)
    n = case.get("repeat", 1)
    for i in range(n):
        try:
            st, data, wall = post(base, body, headers, limit)
        except Exception as ex:
            bad = ["no answer: %s: %s" % (type(ex).__name__, ex)]
        else:
            bad = check(case, st, data, wall)
        if bad:
            return (["in round %d of %d:" % (i + 1, n)] if n > 1 else []) + bad
    return []


def load_cases(path):
    with open(path, encoding="utf-8") as f:
        return [json.loads(line) for line in f if line.strip()]


def main():
    ap = argparse.ArgumentParser(description="Run the Glovebox cases against a running service.")
    ap.add_argument("base_url", help="for example http://127.0.0.1:8080")
    ap.add_argument("-j", type=int, default=1, metavar="N", help="cases at a time (default 1)")
    ap.add_argument("--only", nargs="+", default=[], metavar="WORD", help="only cases whose id or area equals or starts with WORD")
    ap.add_argument("--header", action="append", default=[], metavar="'Name: value'", help="extra request header")
    ap.add_argument("--cases", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "cases.jsonl"))
    ap.add_argument("--slack", type=float, default=40.0, help="seconds to wait beyond a case's own time limit")
    ap.add_argument("--ids-only", action="store_true", help="name failing ids without details")
    ap.add_argument("--list", action="store_true", help="list the chosen cases and stop")
    a = ap.parse_args()
    base = a.base_url if "://" in a.base_url else "http://" + a.base_url
    headers = {}
    for h in a.header:
        k, _, v = h.partition(":")
        headers[k.strip()] = v.strip()
    cases = load_cases(a.cases)
    if a.only:
        cases = [c for c in cases if any(c["id"].startswith(w) or c.get("area", "") == w for w in a.only)]
    if a.list:
        for c in cases:
            print(c["id"], c["title"])
        return 0
    passed = failed = 0
    with concurrent.futures.ThreadPoolExecutor(max_workers=max(1, a.j)) as ex:
        futs = [(c, ex.submit(run_case, c, base, headers, a.slack)) for c in cases]
        for c, fu in futs:
            bad = fu.result()
            if not bad:
                passed += 1
                continue
            failed += 1
            if a.ids_only:
                print("FAIL", c["id"])
            else:
                print("FAIL %s %s" % (c["id"], c["title"]))
                for b in bad:
                    print("     " + b)
            sys.stdout.flush()
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
