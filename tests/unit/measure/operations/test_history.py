"""What a part of a run had, and when it had recovered from a fault, by operations that are made up."""

from __future__ import annotations

import pytest

from dilaton.measure.operations.history import History, Interval, Operation


def steady(begin_s: float, end_s: float, step_s: float, *, ok: bool = True, takes_s: float = 0.001) -> list[Operation]:
    """Operations at a fixed rate."""
    count = round((end_s - begin_s) / step_s)
    return [Operation(begin_s + n * step_s, begin_s + n * step_s + takes_s, ok) for n in range(count)]


HISTORY = History(
    [*steady(0, 5, 0.01), *steady(5, 7, 0.1, ok=False, takes_s=0.05), *steady(7, 10, 0.01, takes_s=0.004)]
)
"""100 operations a second, 10 failures a second from 5 s to 7 s, and 100 again, which take four times as long."""


@pytest.mark.parametrize(
    ("name", "begin_s", "end_s", "value"),
    [
        ("operations", 0, 5, 500),
        ("errors", 0, 5, 0),
        ("errors", 4, 6, 10),
        ("availability", 5, 7, 0),
        ("availability", 6, 8, 100 / 110),
        ("rate", 5.5, 6.5, 0),
        ("rate", 1, 3, 100),
        ("latency.max", 5, 8, 0.004),
        ("latency.avg", 0, 5, 0.001),
        ("latency.p50", 0, 10, 0.001),
        ("latency.p99", 0, 10, 0.004),
    ],
)
def test_a_part_of_a_run_has_what_began_in_it(name: str, begin_s: float, end_s: float, value: float) -> None:
    assert HISTORY.measured(name, begin_s, end_s) == pytest.approx(value, rel=0.02, abs=1e-9)


@pytest.mark.parametrize("name", ["errors", "availability", "latency.p99", "throughput"])
def test_where_nothing_was_done_nothing_is_known(name: str) -> None:
    assert HISTORY.measured(name, 20, 30) is None
    assert History().measured(name, 0, 30) is None


def test_all_that_failed_has_no_latency() -> None:
    assert HISTORY.measured("latency.p50", 5, 7) is None


def test_it_has_recovered_when_it_stays_as_high_as_before() -> None:
    assert HISTORY.time_to_recover("rate", 5, 0.2) == pytest.approx(2.0)


def test_what_a_fault_does_nothing_to_recovers_at_once() -> None:
    assert HISTORY.time_to_recover("rate", 3, 0.2) == pytest.approx(4.0), "the dip from 5 s to 7 s is still to come"
    assert History(steady(0, 10, 0.01)).time_to_recover("rate", 3, 0.2) == 0


def test_a_dip_that_comes_back_counts() -> None:
    again = [*steady(0, 5, 0.01), *steady(6, 7, 0.01), *steady(8, 10, 0.01)]
    assert History(again).time_to_recover("rate", 5, 0.2) == pytest.approx(3.0)


def test_what_is_lower_at_the_end_has_not_recovered() -> None:
    low = [*steady(0, 5, 0.01), *steady(5, 10, 0.02)]
    assert History(low).time_to_recover("rate", 5, 0.2) is None
    assert History(low).time_to_recover("rate", 5, 0.6) == 0, "half of it is enough there"


def test_what_ends_with_the_fault_has_not_recovered() -> None:
    assert History([*steady(0, 5, 0.01), *steady(5, 9, 0.1, ok=False)]).time_to_recover("rate", 5, 0.2) is None


def test_nothing_is_said_by_fewer_than_ten_operations_before() -> None:
    assert History(steady(0, 10, 0.5)).time_to_recover("rate", 4, 0.2) is None


def test_of_throughput_the_intervals_count() -> None:
    carried = [8e6] * 5 + [1e6, 2e6] + [8e6, 7e6, 8e6]
    history = History(intervals=[Interval(n, n + 1, rate) for n, rate in enumerate(carried)])
    assert history.measured("throughput", 0, 5) == 8e6
    assert history.measured("throughput", 5, 7) == 1.5e6
    assert history.measured("throughput", 5.5, 6.5) is None
    assert history.time_to_recover("throughput", 5, 0.2) == 2.0
