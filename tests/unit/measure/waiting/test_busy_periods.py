"""What busy periods say about waiting for the CPU."""

from __future__ import annotations

import pytest

from dilaton.measure.waiting.busy_periods import TICK_NS, BusyPeriods

MS = 1_000_000


def periods(*each: tuple[int, int, int]) -> BusyPeriods:
    """As many periods of so many nanoseconds, with so many interrupts in all."""
    counts, totals_ns, interrupts = [0] * 64, [0] * 64, [0] * 64
    for count, length_ns, asked in each:
        number = length_ns.bit_length()
        counts[number] += count
        totals_ns[number] += count * length_ns
        interrupts[number] += asked
    return BusyPeriods(counts, totals_ns, interrupts)


def test_of_the_interrupts_in_a_period_those_before_the_last_stretch_may_wait_for_longer() -> None:
    seen = periods((10, 4 * MS, 1004), (1000, 20_000, 1000))
    # A fourth of each period is its last millisecond; four of the interrupts are ticks.
    assert seen.late(MS) == pytest.approx(750)
    assert seen.late_share(MS) == pytest.approx(750 / 2004)
    assert seen.late_share(4 * MS) == 0


def test_what_happens_in_short_periods_waits_for_nothing_however_busy_the_cpu_is() -> None:
    assert periods((100_000, 9_000, 100_000)).late_share(10_000) == 0


def test_a_long_period_in_which_nothing_but_the_tick_comes_keeps_nothing_waiting() -> None:
    assert periods((1, 100 * TICK_NS, 100), (100, 1000, 100)).late_share(MS) == 0


def test_at_a_higher_tdf_each_period_is_as_much_shorter() -> None:
    seen = periods((10, 4 * MS, 1000))
    assert seen.dilated(2).late_share(MS) == pytest.approx(0.5, rel=0.01)
    assert seen.dilated(4).late_share(MS) == 0


def test_of_no_periods_nothing_waits() -> None:
    assert BusyPeriods().late_share(1) == 0
