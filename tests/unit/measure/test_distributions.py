"""What is computed by hand is what scipy has."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dilaton.measure.statistics import FREEDOM_MANY, distance, kolmogorov_tail, student_quantile

FREEDOMS = [*range(1, 12), 50, FREEDOM_MANY - 1, FREEDOM_MANY, 10**6]


@pytest.mark.parametrize("freedom", FREEDOMS)
@pytest.mark.parametrize("probability", [0.6, 0.975, 0.999])
def test_quantiles_of_student_s_t(probability: float, freedom: int) -> None:
    assert student_quantile(probability, freedom) == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-9)


def test_the_tail_of_kolmogorov_s_distribution() -> None:
    values = np.linspace(0, 6, 500)
    assert [kolmogorov_tail(value) for value in values] == pytest.approx(stats.kstwobign.sf(values), abs=1e-12)


def test_the_distance_of_wasserstein() -> None:
    chance = np.random.default_rng(1)
    for _ in range(20):
        one, other = (np.round(chance.exponential(scale, 1 + chance.integers(200)), 1) for scale in (1, 2))
        assert distance(one, other).wasserstein == pytest.approx(stats.wasserstein_distance(one, other))
