"""What the HTTP codec accepts, a second HTTP server must frame the same way.

The second opinion is Node's `http`, whose parser (llhttp) shares no line with ours. Two
readers that disagree about where a request ends are what request smuggling lives on. So:
the bytes that the codec took as so many whole requests must be exactly these requests, with
the same bodies, for Node; and where the codec waits for more bytes, Node must not have seen a
further request already. What the codec refuses, Node may take: the codec is the stricter one.
"""
import json
import os
import random
import struct
import subprocess
from pathlib import Path

from harness.server import PROGRAM

DUMP = Path(PROGRAM).parent / "tests/unit/http_frame_dump"
ORACLE = Path(__file__).parent / "http_oracle.mjs"
MUTANTS = int(os.environ.get("GLOVEBOX_ORACLE_MUTANTS", "20000"))

PIECES = [
    b"\r\n", b"\n", b"\r", b" ", b"\t", b":", b",", b";", b"0", b"\0", b"\v", b"\xe9", b"\r\n\r\n",
    b"Content-Length: 12\r\n", b"Content-Length: 0\r\n", b"Content-Length:3\r\n",
    b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: identity\r\n", b"Host: x\r\n",
    b"Connection: close\r\n", b"Connection: keep-alive\r\n", b"Connection: upgrade\r\n",
    b"Upgrade: websocket\r\n", b"Expect: 100-continue\r\n", b"Proxy-Connection: close\r\n",
    b"Trailer: X\r\n", b"X-A: b\r\n", b"HTTP/1.0", b"HTTP/1.1", b"HEAD", b"OPTIONS",
    b"0\r\n\r\n", b"1\r\na\r\n", b"00000000", b"c", b"GET /n HTTP/1.1\r\nHost: x\r\n\r\n",
]


def records(streams):
    return b"".join(struct.pack("<I", len(s)) + s for s in streams)


def run(argv, data=b""):
    return subprocess.run(argv, input=data, stdout=subprocess.PIPE, check=True, timeout=240).stdout


def known_cases():
    data, cases = run([DUMP, "--cases"]), []
    while data:
        (length,) = struct.unpack_from("<I", data)
        cases.append(data[4:4 + length])
        data = data[4 + length:]
    return cases


def ours(streams):
    """For each stream: the requests that the codec took, how it ended, the bytes taken."""
    found, lines = [], []
    for line in run([DUMP], records(streams)).decode("latin-1").split("\n")[:-1]:
        if line.startswith("="):
            found.append((lines[:-1], lines[-1], int(line[1:])))
            lines = []
        else:
            lines.append(line)
    return found


def nodes(streams):
    return [json.loads(line) for line in run(["node", str(ORACLE)], records(streams)).splitlines()]


def mutate(rng, cases):
    """A stream one to three small changes away from a known one."""
    s = rng.choice(cases)
    for _ in range(rng.randint(1, 3)):
        at, kind = rng.randint(0, len(s)), rng.randint(0, 4)
        if kind == 0:
            s = s[:at] + rng.choice(PIECES) + s[at:]
        elif kind == 1:
            s = s[:at] + s[at + rng.randint(1, 4):]
        elif kind == 2:
            s = s[:at] + bytes([rng.randrange(256)]) + s[at + 1:]
        else:
            # Between two lines, where fields live; or one line less.
            lines = s.split(b"\r\n")
            i = rng.randrange(len(lines))
            if kind == 3:
                lines.insert(i, rng.choice(PIECES).removesuffix(b"\r\n"))
            else:
                del lines[i]
            s = b"\r\n".join(lines)
    return s


def is_mere_strictness(stream, theirs, requests, error):
    """Did Node stop, for a reason known and harmless, at a request that the codec took?"""
    if theirs != requests[:len(theirs)]:
        return False
    if error == "HPE_INVALID_METHOD":
        return True  # Node has a list of methods; here they are judged after the framing
    if error == "HPE_INVALID_CONTENT_LENGTH":
        return b"\t" in stream  # a TAB behind a length, which RFC 9110 allows
    # Node ends the connection for `Proxy-Connection: close` too, which no RFC knows.
    return error == "HPE_CLOSED_CONNECTION" and b"proxy-connection" in stream.lower()


def compare(streams):
    """Every disagreement is told; none may be."""
    mine = ours(streams)
    whole = nodes([s[:taken] for s, (_, _, taken) in zip(streams, mine, strict=True)])
    waiting = [(s, requests) for s, (requests, end, _) in zip(streams, mine) if end == "more"]
    found = []
    for stream, (requests, _, taken), node in zip(streams, mine, whole, strict=True):
        theirs, error = node["requests"], node["error"]
        if (theirs != requests or error) and \
                not is_mere_strictness(stream, theirs, requests, error):
            found.append(f"{stream[:taken]!r}\n  codec {requests}\n  node  {node}")
    for (stream, requests), node in zip(waiting, nodes([s for s, _ in waiting]), strict=True):
        if len(node["requests"]) > len(requests):
            found.append(f"{stream!r}\n  codec {requests} and waits\n  node  {node}")
    return found


def test_node_frames_every_known_case_as_the_codec_does():
    cases = [c for c in known_cases() if len(c) < 65536]
    assert len(cases) > 100
    found = compare(cases)
    assert not found, "\n".join(found[:5])


def test_node_frames_mutated_requests_as_the_codec_does():
    rng = random.Random(9112)
    seeds = [c for c in known_cases() if len(c) < 1024]
    streams = [mutate(rng, seeds) for _ in range(MUTANTS)]
    # The comparison says something only where the codec took a request.
    assert sum(bool(requests) for requests, _, _ in ours(streams)) > MUTANTS // 10
    found = compare(streams)
    assert not found, f"{len(found)} disagreements, the first:\n" + "\n".join(found[:5])


def test_a_disagreement_would_be_seen(monkeypatch):
    """The comparison itself: a codec that reads otherwise than Node does not pass it."""
    request = b"POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc"
    (right,) = ours([request])
    assert right == (["POST /a 3 1a47e90b"], "end", len(request))
    assert not compare([request])
    wrong = [
        (["POST /b 3 1a47e90b"], "end", len(request)),  # another target
        (["POST /a 2 4d2505ca"], "end", len(request)),  # another length
        (right[0] * 2, "end", len(request)),  # a request too many
        ([], "end", len(request)),  # a request too few
        ([], "more", 0),  # waiting for what is there
    ]
    for reading in wrong:
        monkeypatch.setitem(globals(), "ours", lambda _, reading=reading: [reading])
        assert compare([request]), reading
