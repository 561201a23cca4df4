"""A lab's network as a picture: each kind of node has its mark, thicker links carry more."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

import matplotlib
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dilaton.lab.kinds import kind_of
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import Link
from dilaton.lab.segments import without_lans
from dilaton.measure import numbers
from dilaton.report.figures.layout import positions
from dilaton.report.figures.nodes import mark_nodes, write_names
from dilaton.report.style import COLOURS

LABELS = ("rate", "delay", "address")
"""What can be written beside links."""
LEGEND_COLUMNS_MAX = 4
AT_END = 0.28
"""Where on its link an address is written: so much of the way from its node."""

Addresses = Mapping[tuple[str, str], Sequence[str]]
"""The addresses of each interface, by its node and name."""

Machines = Mapping[str, str]
"""The machine of each node, by their names."""

LABELLED_NODES_MAX = 150
"""Names of more nodes cannot be read in one picture."""

PAPER = {"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4}
"""Behind text, so that it can be read on lines."""

SIDE_INCHES_MIN, SIDE_INCHES_MAX = 4.0, 16.0
INCHES_PER_STEP, INCHES_PER_LABELLED_STEP = 0.75, 1.6
"""Between neighbours, if the picture does not become too large by that."""
INCHES_PER_LETTER = 0.09
"""Of the longest name, which is to fit between neighbours."""


def draw(
    lab: Lab,
    path: Path,
    labels: Collection[str] = (),
    addresses: Addresses | None = None,
    machines: Machines | None = None,
) -> None:
    """Writes a picture of a lab, of the kind that the file's suffix says (.svg, .png, .pdf).

    Args:
        lab: What is drawn.
        path: The file.
        labels: Those of `LABELS` that are written beside links.
        addresses: For `address`: those that the plan gives.
        machines: Where nodes are, in the order of machines, if colours are to say that instead of their kind.
    """
    # Text stays text, and nothing in the file depends on when it was made.
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": "dilaton"}):
        dated = {"Date": None} if path.suffix == ".svg" else {"CreationDate": None} if path.suffix == ".pdf" else None
        figure(lab, labels, addresses, machines).savefig(path, bbox_inches="tight", dpi=150, metadata=dated)


def figure(
    lab: Lab, labels: Collection[str] = (), addresses: Addresses | None = None, machines: Machines | None = None
) -> Figure:
    """The picture; arguments as of `draw`."""
    flat = without_lans(lab)
    places = positions(lab)
    xs, ys = ([place[axis] for place in places.values()] for axis in (0, 1))
    least_in = max([INCHES_PER_STEP, *(INCHES_PER_LETTER * len(name) for name in places)])
    step_in = INCHES_PER_LABELLED_STEP if labels else min(least_in, INCHES_PER_LABELLED_STEP)
    width, height = (_inches(max(values) - min(values), step_in) for values in (xs, ys))
    picture = Figure(figsize=(width, height))
    axes = picture.add_axes((0.0, 0.0, 1.0, 1.0))
    axes.set_axis_off()
    axes.set_aspect("equal")
    step = min(width / (max(xs) - min(xs) + 1), height / (max(ys) - min(ys) + 1))
    """Inches between neighbours."""
    size = max(2.0, min(11.0, 14 * step))
    """The diameter of a node's mark, in points."""
    lines = [[places[end.node] for end in link.endpoints] for link in flat.links]
    axes.add_collection(
        LineCollection(lines, colors="#b9c0c8", linewidths=[_thickness(link, size) for link in flat.links], zorder=1)
    )
    of_node = kinds(flat)
    colours = _colours(machines or {})
    marks = {name: (of_node[name], machines[name] if machines else "") for name in flat.nodes}
    in_order = sorted(dict.fromkeys(marks.values()), key=lambda mark: list(colours).index(mark[1]) if colours else 0)
    for kind, machine in in_order:
        where = np.array([places[name] for name, mark in marks.items() if mark == (kind, machine)])
        mark_nodes(axes, where, kind, size, colours.get(machine), f"{kind} on {machine}" if machine else None)
    for link in flat.links:
        for at, words in _beside(link, places, labels, addresses or {}):
            axes.annotate(words, at, ha="center", va="center", fontsize=6, bbox=PAPER, zorder=2.5)
    axes.margins(0.06)
    if len(places) <= LABELLED_NODES_MAX:
        letters = min(8.0, max(4.0, size * 0.75))
        write_names(axes, list(places), np.array(list(places.values())), size * 0.5 + 1, letters)
    if max(ys) - min(ys) < 1:
        axes.set_ylim(min(ys) - 0.5, max(ys) + 0.5)
    if len(set(marks.values())) > 1:
        handles, _ = axes.get_legend_handles_labels()
        shown = [handle for handle in handles if isinstance(handle, Line2D)]
        axes.legend(
            handles=shown,
            loc="lower center",
            bbox_to_anchor=(0.5, 1.0),
            ncols=min(len(shown), LEGEND_COLUMNS_MAX),
            frameon=False,
            fontsize=8,
        )
    return picture


def _colours(machines: Machines) -> dict[str, str]:
    """A colour for each machine; of many, neighbours in their order look alike."""
    names = list(dict.fromkeys(machines.values()))
    if len(names) <= len(COLOURS):
        return dict(zip(names, COLOURS, strict=False))
    spectrum = matplotlib.colormaps["turbo"]
    return {name: to_hex(spectrum(number / (len(names) - 1))) for number, name in enumerate(names)}


def _beside(
    link: Link, places: Mapping[str, tuple[float, float]], labels: Collection[str], addresses: Addresses
) -> Iterator[tuple[tuple[float, float], str]]:
    """What is written on a link, and where; its directions apart where they differ."""
    (x, y), (to_x, to_y) = (places[end.node] for end in link.endpoints)
    both = [link.direction("a_to_b"), link.direction("b_to_a")]
    there, back = (", ".join(_words(shape.rate_bit_per_s, shape.delay_ns, labels)) for shape in both)
    a, b = (end.node for end in link.endpoints)
    if text := there if there == back else f"{a} > {b}: {there}\n{b} > {a}: {back}":
        yield ((x + to_x) / 2, (y + to_y) / 2), text
    for end, share in zip(link.endpoints, (AT_END, 1 - AT_END), strict=True):
        given = addresses.get((end.node, end.interface), ())
        if "address" in labels and given:
            yield (x + share * (to_x - x), y + share * (to_y - y)), "\n".join(given)


def _words(rate_bit_per_s: int | None, delay_ns: int, labels: Collection[str]) -> Iterator[str]:
    if "rate" in labels and rate_bit_per_s is not None:
        yield numbers.rate(rate_bit_per_s)
    if "delay" in labels and delay_ns:
        yield numbers.duration(delay_ns / 1e9)


def _inches(extent: float, step_in: float) -> float:
    return min(max((extent + 1) * step_in, SIDE_INCHES_MIN / 2), SIDE_INCHES_MAX)


def _thickness(link: Link, size: float) -> float:
    """The width of a link's line, in points: a step more for each tenfold rate above 100 Mbit/s."""
    rate = link.rate_bit_per_s
    steps = max(0.0, math.log10(rate / 10**8)) if rate else 1.0
    return min(1.0, size / 8) * (0.7 + 0.5 * steps)


def kinds(lab: Lab) -> dict[str, str]:
    """What each node is; of no kind, a router or a host by its links."""
    links: dict[str, int] = dict.fromkeys(lab.nodes, 0)
    for link in lab.links:
        for end in link.endpoints:
            links[end.node] += 1
    return {name: kind_of(node.kind, links[name]) for name, node in lab.nodes.items()}
