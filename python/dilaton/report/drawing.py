"""A lab's network as a picture: each kind of node has its mark, thicker links carry more."""

from __future__ import annotations

import math
from pathlib import Path

import matplotlib
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dilaton.lab.kinds import HOST, ROUTER, SWITCH, TRANSIT_DEGREE_MIN
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import Link
from dilaton.lab.segments import without_lans
from dilaton.report.figures.layout import positions

MARKS = {HOST: ("o", "#8a97a6"), ROUTER: ("o", "#2f6db5"), SWITCH: ("s", "#3f8f5b")}
"""Shape and colour, by kind; of other kinds `OTHER`."""
OTHER = ("D", "#b5652f")

LABELLED_NODES_MAX = 150
"""Names of more nodes cannot be read in one picture."""

SIDE_INCHES_MIN, SIDE_INCHES_MAX = 4.0, 16.0
INCHES_PER_STEP = 0.75
"""Between neighbours, if the picture does not become too large by that."""


def draw(lab: Lab, path: Path) -> None:
    """Writes a picture of a lab, of the kind that the file's suffix says (.svg, .png, .pdf)."""
    # Text stays text, and nothing in the file depends on when it was made.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dilaton"}):
        dated = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else None
        figure(lab).savefig(path, bbox_inches="tight", dpi=150, metadata=dated)


def figure(lab: Lab) -> Figure:
    """The picture."""
    flat = without_lans(lab)
    places = positions(lab)
    xs, ys = ([place[axis] for place in places.values()] for axis in (0, 1))
    width, height = (_inches(max(values) - min(values)) for values in (xs, ys))
    picture = Figure(figsize=(width, height))
    axes = picture.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_aspect("equal")
    step = min(width / (max(xs) - min(xs) + 1), height / (max(ys) - min(ys) + 1))
    """Inches between neighbours."""
    size = max(2.0, min(11.0, 14 * step))
    """Of a mark, in points."""
    lines = [[places[end.node] for end in link.endpoints] for link in flat.links]
    axes.add_collection(
        LineCollection(lines, colors="#b9c0c8", linewidths=[_thickness(link, size) for link in flat.links], zorder=1)
    )
    kinds = _kinds(flat)
    for kind in dict.fromkeys(kinds.values()):
        names = [name for name in flat.nodes if kinds[name] == kind]
        shape, colour = MARKS.get(kind, OTHER)
        scale = 0.7 if kind == HOST else 1.0
        axes.plot(
            [places[name][0] for name in names],
            [places[name][1] for name in names],
            linestyle="none",
            marker=shape,
            color=colour,
            markersize=size * scale,
            markeredgewidth=0,
            label=kind,
            zorder=2,
        )
    if len(places) <= LABELLED_NODES_MAX:
        for name, place in places.items():
            offset = (0, -size * 0.75 - 1)
            text = min(8.0, max(4.0, size * 0.75))
            paper = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4}
            label = axes.annotate(name, place, offset, textcoords="offset points", ha="center", va="top", bbox=paper)
            label.set_fontsize(text)
    axes.margins(0.06)
    if max(ys) - min(ys) < 1:
        axes.set_ylim(min(ys) - 0.5, max(ys) + 0.5)
    if len(set(kinds.values())) > 1:
        handles, _ = axes.get_legend_handles_labels()
        shown = [handle for handle in handles if isinstance(handle, Line2D)]
        axes.legend(
            handles=shown, loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(shown), frameon=False, fontsize=8
        )
    return picture


def _inches(extent: float) -> float:
    return min(max((extent + 1) * INCHES_PER_STEP, SIDE_INCHES_MIN / 2), SIDE_INCHES_MAX)


def _thickness(link: Link, size: float) -> float:
    """In points: a step more for each tenfold rate above 100 Mbit/s."""
    rate = link.rate_bit_per_s
    steps = max(0.0, math.log10(rate / 10**8)) if rate else 1.0
    return min(1.0, size / 8) * (0.7 + 0.5 * steps)


def _kinds(lab: Lab) -> dict[str, str]:
    """What each node is; of no kind, a router or a host by its links."""
    links: dict[str, int] = dict.fromkeys(lab.nodes, 0)
    for link in lab.links:
        for end in link.endpoints:
            links[end.node] += 1
    return {
        name: node.kind or (ROUTER if links[name] >= TRANSIT_DEGREE_MIN else HOST) for name, node in lab.nodes.items()
    }
