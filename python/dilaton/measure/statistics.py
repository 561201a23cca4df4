"""Are two sets of measurements the same? The measures of NSDI'06 (table 4) and two distances.

A test of significance alone does not answer this. Of many values it finds the smallest difference, one of 3 us between
round trips of 40 ms, and calls it certain; of few values it finds none. So a metric counts as different only when the
difference is both **significant** (the two-sample Kolmogorov-Smirnov test, corrected by Holm for how many metrics are
compared) and **relevant**: the Wasserstein distance, by how much values have to be moved, in their own unit, to make
one distribution the other, is more than a share of the reference's mean. Of too few values for a test relevance alone
decides.

Measurements within a run follow each other and are not independent, so p-values are too small rather than too large.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

SIGNIFICANCE = 0.05
TESTED_MIN = 5
"""Values that each side must have to be tested."""


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


def distance(reference: Any, other: Any) -> Distance:
    """The distance of two sets of finite values, neither empty."""
    reference, other = np.asarray(reference, dtype=float), np.asarray(other, dtype=float)
    apart = float(stats.wasserstein_distance(reference, other))
    mean = abs(float(reference.mean()))
    relative = apart / mean if mean else (math.inf if apart else 0.0)
    with warnings.catch_warnings():
        # Where p is 1 rounding may take it beyond that, and SciPy approximates it instead, which is as good.
        warnings.filterwarnings("ignore", "ks_2samp: Exact calculation unsuccessful", RuntimeWarning)
        tested = stats.ks_2samp(reference, other, method="auto")
    enough = min(len(reference), len(other)) >= TESTED_MIN
    return Distance(float(tested.statistic), float(tested.pvalue) if enough else math.nan, apart, relative)


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
