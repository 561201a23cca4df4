"""Distribution tables for netem: quantiles of a delay's variation, computed.

netem draws an index at random, so a table holds the values that are met with equal probability, in units of
jitter / `SCALE`, in 16 bits (thus 4 standard deviations at most). The distributions are those of iproute2, whose files
hold the same quantiles up to their rounding. Here each entry is the quantile of the *middle* of its share of the
probability, so that the symmetric ones have mean 0; those files take the lower end.
"""

from __future__ import annotations

from collections.abc import Callable
from statistics import NormalDist

ENTRIES = 4096
SCALE = 8192
"""NETEM_DIST_SCALE of the kernel."""
VALUE_MIN, VALUE_MAX = -(2**15), 2**15 - 1

PARETO_SHAPE = 3
PARETO_MEAN = PARETO_SHAPE / (PARETO_SHAPE - 1)
PARETO_FACTOR = 4 / 3
"""Brings the standard deviation of the Pareto distribution, sqrt(3)/2, near that of the others."""

NORMAL_SHARE = 0.25
"""The share of the normal distribution in `paretonormal`, quantile by quantile."""


def table(name: str) -> list[int]:
    """The table of a distribution: `uniform`, `normal`, `pareto` or `paretonormal`."""
    quantile = _QUANTILES[name]
    values = (quantile((index + 0.5) / ENTRIES) for index in range(ENTRIES))
    return [min(max(round(value * SCALE), VALUE_MIN), VALUE_MAX) for value in values]


def _uniform(share: float) -> float:
    return 2 * share - 1


def _normal(share: float) -> float:
    return NormalDist().inv_cdf(share)


def _pareto(share: float) -> float:
    return float((1 - share) ** (-1 / PARETO_SHAPE) - PARETO_MEAN) * PARETO_FACTOR


def _paretonormal(share: float) -> float:
    # Of clipped values, as the kernel's tables are of 16 bits.
    clipped = min(_pareto(share), VALUE_MAX / SCALE)
    return NORMAL_SHARE * _normal(share) + (1 - NORMAL_SHARE) * clipped


_QUANTILES: dict[str, Callable[[float], float]] = {
    "uniform": _uniform,
    "normal": _normal,
    "pareto": _pareto,
    "paretonormal": _paretonormal,
}
