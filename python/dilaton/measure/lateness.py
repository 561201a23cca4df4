"""How late timers were served, from the clock's histogram. Pure.

The clock counts timers by lateness in nanoseconds: bin 0 those that were on time, bin i those in [2^(i-1), 2^i). Within
a bin they are taken as spread evenly, so what is read from a histogram is wrong by less than a factor of two.

Shares are of timers, or of time. Where nothing is served while the CPU is away, as on the wall drive, one late timer
stands for all that came due in the meantime: of a second in which the CPU is away once for 50 ms, one timer in many
thousands is late, and one packet in twenty.
"""

from __future__ import annotations

from collections.abc import Sequence


def share_later(counts: Sequence[int], bound_ns: float) -> float:
    """The share of timers, 0 to 1, that were later than a bound in virtual nanoseconds; 0 where there were none."""
    total = sum(counts)
    later = 0.0
    for number, count in enumerate(counts[1:], 1):
        low, high = 2.0 ** (number - 1), 2.0**number
        later += count * min(1.0, max(0.0, (high - bound_ns) / (high - low)))
    return later / total if total else 0.0


def lateness_of_share(counts: Sequence[int], share: float) -> float:
    """The lateness, in virtual nanoseconds, that `share` of the timers exceed: the inverse of `share_later`."""
    left = share * sum(counts)
    for number in range(len(counts) - 1, 0, -1):
        if counts[number] > left:
            high = 2.0**number
            return high - left / counts[number] * high / 2
        left -= counts[number]
    return 0.0


def time_later(counts: Sequence[int], max_ns: int, bound_ns: float) -> float:
    """The virtual nanoseconds at which what came due had to wait for longer than a bound, for a timer that was late.

    Of a timer that was late by L these are the first L - bound after its instant.

    Args:
        counts: See the head of this file.
        max_ns: The largest lateness, which is left out: a stall that is the only one is to be judged by its length.
        bound_ns: In virtual nanoseconds.
    """
    later_ns = 0.0
    for number, count in enumerate(counts[1:], 1):
        low, high = 2.0 ** (number - 1), 2.0**number
        above = max(low, bound_ns)
        later_ns += count * max(0.0, high - above) / (high - low) * ((above + high) / 2 - bound_ns)
    return max(0.0, later_ns - max(0.0, max_ns - bound_ns))
