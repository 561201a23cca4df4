"""The same figure at another width: on a narrow screen one that is scaled down cannot be read, and one that is cut off
has to be pushed about.

What was drawn stays as it is. Laid out anew is what goes by the width: the columns of the legend, how many ticks a
horizontal axis has, and the names above bands.
"""

from __future__ import annotations

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, MaxNLocator

from dilaton.report.figures.bands import axes_pt, lay_names
from dilaton.report.style import below, legend_rows

NARROW_IN = 4.0
"""The width of figures for narrow screens: at 400 pixels, text of 8 points then has ten."""

LEGEND_ROW_IN = 0.15
TICK_PT, TICKS_MAX = 42, 9
"""The room of a horizontal axis for each tick with its label, and the most ticks however wide it is."""


def fit(figure: Figure, width_in: float) -> None:
    """Gives a figure another width in inches; it becomes higher or lower only by the rows of its legend."""
    before_in, height_in = figure.get_size_inches()
    figure.set_figwidth(width_in)
    for old in list(figure.legends):
        handles, labels = old.legend_handles, [text.get_text() for text in old.get_texts()]
        old.remove()
        below(figure, handles, labels)
        height_in += LEGEND_ROW_IN * (legend_rows(labels, width_in) - legend_rows(labels, before_in))
    figure.set_figheight(height_in)
    for axes in figure.axes:
        _set_ticks(axes, min(TICKS_MAX, int(axes_pt(figure) / TICK_PT)))
        lay_names(axes)


def _set_ticks(axes: Axes, count: int) -> None:
    """Has the horizontal axis at most so many intervals between ticks."""
    locator = axes.xaxis.get_major_locator()
    if isinstance(locator, MaxNLocator):
        locator.set_params(nbins=count)
    elif isinstance(locator, LogLocator):
        locator.set_params(numticks=count)
