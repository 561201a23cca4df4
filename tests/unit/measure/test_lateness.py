"""Percentiles of lateness from the clock's histogram."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dilaton.measure.lateness import summarise


def histogram(samples: list[int]) -> list[int]:
    """What the clock counts."""
    counts = [0] * 64
    for sample in samples:
        counts[sample.bit_length()] += 1
    return counts


def test_no_timers_were_not_late() -> None:
    assert summarise([0] * 64, 0) == summarise(histogram([]), 0)
    assert summarise([0] * 64, 0).p999_ns == 0


def test_one_timer_in_a_hundred_shows_in_the_highest_percentile_only() -> None:
    found = summarise(histogram([5] * 99 + [1000]), 1000)
    assert (found.timers, found.p50_ns, found.p99_ns, found.p999_ns, found.max_ns) == (100, 7, 7, 1000, 1000)


@given(st.lists(st.integers(min_value=0, max_value=10**12), min_size=1), st.sampled_from([500, 990, 999]))
def test_a_percentile_is_never_too_small_and_at_most_twice_too_large(samples: list[int], per_mille: int) -> None:
    exact = sorted(samples)[-(-len(samples) * per_mille // 1000) - 1]
    found = summarise(histogram(samples), max(samples))
    value = {500: found.p50_ns, 990: found.p99_ns, 999: found.p999_ns}[per_mille]
    assert exact <= value <= 2 * exact
