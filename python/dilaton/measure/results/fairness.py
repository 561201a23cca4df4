"""How evenly rates are shared: the index of Jain, Chiu and Hawe (DEC-TR-301, 1984)."""

from __future__ import annotations

from collections.abc import Sequence

FAIRNESS = "fairness"
"""The number of a run that no program measures alone."""


def fairness(rates: Sequence[float]) -> float | None:
    """(Σ x)² / (n Σ x²): 1 where all rates are equal, 1/n where one flow has everything; None where nothing flows."""
    squares = sum(rate * rate for rate in rates)
    return sum(rates) ** 2 / (len(rates) * squares) if squares else None
