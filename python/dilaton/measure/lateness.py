"""How late timers were served, from the clock's histogram. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Lateness:
    """Lateness of the timers of a run, in virtual nanoseconds.

    A percentile is the upper edge of the histogram's bin that it falls into, and never more than the maximum: so it is
    at most twice the true one.
    """

    timers: int
    p50_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int


def summarise(counts: Sequence[int], max_ns: int) -> Lateness:
    """Summarises a histogram.

    Args:
        counts: Timers by lateness in nanoseconds: bin 0 those that were on time, bin i those in [2^(i-1), 2^i).
        max_ns: The largest lateness.
    """

    def percentile(per_mille: int) -> int:
        needed = -(-sum(counts) * per_mille // 1000)
        reached = 0
        for number, count in enumerate(counts):
            reached += count
            if reached >= needed:
                return min((1 << number) - 1, max_ns)
        return max_ns

    return Lateness(sum(counts), percentile(500), percentile(990), percentile(999), max_ns)
