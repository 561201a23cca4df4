"""What a lab itself wants read from the output of a process: numbers by a regular expression or a path in JSON."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dilaton.lab.parts.own_metrics import UNITS
from dilaton.plan.model import OwnMetric

LINE_CHARACTERS_MAX = 1 << 20
"""Longer lines are not looked at: they are no result, and a regular expression might take hours over them."""


FindAll = Callable[[str, str, int], list[str | None]]
"""Gives what the only group of an expression matches in the lines of a text that have at most so many characters."""


class UnreadableError(Exception):
    """An output cannot be searched; the message says why."""


def read(metrics: Mapping[str, OwnMetric], stdout: str, find_all: FindAll) -> dict[str, dict[str, Any]]:
    """The metrics that an output has, each with its value and the unit of that; what is not there is left out.

    Raises:
        UnreadableError: as `find_all` does.
    """
    found: dict[str, dict[str, Any]] = {}
    for name, metric in metrics.items():
        texts = [text for text in _texts(metric, stdout, find_all) if text is not None]
        numbers = [number for text in texts if (number := _number(text)) is not None]
        unit, factor = UNITS[metric.unit]
        if metric.take == "count":
            found[name] = {"value": len(texts), "unit": ""}
        elif numbers:
            value = _taken(metric.take, numbers) * float(factor)
            found[name] = {"value": int(value) if value.is_integer() else value, "unit": unit}
    return found


def _texts(metric: OwnMetric, stdout: str, find_all: FindAll) -> Iterator[object]:
    if metric.regex is not None:
        yield from find_all(metric.regex, stdout, LINE_CHARACTERS_MAX)
    else:
        yield from (_at(document, metric.json_path or []) for document in _documents(stdout))


def _documents(stdout: str) -> Iterator[object]:
    """The output as one document of JSON; else those of its lines that are one."""
    try:
        yield json.loads(stdout)
        return
    except (ValueError, RecursionError):
        pass
    for line in stdout.splitlines():
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue


def _at(document: object, path: Sequence[str | int]) -> object:
    for step in path:
        try:
            document = document[step]  # type: ignore[index]
        except (LookupError, TypeError):
            return None
    return document


def _number(value: object) -> float | None:
    """A finite number, or a text that is one."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None


def _taken(take: str, numbers: Sequence[float]) -> float:
    match take:
        case "first":
            return numbers[0]
        case "min":
            return min(numbers)
        case "max":
            return max(numbers)
        case "mean":
            return math.fsum(numbers) / len(numbers)
        case "sum":
            return math.fsum(numbers)
    return numbers[-1]
