"""Jain's index, at the values that its definition gives by hand."""

from __future__ import annotations

import pytest

from dilaton.measure.results.fairness import fairness


@pytest.mark.parametrize(
    ("rates", "index"),
    [
        ([5.0], 1.0),
        ([7e6, 7e6, 7e6], 1.0),
        ([1e9, 0.0, 0.0, 0.0], 0.25),
        ([3.0, 1.0], 0.8),
        ([0.0, 0.0], None),
        ([], None),
    ],
)
def test_the_index_of_rates(rates: list[float], index: float | None) -> None:
    assert fairness(rates) == (None if index is None else pytest.approx(index))
