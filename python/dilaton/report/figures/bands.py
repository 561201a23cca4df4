"""Bands and marks behind every series over virtual time, with their names above it, none over another.

Names stand in lanes. Each is put into the lowest lane in which it touches no other, changes and faults before
processes; for what finds no room there is the table of events.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes

from dilaton.report.style import BLACK, RED

Kind = Literal["process", "event", "outage", "out of bounds"]

LOOKS: dict[Kind, dict[str, Any]] = {
    "process": {"color": BLACK, "alpha": 0.05, "linewidth": 0},
    "outage": {"facecolor": "#dddddd", "edgecolor": "#aaaaaa", "hatch": "////", "alpha": 0.7, "linewidth": 0},
    "out of bounds": {"color": RED, "alpha": 0.2, "linewidth": 0},
}
CAPTIONS: dict[Kind, str] = {
    "process": "grey: processes",
    "outage": "hatched: a link was down",
    "out of bounds": "red: fidelity was out of bounds",
    "event": "dotted: changes and faults, all of which are in the table of events",
}

LANES, LANE_PT = 4, 7.5
LABEL_PT, CHARACTER_PT, GAP_PT = 6, 3.6, 6
"""The size of names, the mean width of a character, and what is between two names."""
LABEL_CHARACTERS_MAX = 56
AXES_PT = 440
"""How wide axes are at least."""


@dataclass(frozen=True)
class Band:
    """From `begin_s` to `end_s` something was so; equal for what happened at an instant."""

    name: str
    begin_s: float
    end_s: float
    kind: Kind = "event"

    def unnamed(self) -> Band:
        """For further panels of a figure."""
        return replace(self, name="")


def processes_of(processes: pd.DataFrame, end_s: float) -> list[Band]:
    """The processes of a run that ends at `end_s`, but for those that ran all the time, which explain nothing."""
    ran = processes[processes.start_s.notna()]
    whole = [
        Band(row.name_, float(row.start_s), float(row.end_s if pd.notna(row.end_s) else end_s), "process")
        for row in ran.rename(columns={"name": "name_"}).itertuples()
    ]
    return [band for band in whole if band.end_s - band.begin_s < 0.95 * end_s]


def within(bands: Sequence[Band], begin_s: float, end_s: float) -> list[Band]:
    """What of bands is between two instants."""
    return [
        replace(band, begin_s=max(begin_s, band.begin_s), end_s=min(end_s, band.end_s))
        for band in bands
        if band.begin_s <= end_s and band.end_s >= begin_s
    ]


def caption(bands: Sequence[Band]) -> str:
    """What bands mean, as a sentence; empty without any."""
    there = {band.kind for band in bands}
    said = "; ".join(words for kind, words in CAPTIONS.items() if kind in there)
    return f" {said[0].upper()}{said[1:]}." if said else ""


def draw_bands(where: Axes, bands: Sequence[Band]) -> None:
    """Draws bands behind a series that has been drawn, and their names above it."""
    for band in bands:
        if band.kind == "event":
            where.axvline(band.begin_s, color=BLACK, alpha=0.6, linewidth=0.6, linestyle=":", zorder=0.9)
        else:
            where.axvspan(band.begin_s, band.end_s, zorder=0.5, **LOOKS[band.kind])
    begin_s, end_s = where.get_xlim()
    named = sorted((band for band in bands if band.name), key=lambda band: (band.kind == "process", band.begin_s))
    names = [_short(band.name) for band in named]
    scale = AXES_PT / ((end_s - begin_s) or 1.0)
    spans = [_span((band.begin_s - begin_s) * scale, name) for band, name in zip(named, names, strict=True)]
    for band, name, span, lane in zip(named, names, spans, lanes(spans), strict=True):
        if lane is None:
            continue
        is_left = span[0] < (band.begin_s - begin_s) * scale
        where.annotate(
            name,
            (band.begin_s, 1.0),
            xycoords=("data", "axes fraction"),
            xytext=(-1 if is_left else 1, 2 + LANE_PT * lane),
            textcoords="offset points",
            ha="right" if is_left else "left",
            fontsize=LABEL_PT,
            color="#555555" if band.kind == "process" else BLACK,
        )


def lanes(spans: Sequence[tuple[float, float]]) -> list[int | None]:
    """The lane of each span, lowest first, in which it touches none of those before it; None: there is no room."""
    taken: list[list[tuple[float, float]]] = [[] for _ in range(LANES)]
    found: list[int | None] = []
    for begin, end in spans:
        free = (n for n, others in enumerate(taken) if all(end <= left or right <= begin for left, right in others))
        lane = next(free, None)
        if lane is not None:
            taken[lane].append((begin, end))
        found.append(lane)
    return found


def _span(at_pt: float, name: str) -> tuple[float, float]:
    """Where a name goes: to the right of its instant, or to the left where that would lead out of the axes."""
    width = len(name) * CHARACTER_PT + GAP_PT
    return (at_pt, at_pt + width) if at_pt + width <= AXES_PT else (at_pt - width, at_pt)


def _short(name: str) -> str:
    return name if len(name) <= LABEL_CHARACTERS_MAX else name[: LABEL_CHARACTERS_MAX - 1] + "…"
