"""Evaluates expectations (see `dilaton.lab.parts.expect`) on the processes of a run record."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from dilaton.lab.parts.expect import Dimension, Expectation, Metric, own_path, parse_expectation
from dilaton.lab.text import units
from dilaton.measure.operations.history import History

_COMPARISONS = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}


NEVER = (math.inf, math.inf)

Lasting = tuple[float, float]
"""When a fault began and ended, seconds since virtual 0."""


@dataclass(frozen=True)
class Course:
    """What expectations of a part of a run are about.

    Attributes:
        history: What a process did in the course of time, by its name.
        faults: When each fault that has begun lasted; one that was not undone to the end of the run.
    """

    history: Callable[[str], History]
    faults: Mapping[str, Lasting]


def evaluate(
    expectation: Expectation, results: Mapping[str, Mapping[str, Any]], course: Course | None = None
) -> tuple[bool, float | int | None]:
    """Evaluates one expectation.

    Args:
        expectation: What to evaluate.
        results: The record of each process, by name, as in `run.json`: `start_s`, `end_s`, `exit` and `result`.
        course: For those that speak of a part of the run.

    Returns:
        Whether it holds, and the measured value (bit/s, seconds, ratio or count). A process that has no such value,
        because it never ran or gave no result, meets no expectation: `(False, None)`.
    """
    if expectation.span and expectation.span.every_ns:
        return _in_each_window(expectation, expectation.span.every_ns, course)
    if expectation.span or expectation.recovery:
        measured = _timed(expectation, course) if course else None
    else:
        measured = _measured(results.get(expectation.process), expectation.metric)
    return _holds(expectation, measured), measured


def _holds(expectation: Expectation, measured: float | int | None) -> bool:
    if measured is None:
        return False
    # Through its decimal text, so that a measured 0.04 s equals a written 40ms.
    exact = Fraction(str(measured))
    if expectation.operator == "within":
        return abs(exact - expectation.value) <= expectation.tolerance
    return bool(_COMPARISONS[expectation.operator](exact, expectation.value))


def _in_each_window(expectation: Expectation, every_ns: int, course: Course | None) -> tuple[bool, float | int | None]:
    """Whether it holds in all windows, and there is one; and the value of the one that speaks most against it."""
    part = _part(expectation, course) if course else None
    if part is None or course is None:
        return False, None
    found = course.history(expectation.process).windows(expectation.metric.name, *part, every_ns / 1e9)
    if any(value is None for value in found):
        return False, None
    values = [value for value in found if value is not None]

    def distance(value: float | int) -> Fraction:
        return abs(Fraction(str(value)) - expectation.value)

    match expectation.operator:
        case ">" | ">=":
            worst = min(values, default=None)
        case "<" | "<=":
            worst = max(values, default=None)
        case "!=":
            worst = min(values, key=distance, default=None)
        case "==" | "within":
            worst = max(values, key=distance, default=None)
    return _holds(expectation, worst), worst


def quantity(text: str, value: float | None) -> str:
    """Writes a measured value for people, to four digits and in the unit of its expectation: `9.412Gbit`.

    Args:
        text: The expectation.
        value: What `evaluate` returned.
    """
    expectation = parse_expectation(text)
    metric = expectation.metric
    if value is None:
        return f"no value: {expectation.process} printed no {metric.name}" if metric.is_own else "no value"
    rounded = Fraction(f"{value:.4g}")
    match metric.dimension:
        case Dimension.RATE:
            return units.format_rate(round(rounded))
        case Dimension.DURATION:
            return units.format_duration(round(rounded * 10**9))
        case Dimension.RATIO:
            return units.format_ratio(rounded)
        case Dimension.COUNT:
            return f"{value:.4g}" if isinstance(value, float) and not value.is_integer() else f"{value}"


def _timed(expectation: Expectation, course: Course) -> float | int | None:
    """What was measured in a part of the run; None where that never came."""
    history, name = course.history(expectation.process), expectation.metric.name
    if expectation.recovery:
        begin_s, _ = course.faults.get(expectation.recovery.fault, NEVER)
        if begin_s == math.inf:
            return None
        return history.time_to_recover(name, begin_s, float(expectation.recovery.dip))
    part = _part(expectation, course)
    return None if part is None else history.measured(name, *part)


def _part(expectation: Expectation, course: Course) -> tuple[float, float] | None:
    """The part of the run that it speaks of, seconds since virtual 0; None: it never came."""
    span = expectation.span
    assert span is not None, "it speaks of a part of the run"
    at = (span.at_ns / 1e9, span.at_ns / 1e9) if span.at_ns or span.relation != "during" else (-math.inf, math.inf)
    begin_s, end_s = course.faults.get(span.fault, NEVER) if span.fault else at
    if begin_s == math.inf:
        return None
    match span.relation:
        case "before":
            return -math.inf, begin_s
        case "after":
            return end_s, math.inf
        case "during":
            return begin_s, end_s


def _measured(record: Any, metric: Metric) -> float | int | None:
    """A result of a process: the lab's own of that name, where it has one, as programs know nothing of such names."""
    own = _find(record, own_path(metric.name))
    return _find(record, metric.path) if own is None else own


def _find(record: Any, path: tuple[str, ...]) -> float | int | None:
    """The finite number at a path of nested mappings, or None."""
    for name in path:
        if not isinstance(record, Mapping):
            return None
        record = record.get(name)
    if isinstance(record, bool) or not isinstance(record, int | float) or not math.isfinite(record):
        return None
    return record
