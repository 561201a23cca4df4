"""Evaluates expectations (see `dilaton.lab.parts.expect`) on the processes of a run record."""

from __future__ import annotations

import math
import operator
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from dilaton.lab.parts.expect import Dimension, Expectation, parse_expectation
from dilaton.lab.text import units

_COMPARISONS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


def evaluate(expectation: Expectation, results: Mapping[str, Mapping[str, Any]]) -> tuple[bool, float | int | None]:
    """Evaluates one expectation.

    Args:
        expectation: What to evaluate.
        results: The record of each process, by name, as in `run.json`: `start_s`, `end_s`, `exit` and `result`.

    Returns:
        Whether it holds, and the measured value (bit/s, seconds, ratio or count). A process that has no such value,
        because it never ran or gave no result, meets no expectation: `(False, None)`.
    """
    measured = _find(results.get(expectation.process), expectation.metric.path)
    if measured is None:
        return False, None
    # Through its decimal text, so that a measured 0.04 s equals a written 40ms.
    exact = Fraction(str(measured))
    if expectation.operator == "within":
        return abs(exact - expectation.value) <= expectation.tolerance, measured
    return bool(_COMPARISONS[expectation.operator](exact, expectation.value)), measured


def quantity(text: str, value: float | None) -> str:
    """Writes a measured value for people, to four digits and in the unit of its expectation: `9.412Gbit`.

    Args:
        text: The expectation.
        value: What `evaluate` returned.
    """
    if value is None:
        return "no value"
    rounded = Fraction(f"{value:.4g}")
    match parse_expectation(text).metric.dimension:
        case Dimension.RATE:
            return units.format_rate(round(rounded))
        case Dimension.DURATION:
            return units.format_duration(round(rounded * 10**9))
        case Dimension.RATIO:
            return units.format_ratio(rounded)
        case Dimension.COUNT:
            return f"{value}"


def _find(record: Any, path: tuple[str, ...]) -> float | int | None:
    """The finite number at a path of nested mappings, or None."""
    for name in path:
        if not isinstance(record, Mapping):
            return None
        record = record.get(name)
    if isinstance(record, bool) or not isinstance(record, int | float) or not math.isfinite(record):
        return None
    return record
