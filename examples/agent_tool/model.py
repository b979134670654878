"""Stands in for a language model: given the conversation so far, the next turn.

It makes two mistakes that real models make, and mends each only after the tool has
shown it: a misspelt name (it reads the traceback) and a slow algorithm (it sees the
timeout). Nothing here knows the results beforehand.
"""
import re

QUESTION = ("What is the median word length of \"the quick brown fox jumps over it\", "
            "and how many primes are there below 2,000,000?")

MEDIAN = """\
import statistics
words = "the quick brown fox jumps over it".split()
print(statistics.medien([len(w) for w in words]) * 1.0)
"""

SLOW_PRIMES = """\
def is_prime(n):
    return n > 1 and all(n % d for d in range(2, n))

print(sum(is_prime(n) for n in range(2_000_000)))
"""

FAST_PRIMES = """\
N = 2_000_000
sieve = bytearray([1]) * N
sieve[0:2] = b"\\0\\0"
for i in range(2, int(N ** 0.5) + 1):
    if sieve[i]:
        sieve[i * i::i] = bytes(len(range(i * i, N, i)))
print(sum(sieve))
"""


def _call(text, code, timeout_seconds):
    return {"text": text, "call": {"name": "run_python", "arguments": {
        "code": code, "timeout_seconds": timeout_seconds}}}


def _corrected(code, traceback):
    """The code with the name that Python suggests, or None when it suggests none."""
    found = re.search(r"has no attribute '(\w+)'.*Did you mean: '(\w+)'", traceback)
    return code.replace(found.group(1), found.group(2)) if found else None


def next_turn(messages, tools):
    """{"text"} to finish, or {"text", "call": {"name", "arguments"}} to use a tool."""
    assert any(t["name"] == "run_python" for t in tools)
    calls = [m["call"]["arguments"]["code"] for m in messages if "call" in m]
    results = [m["result"] for m in messages if m["role"] == "tool"]
    if not results:
        return _call("I shall compute the median first.", MEDIAN, 10)
    code, last = calls[-1], results[-1]
    done = [r["stdout"].strip() for r in results if r["status"] == "success"]

    if last["status"] == "error":
        better = _corrected(code, last["stderr"])
        if better is None:
            return {"text": "I give up: " + (last["stderr"].splitlines() or ["no message"])[-1]}
        return _call("That name was wrong; Python suggests another.", better, 10)
    if last["status"] == "timeout" and code == SLOW_PRIMES:
        return _call("Trial division is too slow. A sieve will do.", FAST_PRIMES, 20)
    if last["status"] != "success":
        return {"text": f"I give up: the run ended with {last['status']}."}
    if len(done) == 1:
        return _call("Now the primes, by trial division.", SLOW_PRIMES, 2)
    return {"text": f"The median word length is {done[0]}, "
                    f"and there are {done[1]} primes below 2,000,000."}
