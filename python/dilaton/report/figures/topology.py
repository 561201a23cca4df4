"""The lab drawn as a graph, its links coloured by how much of their rate was used.

Nodes are placed so that distances on paper are as those in the graph: by minimising stress (Gansner, Koren and North,
2004), from where classical scaling (Torgerson, 1952) puts them, so that the same lab gives the same drawing.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

import matplotlib
import numpy as np
import numpy.typing as npt
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from dilaton.lab.kinds import HOST, ROUTER, SWITCH
from dilaton.measure import numbers
from dilaton.plan.kinds.ovs import SCRIPT as OVS_SCRIPT
from dilaton.plan.kinds.recipe import FORWARDING, FORWARDING_IPV6
from dilaton.plan.model import Node, Plan
from dilaton.report.style import NODE_MARKS, WIDTH_IN, Drawing

STEPS = 60
NODES_PLACED_MAX = 400
"""More nodes stay on a circle: placing takes their number squared."""
LABELS_MAX, LINE_LABELS_MAX = 60, 12
"""Nodes whose names can be read; of those in a line, at regular distances."""
GOLDEN = math.pi * (3 - math.sqrt(5))
"""Turns by this angle never come back to the same direction."""
LARGE_MIN = 20
"""Networks of more nodes have a higher figure and smaller marks."""
NEAR_PT, BESIDE_PT = (36, 16), 4
"""What a name takes, horizontally and vertically; and how far nodes are apart that are beside each other."""

Positions = npt.NDArray[np.float64]


def draw_topology(plan: Plan, interfaces: pd.DataFrame | None) -> Drawing:
    """Draws the lab of a run.

    Args:
        plan: Of the run.
        interfaces: Its samples; None, or empty, when there are none.
    """
    names = [node.name for node in plan.nodes]
    number = {name: index for index, name in enumerate(names)}
    ends = [(number[link.ends[0].node], number[link.ends[1].node]) for link in plan.links]
    where = place(len(names), ends)
    used = {} if interfaces is None else utilisation(plan, interfaces)
    is_line = np.ptp(where[:, 1]) < 0.1 * (np.ptp(where[:, 0]) or 1)
    is_large = len(names) > LARGE_MIN
    figure = Figure(figsize=(WIDTH_IN, 1.2 if is_line else 4.5 if is_large else 3.2))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.grid(False)
    axes.margins(0.08, 0.1)
    if is_line:
        axes.set_aspect("equal", adjustable="datalim")
    if ends:
        shares = [used.get(link.name, float("nan")) for link in plan.links]
        colours = matplotlib.colormaps["cividis_r"].with_extremes(bad="#bbbbbb")
        lines = LineCollection([where[list(pair)] for pair in ends], cmap=colours, norm=Normalize(0, 1), zorder=1)
        lines.set_array(np.ma.masked_invalid(shares))
        lines.set_linewidth(2.5 if len(ends) <= LABELS_MAX else 1)
        axes.add_collection(lines)
        if used:
            scale = ScalarMappable(Normalize(0, 1), "cividis_r")
            figure.colorbar(scale, ax=axes, label="share of rate", shrink=0.9, aspect=15, format="%g")
    kinds = [_kind(node) for node in plan.nodes]
    for kind in dict.fromkeys(kinds):
        shape, colour = NODE_MARKS[kind]
        at = where[[each == kind for each in kinds]]
        size = 5 if is_large else 9
        axes.plot(at[:, 0], at[:, 1], shape, color=colour, markeredgewidth=0, markersize=size, zorder=2, label=kind)
    if len(set(kinds)) > 1:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(set(kinds)))
    if is_line or len(names) <= LABELS_MAX:
        step = math.ceil(len(names) / LINE_LABELS_MAX) if is_line else 1
        named = np.argsort(where[:, 0])[::step]
        write_names(axes, [names[index] for index in named], where[named], 5 if is_large else 8)
    measured = "the larger mean share of a link's rate in its two directions" if used else "no rates were measured"
    caption = f"{numbers.counted(len(names), 'node')} and {numbers.counted(len(ends), 'link')}; colours: {measured}."
    return Drawing("topology", "Topology", caption, figure)


def _kind(node: Node) -> str:
    """As what a node is drawn, as far as a plan tells."""
    if node.bridge or any(file.path == OVS_SCRIPT for file in node.files):
        return SWITCH
    return ROUTER if any(node.sysctls.get(key) == "1" for key in FORWARDING | FORWARDING_IPV6) else HOST


def write_names(axes: Axes, names: list[str], where: Positions, apart_pt: float) -> None:
    """Writes names above their nodes, or where others are near, on the side that is away from these.

    Args:
        axes: Where the nodes are drawn, as wide as their figure.
        names: Of the nodes.
        where: Their positions.
        apart_pt: How far the names are from the nodes, in points.
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
            fontsize=7,
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.4},
        )


def utilisation(plan: Plan, interfaces: pd.DataFrame) -> dict[str, float]:
    """The mean share of its rate that each link carried, in its busier direction; without links of no rate."""
    if interfaces.empty:
        return {}
    means: Mapping[tuple[str, str], float] = interfaces.groupby(["node", "interface"]).tx_bit_per_s.mean().to_dict()
    rates = {
        (node.name, interface.name): interface.egress.rate_bit_per_s
        for node in plan.nodes
        for interface in node.interfaces
        if interface.egress.rate_bit_per_s is not None
    }
    used = {}
    for link in plan.links:
        keys = [(end.node, end.interface) for end in link.ends]
        shares = [means[key] / rates[key] for key in keys if key in rates and means.get(key, 0) >= 0]
        shares = [share for share in shares if np.isfinite(share)]
        if any(key in rates and key in means for key in keys):
            used[link.name] = max(shares, default=0.0)
    return used


def place(count: int, ends: list[tuple[int, int]]) -> Positions:
    """Positions of nodes, a row each, the graph's longer side along the paper's.

    Args:
        count: Of nodes.
        ends: Of links, as numbers of nodes.
    """
    turns = np.arange(count)
    angle = 2 * np.pi * turns / max(1, count)
    positions = np.column_stack([np.cos(angle), np.sin(angle)]) * count / 4
    if 1 < count <= NODES_PLACED_MAX:
        distance = _distances(count, ends)
        # Nodes with the same neighbours may get the same place, from which nothing would drive them apart.
        positions = _scaled(distance) + 0.01 * np.column_stack([np.cos(GOLDEN * turns), np.sin(GOLDEN * turns)])
        weight = 1 / np.maximum(distance, 1) ** 2
        np.fill_diagonal(weight, 0)
        for _ in range(STEPS):
            apart = positions[:, None] - positions[None]
            length = np.maximum(np.linalg.norm(apart, axis=2), 1e-9)
            pull = positions[None] + apart * (distance / length)[..., None]
            positions = (weight[..., None] * pull).sum(axis=1) / weight.sum(axis=1)[:, None]
    positions = positions - positions.mean(axis=0)
    _, _, axes = np.linalg.svd(positions, full_matrices=False)
    turned: Positions = positions @ axes.T if count > 1 else positions
    return turned


def _scaled(distance: Positions) -> Positions:
    """Positions in the plane whose distances are nearest to the given ones in their squares' inner products."""
    centred = distance**2
    centred = -(centred - centred.mean(axis=0) - centred.mean(axis=1)[:, None] + centred.mean()) / 2
    values, vectors = np.linalg.eigh(centred)
    flat: Positions = vectors[:, -2:] * np.sqrt(np.maximum(values[-2:], 1e-12))
    return flat


def _distances(count: int, ends: list[tuple[int, int]]) -> Positions:
    """Hops between all nodes; those that are not connected are a little further apart than any."""
    near: list[list[int]] = [[] for _ in range(count)]
    for a, b in ends:
        near[a].append(b)
        near[b].append(a)
    distance = np.full((count, count), np.inf)
    for source in range(count):
        distance[source, source] = 0
        waiting = deque([source])
        while waiting:
            here = waiting.popleft()
            for there in near[here]:
                if np.isinf(distance[source, there]):
                    distance[source, there] = distance[source, here] + 1
                    waiting.append(there)
    reached = distance[np.isfinite(distance)].max()
    return np.where(np.isinf(distance), reached + 1, distance)
