"""The lab drawn as `dilaton graph` draws it, its links coloured by how much of their rate was used."""

from __future__ import annotations

import math
from collections.abc import Mapping

import matplotlib
import numpy as np
import pandas as pd
from matplotlib.cm import ScalarMappable
from matplotlib.collections import LineCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure

from dilaton.measure import numbers
from dilaton.plan.model import Plan
from dilaton.report.figures.layout import positions_of
from dilaton.report.figures.nodes import mark_nodes, write_names
from dilaton.report.style import WIDTH_IN, Drawing

LABELS_MAX, LINE_LABELS_MAX = 60, 12
"""Nodes whose names can be read; of those in a line, at regular distances."""
LARGE_MIN = 20
"""Networks of more nodes have smaller marks and a higher figure."""
HEIGHT_LINE_IN, HEIGHT_SMALL_IN, HEIGHT_LARGE_IN = 1.2, 2.8, 5.0


def draw_topology(plan: Plan, interfaces: pd.DataFrame | None) -> Drawing:
    """Draws the lab of a run.

    Args:
        plan: Of the run.
        interfaces: Its samples; None, or empty, when there are none.
    """
    names = [node.name for node in plan.nodes]
    number = {name: index for index, name in enumerate(names)}
    ends = [(number[link.ends[0].node], number[link.ends[1].node]) for link in plan.links]
    where = np.array(list(positions_of(plan).values()))
    used = {} if interfaces is None else utilisation(plan, interfaces)
    wide, high = np.ptp(where, axis=0)
    is_line = high < 0.1 * (wide or 1)
    is_large = len(names) > LARGE_MIN
    most_in = HEIGHT_LARGE_IN if is_large else HEIGHT_SMALL_IN
    height_in = HEIGHT_LINE_IN if is_line else min(max(WIDTH_IN * high / (wide or 1), 2.0), most_in)
    figure = Figure(figsize=(WIDTH_IN, height_in))
    axes = figure.subplots()
    axes.set_axis_off()
    axes.grid(False)
    axes.margins(0.08, 0.1)
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
    kinds = [node.kind for node in plan.nodes]
    for kind in dict.fromkeys(kinds):
        at = where[[each == kind for each in kinds]]
        mark_nodes(axes, at, kind, 5 if is_large else 9)
    if len(set(kinds)) > 1:
        axes.legend(loc="lower center", bbox_to_anchor=(0.5, 1.0), ncols=len(set(kinds)))
    if is_line or len(names) <= LABELS_MAX:
        step = math.ceil(len(names) / LINE_LABELS_MAX) if is_line else 1
        named = np.argsort(where[:, 0])[::step]
        write_names(axes, [names[index] for index in named], where[named], 5 if is_large else 8)
    measured = "the larger mean share of a link's rate in its two directions" if used else "no rates were measured"
    caption = f"{numbers.counted(len(names), 'node')} and {numbers.counted(len(ends), 'link')}; colours: {measured}."
    return Drawing("topology", "Topology", caption, figure)


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
