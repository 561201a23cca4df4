"""Compares runs, in a process and a jail of its own that sees their directories alone: `python -m
dilaton.server.runs.comparing`, JSON in, JSON out. What is compared are samples, captures and outputs that guests wrote.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import asdict
from pathlib import Path
from typing import Any

from dilaton.report.comparison import Comparison, compare, compare_sets
from dilaton.report.metrics import metrics_of
from dilaton.run.loading import load
from dilaton.run.record.record import RecordError


def compared(sets: dict[str, dict[str, list[str]]], tolerance: float) -> Comparison:
    """Compares sets of runs, or, where each is one run, runs.

    Args:
        sets: Directories of runs, by the name of their set and by what else tells them apart.
        tolerance: A relative difference up to this is of no relevance, 0..1.
    """
    read = {
        name: {where: [metrics_of(load(Path(place))) for place in places] for where, places in by_where.items()}
        for name, by_where in sets.items()
    }
    if all(len(by_where) == 1 and len(next(iter(by_where.values()))) == 1 for by_where in read.values()):
        return compare({name: runs[0] for name, by_where in read.items() for runs in by_where.values()}, tolerance)
    return compare_sets(read, tolerance)


def told(comparison: Comparison) -> dict[str, Any]:
    """A comparison as values of JSON."""
    return {
        "rows": [_finite(asdict(row)) for row in comparison.rows],
        "missing": comparison.missing,
        "together": [_finite(asdict(each)) for each in comparison.together],
        "least_p": comparison.least_p,
        "verdict": comparison.verdict,
        "is_different": comparison.is_different,
    }


def _finite(value: Any) -> Any:
    """JSON has no numbers that are none, and knows no numbers of numpy."""
    if isinstance(value, dict):
        return {name: _finite(one) for name, one in value.items()}
    plain = value.item() if hasattr(value, "item") else value
    return None if isinstance(plain, float) and not math.isfinite(plain) else plain


def answer(asked: dict[str, Any]) -> dict[str, Any]:
    """What is to be said."""
    try:
        return told(compared(**asked))
    except (RecordError, OSError, ValueError) as error:
        return {"wrong": str(error)}


if __name__ == "__main__":
    json.dump(answer(json.load(sys.stdin)), sys.stdout)
