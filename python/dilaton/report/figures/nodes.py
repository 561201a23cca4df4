"""Nodes on a drawing of a network: each kind has its mark, and names are where they hide nothing."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes

from dilaton.lab.kinds import HOST
from dilaton.report.figures.layout import Positions
from dilaton.report.style import NODE_MARKS, OTHER_NODE_MARK

HOST_SCALE = 0.7
"""Hosts are many, and are where a network ends."""
NEAR_PT, BESIDE_PT = (36, 16), 4
"""What a name takes, horizontally and vertically; and how far nodes are apart that are beside each other."""


def mark_nodes(
    axes: Axes, where: Positions, kind: str, size_pt: float, colour: str | None = None, label: str | None = None
) -> None:
    """Draws nodes of one kind.

    Args:
        axes: Where.
        where: Their positions, a row each.
        kind: As a lab says it.
        size_pt: The diameter of a router's mark.
        colour: None: that of the kind.
        label: In the legend; None: the kind.
    """
    shape, own = NODE_MARKS.get(kind, OTHER_NODE_MARK)
    size = size_pt * (HOST_SCALE if kind == HOST else 1.0)
    [marks] = axes.plot(where[:, 0], where[:, 1], shape, color=colour or own, label=label or kind, zorder=2)
    marks.set_markersize(size)
    marks.set_markeredgewidth(0)


def write_names(axes: Axes, names: list[str], where: Positions, apart_pt: float, size_pt: float = 7) -> None:
    """Writes names above their nodes, or where others are near, on the side that is away from these.

    Args:
        axes: Where the nodes are drawn, as wide as their figure.
        names: Of the nodes.
        where: Their positions.
        apart_pt: How far the names are from the nodes, in points.
        size_pt: The height of their letters.
    """
    bounds = axes.figure.bbox
    scale = np.array([bounds.width, bounds.height]) * 72 / axes.figure.dpi / np.maximum(np.ptp(where, axis=0), 1e-9)
    points = where * (scale if axes.get_aspect() == "auto" else scale.min())
    for name, position, point in zip(names, where, points, strict=True):
        away = point - points
        x, y = away[(np.abs(away) < NEAR_PT).all(axis=1)].sum(axis=0)
        axes.annotate(
            name,
            position,
            xytext=(0, apart_pt if y >= 0 else -apart_pt),
            textcoords="offset points",
            ha="center" if abs(x) < BESIDE_PT else "left" if x > 0 else "right",
            va="bottom" if y >= 0 else "top",
            fontsize=size_pt,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
        )
