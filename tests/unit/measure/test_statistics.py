"""Distributions are summarised and told apart: by what is significant and relevant, not by chance or by nothing."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.measure.statistics import Distance, are_different, correlation_time, distance, summarise

CHANCE = np.random.default_rng(1)


def test_a_summary_has_the_measures_of_nsdi_06() -> None:
    summary = summarise([1.0, 2.0, 3.0, 4.0])
    assert (summary.count, summary.mean, summary.iqr) == (4, 2.5, 1.5)
    assert summary.cov == pytest.approx(math.sqrt(5 / 3) / 2.5)
    assert summary.iqr_ratio == 0.6


def test_of_too_few_values_there_is_no_spread() -> None:
    assert math.isnan(summarise([]).mean)
    assert math.isnan(summarise([5.0]).cov)


def test_the_wasserstein_distance_of_a_shift_is_the_shift() -> None:
    values = CHANCE.normal(100, 1, 500)
    apart = distance(values, values + 3)
    assert apart.wasserstein == pytest.approx(3)
    assert apart.relative == pytest.approx(0.03, rel=0.01)
    assert apart.ks > 0.8
    assert apart.p < 1e-9


@pytest.mark.parametrize("count", [23, 45])
def test_samples_that_differ_in_one_value_are_compared_without_a_warning(count: int) -> None:
    values = np.arange(float(count))
    apart = distance(values, np.concatenate([[0.5], values[1:]]))
    assert (apart.ks, apart.p) == (pytest.approx(1 / count), 1.0)


def test_samples_of_one_distribution_are_not_different() -> None:
    pairs = [distance(CHANCE.exponential(1, 400), CHANCE.exponential(1, 400)) for _ in range(40)]
    assert sum(are_different(pairs, 0.0)) == 0


def grown(count: int, chance: np.random.Generator) -> Any:
    """A series like a window: it grows, and is halved by chance every twenty values."""
    values, value = np.empty(count), 20.0
    for place in range(count):
        value = (value + 1) / (2 if chance.random() < 0.05 else 1)
        values[place] = value
    return values


def p_of(one: Any, other: Any) -> float:
    """As two runs are compared."""
    places = np.arange(len(one))
    times = correlation_time(one, other, places), correlation_time(other, one, places)
    return distance(one, other, min(times)).p


def test_values_that_follow_each_other_count_for_as_much_as_they_say() -> None:
    chance = np.random.default_rng(2)
    pairs = [(grown(200, chance), grown(200, chance)) for _ in range(100)]
    assert sum(distance(*pair).p < 0.05 for pair in pairs) > 70
    assert sum(p_of(*pair) < 0.05 for pair in pairs) < 20


def test_independent_values_count_one_by_one() -> None:
    chance = np.random.default_rng(2)
    one, other = chance.normal(size=(2, 500))
    assert 1 <= correlation_time(one, other, np.arange(500)) < 1.5


def test_what_both_runs_do_at_the_same_instants_is_no_correlation() -> None:
    chance = np.random.default_rng(2)
    phases = np.repeat([0.0, 10.0, 0.0], [50, 100, 50])
    noise = chance.normal(size=(2, 200))
    assert p_of(phases + noise[0], phases + noise[1]) > 0.05
    assert p_of(phases + noise[0], 2 * phases + noise[1]) < 1e-6


def test_what_only_one_run_does_is_no_correlation() -> None:
    chance = np.random.default_rng(2)
    noise = chance.normal(0, 0.1, (2, 200))
    assert p_of(10 + noise[0], np.repeat([10.0, 5.0], 100) + noise[1]) < 1e-6


def test_values_that_never_change_differ_in_all() -> None:
    assert p_of(np.full(20, 3.0), np.full(20, 4.0)) < 1e-6


def test_series_that_keep_to_their_levels_count_one_by_one() -> None:
    chance = np.random.default_rng(2)
    levels = np.repeat(chance.normal(size=40), 10) + chance.normal(0, 0.01, 400)
    places, whose = np.tile(np.arange(10), 40), np.repeat(np.arange(40), 10)
    assert 9 < correlation_time(levels, np.zeros(400), places, whose) <= 10


def test_series_that_move_together_count_as_one() -> None:
    chance = np.random.default_rng(2)
    together = np.tile(chance.normal(size=100), 20) + chance.normal(0, 0.01, 2000)
    places, whose = np.tile(np.arange(100), 20), np.repeat(np.arange(20), 100)
    assert correlation_time(together, np.zeros(2000), places, whose) > 15


def test_a_certain_difference_that_is_too_small_to_matter_is_none() -> None:
    values = CHANCE.normal(40.031, 0.0001, 1000)
    apart = distance(values, values + 0.003)
    assert apart.p < 1e-9
    assert are_different([apart], 0.01) == [False]
    assert are_different([apart], 0.00001) == [True]


def test_a_large_difference_that_may_be_chance_is_none() -> None:
    assert are_different([Distance(0.5, 0.2, 1.0, 0.5)], 0.05) == [False]


def test_single_values_differ_by_what_is_relevant() -> None:
    assert are_different([distance([100.0], [104.0]), distance([100.0], [110.0])], 0.05) == [False, True]
    assert are_different([distance([0.0], [0.0]), distance([0.0], [1.0])], 0.05) == [False, True]


def test_many_metrics_are_held_to_a_stricter_test() -> None:
    one = Distance(0.3, 0.03, 1.0, 0.5)
    assert are_different([one], 0.05) == [True]
    assert are_different([one] * 10, 0.05) == [False] * 10


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=50))
def test_nothing_differs_from_itself(values: list[float]) -> None:
    assert are_different([distance(values, values)], 0.0) == [False]
