"""The arithmetic of the benchmark; test_figures.py holds it to account."""
import math
import statistics


def percentile(values, percent):
    """The nearest rank: the smallest value that `percent` of all values do not exceed. Always
    one that was measured, never one between two."""
    ordered = sorted(values)
    if not ordered:
        return None
    return ordered[max(0, math.ceil(len(ordered) * percent / 100) - 1)]


def median(values):
    return statistics.median(values) if values else None


def rate(rounds):
    """Runs per second over several measurements, each a (runs, elapsed_ns)."""
    elapsed = sum(ns for _, ns in rounds)
    return sum(runs for runs, _ in rounds) / (elapsed / 1e9) if elapsed else None


def ratio(rounds, base_rounds):
    """How many times the base: the median over the rounds of the quotient of both p50s in the
    same round. A machine whose speed drifts between rounds moves both."""
    quotients = [percentile(ours, 50) / percentile(base, 50)
                 for ours, base in zip(rounds, base_rounds) if ours and base]
    return median(quotients)


def spread(values):
    """p99 over p50: the tail."""
    middle = percentile(values, 50)
    return percentile(values, 99) / middle if middle else None


def parts(values, count):
    """`values`, in the order in which they were measured, in so many parts of equal size; what
    is left over at the end is left out."""
    size = len(values) // count
    return [values[i * size:(i + 1) * size] for i in range(count)] if size else []


def usual_spread(values, count=5):
    """The median of the tails of five parts: a moment in which the machine did something else
    is in one of them."""
    return median([spread(part) for part in parts(values, count)])
