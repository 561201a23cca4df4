"""Lateness and shares of timers from the clock's histogram."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.measure.lateness import lateness_of_share, share_later, time_later


def histogram(samples: list[int]) -> list[int]:
    """What the clock counts."""
    counts = [0] * 64
    for sample in samples:
        counts[sample.bit_length()] += 1
    return counts


def test_no_timers_were_not_late() -> None:
    assert (share_later([0] * 64, 0), lateness_of_share([0] * 64, 0.01)) == (0, 0)


def test_timers_of_a_bin_are_taken_as_spread_evenly() -> None:
    counts = histogram([5] * 99 + [1000])
    assert lateness_of_share(counts, 0.5) == pytest.approx(6, abs=0.03)
    assert lateness_of_share(counts, 0.005) == 768
    assert share_later(counts, 768) == 0.005


@given(st.lists(st.integers(min_value=0, max_value=10**12), min_size=1), st.sampled_from([0.5, 0.01, 0.001]))
def test_what_is_read_is_wrong_by_less_than_a_factor_of_two(samples: list[int], share: float) -> None:
    exact = sorted(samples, reverse=True)[int(share * len(samples))]
    assert exact / 2 <= lateness_of_share(histogram(samples), share) <= 2 * exact


@given(st.lists(st.integers(0, 1000), min_size=2, max_size=40), st.floats(0.001, 0.999))
def test_the_share_and_the_lateness_are_each_others_inverse(counts: list[int], share: float) -> None:
    late_ns = lateness_of_share(counts, share)
    assert share_later(counts, late_ns) <= share + 1e-9
    if late_ns > 1e-6:
        assert share_later(counts, late_ns * (1 - 1e-6)) >= share - 1e-3


@given(st.lists(st.integers(1, 10**9), min_size=2, max_size=200), st.integers(1, 10**9))
def test_the_time_later_is_what_late_timers_have_held_up_but_for_the_latest(late_ns: list[int], bound_ns: int) -> None:
    largest = max(late_ns)
    exact = sum(max(0, late - bound_ns) for late in late_ns) - max(0, largest - bound_ns)
    # Each is known to within its bin.
    error = sum((1 << late.bit_length()) / 2 for late in late_ns)
    assert time_later(histogram(late_ns), largest, bound_ns) == pytest.approx(exact, abs=error)
    assert time_later(histogram([largest]), largest, 2 * largest) == 0
