"""What the runs of a sweep measured, over the first of its fields.

Points are means of repeats, with their 95 % confidence intervals where there are two or more. Where the field has names
and no quantities there are columns: nothing lies between names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Literal

import numpy as np
import pandas as pd

from dilaton.measure.statistics import half_interval
from dilaton.report.style import COLOURS, Drawing, axes, legend, unit
from dilaton.run.points import Labels, Values

BARS_WIDTH = 0.8
"""Of what there is for each name on an axis."""

_PREFIXES = {"": 1.0, "k": 1e3, "m": 1e6, "g": 1e9, "t": 1e12}
_QUANTITY = re.compile(r"([0-9]*\.?[0-9]+|[0-9]+/[1-9][0-9]*)\s*(?:([kmgt]?)bit|(ns|us|ms|s)|(%))?", re.IGNORECASE)
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}


def figure_name(column: str) -> str:
    """Of the file with the figure of a measured number."""
    return re.sub(r"[^a-z0-9]+", "-", f"sweep-{column}".lower())


def draw_sweep(
    table: pd.DataFrame, values: Values, units: Mapping[str, str], labels: Labels | None = None
) -> Iterator[Drawing]:
    """A figure for each measured number, a line for each combination of the fields but the first.

    None where no field was swept.

    Args:
        table: As of `table_of`.
        values: Of the fields.
        units: Of the numbers that are drawn, by their names.
        labels: What they are called.
    """
    if not values:
        return
    first, *others = values
    named = (labels or {}).get
    for column, symbol in units.items():
        figure, (where,) = axes(height_in=2.8)
        places, scale = _places(values[first])
        groups = list(table.groupby(others, sort=False)) if others else [((), table)]
        tops: list[float] = []
        for number, (combination, rows) in enumerate(groups):
            by_value = rows.groupby(first)[column]
            means, bars = (by_value.agg(each).reindex(values[first]) for each in ("mean", half_interval))
            pairs = zip(others, combination, strict=True)
            label = ", ".join(f"{named(other, other)} {value}" for other, value in pairs) or None
            tops.append(float((means + bars.fillna(0.0)).max()))
            colour = COLOURS[number % 8]
            if scale == "categories":
                width = BARS_WIDTH / len(groups)
                beside = [place + (number - (len(groups) - 1) / 2) * width for place in places]
                where.bar(beside, means, width, yerr=bars, capsize=2, color=colour, label=label)
            else:
                where.errorbar(places, means, bars, marker="o", markersize=3, capsize=2, color=colour, label=label)
        if scale == "logarithmic":
            where.set_xscale("log")
        where.set_xticks(places, values[first])
        where.minorticks_off()
        where.set_xlabel(named(first, first))
        where.set_ylabel(named(column, column))
        unit(where.yaxis, symbol)
        if table[column].min() >= 0:
            where.set_ylim(bottom=0, top=(np.nanmax(tops) or 1) * 1.08)
        legend(where)
        title = named(column, column)
        caption = f"{title} over {named(first, first)}: means of repeats, with their 95 % confidence intervals."
        yield Drawing(figure_name(column), title, caption, figure)


def _places(texts: Sequence[str]) -> tuple[list[float], Literal["linear", "logarithmic", "categories"]]:
    """Where values stand on an axis, and which one: as quantities if all are, else one by one."""
    matches = [_QUANTITY.fullmatch(text) for text in texts]
    if not all(matches):
        return list(range(len(texts))), "categories"
    found = []
    for match in matches:
        assert match is not None
        number, prefix, second, _ = match.groups()
        found.append(
            float(Fraction(number)) * (_SECONDS[second.lower()] if second else _PREFIXES[(prefix or "").lower()])
        )
    positive = min(found) > 0
    return found, "logarithmic" if positive and max(found) / min(found) >= 10 else "linear"
