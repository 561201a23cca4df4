"""Bands and marks behind every series over virtual time, with their names above it, none over another.

Names stand in lanes. Each is put into the lowest lane in which it touches no other, changes and faults before
processes; for what finds no room there is the table of events.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Literal

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import FigureBase
from matplotlib.text import Annotation
from matplotlib.transforms import IdentityTransform

from dilaton.report.style import BLACK, RED

Kind = Literal["process", "event", "outage", "fault", "out of bounds"]

LOOKS: dict[Kind, dict[str, Any]] = {
    "process": {"color": BLACK, "linewidth": 0},
    "outage": {"facecolor": "#dddddd", "edgecolor": "#aaaaaa", "hatch": "////", "alpha": 0.7, "linewidth": 0},
    "fault": {"color": "#f3dcc0", "alpha": 0.7, "linewidth": 0},
    # A strip at the bottom, since what a run is out of for a while need not be wrong with its results.
    "out of bounds": {"color": RED, "alpha": 0.7, "linewidth": 0, "ymax": 0.03},
}
CAPTIONS: dict[Kind, str] = {
    "process": "grey: processes",
    "outage": "hatched: a link was down",
    "fault": "orange: a fault",
    "out of bounds": "red along the bottom: fidelity was out of bounds",
    "event": "dotted: changes and faults, all of which are in the table of events",
}

DEPTH_MAX = 4
"""How many greys there are for processes at the same time; more would hide the series, and in the end be black."""

LANES, LANE_PT = 4, 7.5
LABEL_PT, CHARACTER_PT, GAP_PT = 6, 3.6, 6
"""The size of names, the mean width of a character, and what is between two names."""
BESIDE_AXES_PT = 78
"""What is left and right of axes, at most."""


@dataclass(frozen=True)
class Band:
    """A span in which something was so, from `begin_s` to `end_s`, which are equal for what happened at an instant."""

    name: str
    begin_s: float
    end_s: float
    kind: Kind = "event"

    def unnamed(self) -> Band:
        """The same band without its name, for further panels of a figure."""
        return replace(self, name="")


class Name(Annotation):
    """The name of a band, above axes."""

    def __init__(self, band: Band) -> None:
        self.band = band
        super().__init__(
            band.name,
            (band.begin_s, 1.0),
            xytext=(0, 0),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            fontsize=LABEL_PT,
            color="#555555" if band.kind == "process" else BLACK,
            clip_on=False,
            transform=IdentityTransform(),
        )


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


def depths(bands: Sequence[Band]) -> Iterator[tuple[float, float, int]]:
    """Yields spans with how many bands lie over each other there, one at least, in the order of time."""
    steps = Counter[float]()
    for band in bands:
        steps[band.begin_s] += 1
        steps[band.end_s] -= 1
    depth = 0
    for begin_s, end_s in pairwise(sorted(steps)):
        depth += steps[begin_s]
        if depth:
            yield begin_s, end_s, depth


def draw_bands(where: Axes, bands: Sequence[Band]) -> None:
    """Draws bands behind a series that has been drawn, and their names above it."""
    for begin_s, end_s, depth in depths([band for band in bands if band.kind == "process"]):
        where.axvspan(begin_s, end_s, zorder=0.5, alpha=0.05 * min(depth, DEPTH_MAX), **LOOKS["process"])
    for band in bands:
        if band.kind == "event":
            where.axvline(band.begin_s, color=BLACK, alpha=0.6, linewidth=0.6, linestyle=":", zorder=0.9)
        elif band.kind != "process":
            where.axvspan(band.begin_s, band.end_s, zorder=0.5, **LOOKS[band.kind])
    for band in sorted((band for band in bands if band.name), key=lambda band: (band.kind == "process", band.begin_s)):
        where.add_artist(Name(band))
    lay_names(where)


def lay_names(where: Axes) -> None:
    """Puts the names of bands above axes, for the width that their figure has now; those without room do not show."""
    begin_s, end_s = where.get_xlim()
    wide_pt = axes_pt(where.figure)
    scale = wide_pt / ((end_s - begin_s) or 1.0)
    texts = [text for text in where.texts if isinstance(text, Name)]
    characters = int((wide_pt / 2 - GAP_PT) / CHARACTER_PT)
    for text in texts:
        text.set_text(_short(text.band.name, characters))
    spans = [_span((text.band.begin_s - begin_s) * scale, text.get_text(), wide_pt) for text in texts]
    for text, span, lane in zip(texts, spans, lanes(spans), strict=True):
        is_left = span[0] < (text.band.begin_s - begin_s) * scale
        text.set_visible(lane is not None)
        text.set_horizontalalignment("right" if is_left else "left")
        text.set_position((-1 if is_left else 1, 2 + LANE_PT * (lane or 0)))


def axes_pt(figure: FigureBase) -> float:
    """How wide the axes of a figure are at least, in points."""
    return float(figure.get_figure(root=True).get_figwidth() * 72 - BESIDE_AXES_PT)


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


def _span(at_pt: float, name: str, wide_pt: float) -> tuple[float, float]:
    """Where a name goes: to the right of its instant, or to the left where that would lead out of the axes."""
    width = len(name) * CHARACTER_PT + GAP_PT
    return (at_pt, at_pt + width) if at_pt + width <= wide_pt else (at_pt - width, at_pt)


def _short(name: str, characters: int) -> str:
    return name if len(name) <= characters else name[: characters - 1] + "…"
