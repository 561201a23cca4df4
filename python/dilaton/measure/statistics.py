"""Are two sets of measurements the same? The measures of NSDI'06 (table 4) and two distances.

A test of significance alone does not answer this. Of many values it finds the smallest difference, one of 3 us between
round trips of 40 ms, and calls it certain; of few values it finds none. So a metric counts as different only when the
difference is both **significant** (the two-sample Kolmogorov-Smirnov test, corrected by Holm for how many metrics are
compared) and **relevant**: the Wasserstein distance, by how much values have to be moved, in their own unit, to make
one distribution the other, is more than a share of the reference's mean. Of too few values for a test relevance alone
decides.

Measurements within a run follow each other and are not independent: of a connection's window, which takes seconds to
grow, two hundred samples may say no more than ten would. So the test counts a series for as many independent values as
would know the mean as well as it does, which its autocorrelation tells. What a lab does to its network (a flow begins,
a link changes) looks like correlation, too, and is none. What both runs do at the same instants is taken out first: the
autocorrelation is that of what is left of one series when the other is taken from it, by least squares. And what only
one does is in its autocorrelation alone: that of the two counts which is smaller, as runs of one lab have the same.
Where runs were repeated, `relabelling.py` tells what chance does.

The distributions that this takes are here, since it is little: the package that has them, scipy, is a quarter of what
an installation would fetch and unpack.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

import numpy as np

SIGNIFICANCE = 0.05
TESTED_MIN = 5
"""Values that each side must have to be tested."""
ROUNDING = 1e-20
"""What is left of a series, as a share of its square, that is no more than rounding."""
SERIES_MIN = 0.2
"""Below it the series of Kolmogorov's distribution converges slowly, and its complement is 1 to thirteen digits."""
FREEDOM_MANY = 400
"""Degrees of freedom from which on Student's t is expanded about the normal distribution, to ten digits there."""


@dataclass(frozen=True)
class Summary:
    """A set of values in brief; NaN where there are too few.

    Attributes:
        count: Of values.
        mean: Of them.
        cov: Coefficient of variation: standard deviation over mean.
        iqr: Interquartile range, in the unit of the values.
    """

    count: int
    mean: float
    cov: float
    iqr: float

    @property
    def iqr_ratio(self) -> float:
        """Interquartile range over mean: without a unit, as NSDI'06 gives it, which does not say over what."""
        return self.iqr / self.mean if self.mean else math.nan


@dataclass(frozen=True)
class Distance:
    """How far two sets of values are apart.

    Attributes:
        ks: Largest difference of the two distribution functions, 0..1.
        p: Probability of one as large between samples of one distribution; NaN where there are too few values.
        wasserstein: In the unit of the values.
        relative: That over the reference's mean; infinite when the mean is 0 and the distance is not.
    """

    ks: float
    p: float
    wasserstein: float
    relative: float


def summarise(values: Any) -> Summary:
    """Summarises finite values."""
    values = np.asarray(values, dtype=float)
    if not len(values):
        return Summary(0, math.nan, math.nan, math.nan)
    mean = float(values.mean())
    low, high = np.quantile(values, [0.25, 0.75])
    deviation = float(values.std(ddof=1)) if len(values) > 1 else math.nan
    return Summary(len(values), mean, deviation / mean if mean else math.nan, float(high - low))


def half_interval(values: Any) -> float:
    """Half the width of the 95 % confidence interval of the mean of independent values, by Student's t; NaN of one.

    Those that are NaN are missing.
    """
    values = np.asarray(values, dtype=float)
    values = values[~np.isnan(values)]
    if len(values) < 2:
        return math.nan
    return float(student_quantile(0.975, len(values) - 1) * values.std(ddof=1) / math.sqrt(len(values)))


def correlation_time(values: Any, beside: Any, places: Any, whose: Any = None) -> float:
    """How many values, at least 1, of one or several series are worth one that is independent of others.

    Several series share their mean, so that each may keep to a level of its own for as long as it lasts; and as they
    may all move together, their sums over time are looked at as well, and the longer time counts.

    Args:
        values: Finite, each series in order.
        beside: What another run had at the same places; what both have in common is no noise.
        places: Where the values are; those of several series at one place are simultaneous.
        whose: To which series each value belongs, as a number; None: there is one.
    """
    values, beside = np.asarray(values, dtype=float), np.asarray(beside, dtype=float)
    left, common = values - values.mean(), beside - beside.mean()
    if common.any():
        left = left - common * (left @ common / (common @ common))
    square = float(left @ left)
    if square <= ROUNDING * float(values @ values):
        return 1.0
    if whose is None:
        times = [_correlated([left])]
    else:
        sums = np.bincount(np.unique(places, return_inverse=True)[1], left)
        times = [_correlated([left[whose == each] for each in np.unique(whose)]), _correlated([sums])]
    return max(1.0, max(times) / square)


def _correlated(series: Sequence[Any]) -> float:
    """The sum of all autocovariances of series with a mean of 0, to both sides.

    It ends where pairs of them are no longer positive: Geyer, "Practical Markov chain Monte Carlo" (1992), section 3.3,
    the initial positive sequence.
    """
    covariances = np.zeros(max(map(len, series)))
    for each in series:
        # The transform is circular; twice the length keeps its end from its beginning, and a power of two is fast.
        length = 1 << (2 * len(each) - 1).bit_length()
        covariances[: len(each)] += np.fft.irfft(np.abs(np.fft.rfft(each, length)) ** 2, length)[: len(each)]
    pairs = np.add.reduceat(covariances, np.arange(0, len(covariances), 2))
    end = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    return float(2 * pairs[:end].sum() - covariances[0])


def distance(reference: Any, other: Any, correlated: float = 1.0) -> Distance:
    """The distance of two sets of finite values, neither empty.

    Args:
        reference, other: The sets.
        correlated: How many values are worth one that is independent of others.
    """
    reference, other = np.asarray(reference, dtype=float), np.asarray(other, dtype=float)
    apart = _moved(reference, other)
    mean = abs(float(reference.mean()))
    relative = apart / mean if mean else (math.inf if apart else 0.0)
    ks = _largest_difference(reference, other)
    root = math.sqrt(len(reference) * len(other) / (len(reference) + len(other)) / correlated)
    # Kolmogorov's distribution, with the correction for few values of Stephens (1970), "Use of the Kolmogorov-Smirnov,
    # Cramer-von Mises and related statistics without extensive tables".
    p = kolmogorov_tail((root + 0.12 + 0.11 / root) * ks)
    enough = min(len(reference), len(other)) >= TESTED_MIN
    return Distance(ks, p if enough else math.nan, apart, relative)


def _moved(one: Any, other: Any) -> float:
    """By how much values have to be moved, on average, to make one set the other: the area between their functions."""
    where = np.sort(np.concatenate([one, other]))
    return float(np.abs(np.subtract(*_shares(one, other, where[:-1]))) @ np.diff(where))


def _largest_difference(one: Any, other: Any) -> float:
    """Returns the largest difference of the distribution functions of two sets of values."""
    return float(np.abs(np.subtract(*_shares(one, other, np.concatenate([one, other])))).max())


def _shares(one: Any, other: Any, where: Any) -> list[Any]:
    """The distribution functions of two sets of values at places."""
    return [np.searchsorted(np.sort(values), where, side="right") / len(values) for values in (one, other)]


def are_different(distances: Sequence[Distance], tolerance: float) -> list[bool]:
    """Which of several metrics differ.

    Args:
        distances: Of all metrics that are compared.
        tolerance: A relative Wasserstein distance up to this is of no relevance, 0..1.
    """
    tested = sorted((each.p, number) for number, each in enumerate(distances) if not math.isnan(each.p))
    significant = {number for number, each in enumerate(distances) if math.isnan(each.p)}
    for rank, (p, number) in enumerate(tested):
        # Holm (1979): the smallest against alpha / m, the next against alpha / (m - 1), until one is not significant.
        if p > SIGNIFICANCE / (len(tested) - rank):
            break
        significant.add(number)
    return [number in significant and each.relative > tolerance for number, each in enumerate(distances)]


def kolmogorov_tail(value: float) -> float:
    """The probability that Kolmogorov's distribution is above a value."""
    if value < SERIES_MIN:
        return 1.0
    terms = ((-1.0) ** (place - 1) * math.exp(-2 * (place * value) ** 2) for place in range(1, 30))
    return min(1.0, 2 * sum(terms))


def student_quantile(probability: float, freedom: int) -> float:
    """The value that Student's t stays below with a probability of .5 or more and less than 1.

    Args:
        probability: That.
        freedom: Degrees of it, 1 or more.
    """
    if freedom >= FREEDOM_MANY:
        return _expanded(NormalDist().inv_cdf(probability), freedom)
    # In its angle, the arc tangent of t over the root of the freedom, the probability has a closed form.
    low, high = 0.0, math.pi / 2
    while low < (middle := (low + high) / 2) < high:
        if (1 + _within(middle, freedom)) / 2 < probability:
            low = middle
        else:
            high = middle
    return math.tan(middle) * math.sqrt(freedom)


def _within(angle: float, freedom: int) -> float:
    """The probability that t is within an angle to both sides: Abramowitz and Stegun (1964), 26.7.3 and 26.7.4."""
    cosine, is_odd = math.cos(angle), freedom % 2
    term = cosine if is_odd else 1.0
    total = 0.0
    for place in range(2 + is_odd, freedom + 1, 2):
        total += term
        term *= (place - 1) / place * cosine**2
    inner = math.sin(angle) * total
    return 2 / math.pi * (angle + inner) if is_odd else inner


def _expanded(normal: float, freedom: int) -> float:
    """The quantile of t at which the normal distribution has `normal`: Abramowitz and Stegun (1964), 26.7.5."""
    square = normal**2
    terms = (
        (square + 1) / 4,
        ((5 * square + 16) * square + 3) / 96,
        (((3 * square + 19) * square + 17) * square - 15) / 384,
        ((((79 * square + 776) * square + 1482) * square - 1920) * square - 945) / 92160,
    )
    return normal * (1 + sum(term / float(freedom) ** power for power, term in enumerate(terms, 1)))
