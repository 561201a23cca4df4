"""Sets of runs are told apart by dealing whole runs anew: not by chance, and not by how values within a run depend."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from dilaton.measure.relabelling import Block, can_tell, sets_apart
from dilaton.measure.statistics import are_different, distance

Runs = Callable[..., list[Any]]


@pytest.fixture
def runs() -> Runs:
    """So many runs, whose values differ far less among each other than from those of another run."""
    chance = np.random.default_rng(1)
    return lambda count, mean=100.0: [chance.normal(mean, 5) + chance.normal(0, 0.5, 20) for _ in range(count)]


def test_the_distance_is_that_of_all_values_together(runs: Runs) -> None:
    ones, others = runs(5), runs(5, 130)
    ((apart,),) = sets_apart([Block(5, 5, [ones + others])]).blocks
    whole = distance(np.concatenate(ones), np.concatenate(others))
    assert (apart.distance.ks, apart.distance.wasserstein) == (whole.ks, whole.wasserstein)
    assert apart.distance.p == 2 / math.comb(10, 5), "the one dealing that is so far apart, and the same the other way"
    assert apart.by_chance < apart.distance.relative


def test_runs_that_differ_by_chance_are_not_different_though_their_values_are(runs: Runs) -> None:
    told = naive = 0
    for _ in range(60):
        ones, others = runs(4), runs(4)
        ((apart,),) = sets_apart([Block(4, 4, [ones + others])]).blocks
        told += apart.distance.p <= 0.05
        naive += sum(are_different([distance(np.concatenate(ones), np.concatenate(others))], 0.0))
    assert naive >= 50
    assert told <= 6, "of 60 cases 3 are expected, more than 6 once in 25; the numbers are drawn from one seed"


def test_many_metrics_do_not_make_one_different(runs: Runs) -> None:
    sets = [sets_apart([Block(4, 4, [runs(8) for _ in range(20)])]).blocks[0] for _ in range(20)]
    assert sum(apart.distance.p <= 0.05 for one in sets for apart in one) <= 3, "one is expected; of each alone, twenty"


def test_the_one_metric_of_many_that_differs_is_told(runs: Runs) -> None:
    *same, shifted = sets_apart([Block(5, 5, [*(runs(10) for _ in range(20)), runs(5) + runs(5, 160)])]).blocks[0]
    assert shifted.distance.p <= 0.05
    assert sum(apart.distance.p <= 0.05 for apart in same) == 0


def test_blocks_are_dealt_each_for_itself(runs: Runs) -> None:
    """What differs between blocks, such as the rates of a link, is none of the sets' doing."""
    blocks = [Block(4, 4, [runs(4, mean) + runs(4, mean)]) for mean in (10, 1000)]
    blocks.append(Block(4, 4, [runs(4) + runs(4, 200)]))
    slow, fast, shifted = [apart for (apart,) in sets_apart(blocks).blocks]
    assert slow.distance.p > 0.05 < fast.distance.p
    assert shifted.distance.p <= 0.05


def test_a_difference_that_many_metrics_share_is_told_though_none_alone_is(runs: Runs) -> None:
    blocks = [Block(4, 4, [runs(4) + runs(4, 104)]) for _ in range(20)]
    apart = sets_apart(blocks)
    assert min(one.distance.p for block in apart.blocks for one in block) > 0.05
    assert apart.p <= 0.01


def test_all_metrics_together_differ_by_chance_as_seldom_as_they_should(runs: Runs) -> None:
    told = sum(sets_apart([Block(4, 4, [runs(8)]) for _ in range(5)]).p <= 0.05 for _ in range(40))
    assert told <= 5, "2 are expected; the numbers are drawn from one seed"


def test_values_that_are_all_the_same_are_not_apart() -> None:
    ((apart,),) = sets_apart([Block(4, 4, [[np.ones(3)] * 8])]).blocks
    assert (apart.distance.relative, apart.by_chance, apart.distance.p) == (0.0, 0.0, 1.0)


@pytest.mark.parametrize(("ones", "others", "can"), [(4, 4, True), (3, 3, False), (3, 4, True), (1, 19, True)])
def test_so_many_runs_can_tell_a_difference(ones: int, others: int, can: bool, runs: Runs) -> None:
    assert can_tell(ones, others) is can
    ((apart,),) = sets_apart([Block(ones, others, [runs(ones) + runs(others, 900)])]).blocks
    assert (apart.distance.p <= 0.05) is can
    assert apart.is_farthest is not can
