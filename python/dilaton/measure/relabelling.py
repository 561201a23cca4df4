"""Are two sets of runs further apart than runs of one set are? A test that deals whole runs anew.

Values within a run depend on each other: flows that share a queue lose together, a round trip resembles the one before.
Runs do not, as each has its own seed. So a test that takes values for independent calls runs of one lab different, and
what chance does is better measured than reckoned: runs are dealt anew between the two sets, whole, in all ways or in
`DEALINGS_MAX` of them, and the distance of the sets is measured each time (a permutation test).

Of many metrics one is far apart by chance in nearly every dealing. So each distance is taken as a multiple of what that
metric's is in the mean of all dealings, and p of a metric is the share of dealings in which *any* metric comes as far
(Westfall and Young 1993, single-step maxT). That holds however the metrics of a run depend on each other.

Of few runs and many metrics this tells only clear differences, as any metric may come far by chance. A difference that
many metrics share shows sooner in the mean of these multiples; its p is the share of dealings where that is as large.
What is too small to matter counts for nothing in it, in no dealing: metrics that certainly differ by a hundredth would
have chance in another one be called a difference.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import Any

import numpy as np

from dilaton.measure.statistics import SIGNIFICANCE, Distance, distance

DEALINGS_MAX = 1000
PLACES_MAX = 5000
"""The most places at which distribution functions are compared, spread as the values are."""

Parts = Sequence[Any]
"""The values of a metric, run by run."""


@dataclass(frozen=True)
class Block:
    """What two sets of runs measured under the same circumstances: runs are dealt within a block.

    Attributes:
        ones, others: How many runs each set has.
        metrics: Of each metric the values of the runs of both sets, those of the first set first.
        least: Of each metric the distance up to which it does not count for all together, in the unit of its values;
            empty: 0 for all.
    """

    ones: int
    others: int
    metrics: Sequence[Parts]
    least: Sequence[float] = ()


@dataclass(frozen=True)
class Apart:
    """How far two sets of runs are apart in a metric.

    Attributes:
        distance: Of all values together; p as above.
        by_chance: The relative Wasserstein distance that 95 of 100 dealings do not exceed.
        is_farthest: Of runs too few to tell a difference from chance: whether no other dealing is as far apart.
    """

    distance: Distance
    by_chance: float
    is_farthest: bool = False


@dataclass(frozen=True)
class SetsApart:
    """How far two sets of runs are apart.

    Attributes:
        blocks: Block by block, metric by metric.
        p: Of all metrics together; NaN where no block has runs enough.
    """

    blocks: list[list[Apart]]
    p: float


def least_p(ones: int, others: int) -> float:
    """The smallest p that so many runs, at least one of each set, can give: 1/10 of three and three, 1/35 of four."""
    alike = 2 if ones == others else 1  # dealing the sets the other way round changes nothing
    return alike / math.comb(ones + others, ones)


def can_tell(ones: int, others: int) -> bool:
    """Whether so many runs suffice for a p of `SIGNIFICANCE`: four and four do, three and three do not."""
    return least_p(ones, others) <= SIGNIFICANCE


def sets_apart(blocks: Sequence[Block]) -> SetsApart:
    """How far two sets of runs are apart.

    Raises:
        ValueError: A block has no values of a metric in one of the sets.
    """
    dealt = list(_dealings(blocks))
    columns, found = [], []
    for number, block in enumerate(blocks):
        firsts = np.array([dealing[number] for dealing in dealt])
        columns += [_distances(parts, firsts) for parts in block.metrics]
        found += [
            distance(np.concatenate(parts[: block.ones]), np.concatenate(parts[block.ones :]))
            for parts in block.metrics
        ]
    distances = np.array(columns).reshape(len(columns), len(dealt))
    means = distances.mean(axis=1, keepdims=True)
    multiples = np.divide(distances, means, out=np.zeros_like(distances), where=means > 0)
    # The least p of each metric's runs, if that is too large to tell.
    too_few = [
        0.0 if can_tell(block.ones, block.others) else least_p(block.ones, block.others)
        for block in blocks
        for _ in block.metrics
    ]
    least = np.array([each for block in blocks for each in block.least or [0.0] * len(block.metrics)]).reshape(-1, 1)
    largest, together = multiples.max(axis=0, initial=0.0), np.where(distances > least, multiples, 0.0).sum(axis=0)
    apart = (
        Apart(
            replace(of, p=_share(largest, own[0])),
            float(np.quantile(dealt_apart, 0.95)) / of.wasserstein * of.relative if of.wasserstein else 0.0,
            # Of many dealings only some are tried, so that the smallest share is met about; the next is twice as large.
            few > 0 and _share(own, own[0]) < 1.5 * few,
        )
        for of, own, dealt_apart, few in zip(found, multiples, distances, too_few, strict=True)
    )
    return SetsApart(
        [[next(apart) for _ in block.metrics] for block in blocks],
        math.nan if all(too_few) else _share(together, together[0]),
    )


def _share(dealt: Any, found: float) -> float:
    """The share of dealings that come as far as the sets do, which are one of them."""
    return float(np.mean(dealt >= found * (1 - 1e-9)))


def _dealings(blocks: Sequence[Block]) -> Iterator[list[Any]]:
    """Ways to deal runs: for each block which of them are in the first set. The one that is comes first."""
    sizes = [(block.ones, block.ones + block.others) for block in blocks]
    if math.prod(math.comb(both, ones) for ones, both in sizes) <= DEALINGS_MAX:
        for chosen in product(*(combinations(range(both), ones) for ones, both in sizes)):
            yield [np.isin(np.arange(both), which) for which, (_, both) in zip(chosen, sizes, strict=True)]
        return
    dealer = np.random.default_rng(1)
    yield [np.arange(both) < ones for ones, both in sizes]
    for _ in range(DEALINGS_MAX - 1):
        yield [dealer.permutation(both) < ones for ones, both in sizes]


def _distances(parts: Parts, firsts: Any) -> Any:
    """The Wasserstein distance of the two sets in each dealing: the area between their distribution functions.

    Args:
        parts: The values of each run.
        firsts: A row of each dealing, which says of each run whether it is in the first set.
    """
    places = np.unique(np.concatenate(parts))
    if len(places) > PLACES_MAX:
        places = np.unique(np.quantile(np.concatenate(parts), np.linspace(0, 1, PLACES_MAX)))
    counts = np.array([np.searchsorted(np.sort(part), places[:-1], side="right") for part in parts], dtype=float)
    sizes = np.array([len(part) for part in parts], dtype=float)
    first_share = (firsts @ counts) / (firsts @ sizes)[:, None]
    other_share = (~firsts @ counts) / (~firsts @ sizes)[:, None]
    return np.abs(first_share - other_share) @ np.diff(places)
