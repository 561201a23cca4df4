"""How figures look: one place for colours, sizes and units.

Colours are those of Okabe and Ito (2008), which all people can tell apart, in an order that also differs in lightness.
Figures are as wide as a page's text, so that they go into papers as they are; text in them has 8 points. For narrow
screens the same figure is laid out anew (`dilaton.report.fitting`).
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, NullFormatter

from dilaton.lab.kinds import HOST, ROUTER, SWITCH

BLUE, ORANGE, GREEN, RED, PURPLE, SKY, YELLOW, BLACK = (
    *("#0072B2", "#E69F00", "#009E73", "#D55E00", "#CC79A7", "#56B4E9", "#F0E442", "#000000"),
)
COLOURS = [BLUE, ORANGE, GREEN, RED, PURPLE, SKY, BLACK, "#999999"]
LINES_MAX = len(COLOURS)
"""So many series are told apart in one figure; what shows more shows the largest, and says so."""

NODE_MARKS = {HOST: ("o", "#8a97a6"), ROUTER: ("o", "#2f6db5"), SWITCH: ("s", "#3f8f5b")}
"""Shape and colour of nodes, by kind; of other kinds `OTHER_NODE_MARK`."""
OTHER_NODE_MARK = ("D", "#b5652f")

WIDTH_IN, HEIGHT_IN = 7.2, 2.5

LEGEND_CHARACTERS_PER_IN, LEGEND_SAMPLE_CHARACTERS = 18, 8
"""How many characters of a legend fit below an inch of a figure, and how many the sample of a line takes."""

RC: Any = {
    "font.family": "sans-serif",
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "axes.prop_cycle": matplotlib.cycler(color=COLOURS),  # type: ignore[attr-defined]
    "grid.linewidth": 0.4,
    "grid.color": "#dddddd",
    "lines.linewidth": 1.0,
    "legend.frameon": False,
    "legend.fontsize": 7,
    "figure.constrained_layout.use": True,
    "pdf.fonttype": 42,
    "svg.hashsalt": "dilaton",
}


@dataclass(frozen=True)
class Drawing:
    """A figure with its words.

    Attributes:
        name: Of files with it: lower-case letters, digits and dashes.
        title: A few words.
        caption: What is shown, in full sentences.
        figure: Of matplotlib.
    """

    name: str
    title: str
    caption: str
    figure: Figure


@contextmanager
def applied() -> Iterator[None]:
    """While figures are made and written, they look like this."""
    with matplotlib.rc_context(RC):
        yield


def axes(rows: int = 1, height_in: float = HEIGHT_IN, **options: Any) -> tuple[Figure, list[Axes]]:
    """A figure with axes above each other."""
    figure = Figure(figsize=(WIDTH_IN, height_in * rows))
    made = figure.subplots(rows, 1, squeeze=False, **options)
    return figure, [row[0] for row in made]


def unit(axis: Any, symbol: str) -> None:
    """Has an axis written with prefixes: 10 Mbit/s, 20 ms; one without a unit, as it is."""
    if symbol:
        axis.set_major_formatter(EngFormatter(unit=symbol))
        axis.set_minor_formatter(NullFormatter())


def legend(where: Axes) -> None:
    """A legend below all axes of the figure, where it hides nothing; none where no series has a name."""
    handles, labels = where.get_legend_handles_labels()
    below(where.figure, handles, labels)


def below(figure: Any, handles: Sequence[Any], labels: Sequence[str]) -> None:
    """A legend below all axes, in as many columns as fit."""
    if handles:
        figure.legend(handles, labels, loc="outside lower center", ncols=_columns(labels, figure.get_figwidth()))


def legend_rows(labels: Sequence[str], width_in: float) -> int:
    """How many rows a legend below a figure of that width has."""
    return math.ceil(len(labels) / _columns(labels, width_in))


def _columns(labels: Sequence[str], width_in: float) -> int:
    each = max(map(len, labels)) + LEGEND_SAMPLE_CHARACTERS
    return max(1, min(len(labels), int(LEGEND_CHARACTERS_PER_IN * width_in) // each))


def from_zero(where: Axes) -> None:
    """Begins the vertical axis at zero, with room above the largest value."""
    top = where.dataLim.y1
    where.set_ylim(0, top * 1.08 if 0 < top < float("inf") else 1)


def time_axis(where: Axes) -> None:
    """The horizontal axis of a time series."""
    where.set_xlabel("virtual time (s)")
    where.margins(x=0.01)
