"""Waiting for an event, with a deadline; the only place that sleeps."""
import os
import time

# How many times slower than that an emulated machine may be (tests/vm).
PATIENCE = float(os.environ.get("GLOVEBOX_TEST_PATIENCE", "1"))
# Generous: a loaded two-core machine is a normal place to run tests. A test that
# passes never waits this long.
DEADLINE_S = 30.0 * PATIENCE


def wait_for(what, probe, deadline_s=DEADLINE_S, pause_s=0.01):
    """Call probe() until it gives something true, and return that.

    `what` completes the sentence "waited in vain for …". """
    end = time.monotonic() + deadline_s
    while True:
        last = probe()
        if last:
            return last
        if time.monotonic() > end:
            raise AssertionError(f"waited {deadline_s:g} s in vain for {what}; last seen: {last!r}")
        time.sleep(pause_s)
