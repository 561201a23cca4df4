"""Time-sequence graphs of TCP: what was sent, sent again and acknowledged, over time (as NSDI'06, figures 2 and 3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from dilaton.measure.packets.tcp import FlowPackets
from dilaton.report.figures.bands import Band, caption, draw_bands, within
from dilaton.report.style import BLUE, GREEN, ORANGE, RED, Drawing, axes, legend, time_axis, unit

COLUMNS, ROWS = 1600, 600
"""A mark is drawn only once in each of so many cells of the axes: more cannot be seen, and files stay small."""


def thin(x: Any, y: Any) -> npt.NDArray[np.int64]:
    """Positions of the points that remain when each cell of the axes keeps its first."""
    if len(x) <= 1:
        return np.arange(len(x))
    cells = np.zeros(len(x), dtype=np.int64)
    for values, count in ((np.asarray(x, float), COLUMNS), (np.asarray(y, float), ROWS)):
        width = (values.max() - values.min()) or 1.0
        cells = cells * (count + 1) + ((values - values.min()) / width * count).astype(np.int64)
    return np.sort(np.unique(cells, return_index=True)[1])


def draw_sequence(where: Axes, flow: FlowPackets, begin_s: float = 0.0, until_s: float | None = None) -> None:
    """Draws a flow on axes, with time since `begin_s`, up to `until_s` after it."""

    def within(table: Any) -> Any:
        t_s = table.t_s - begin_s
        return table[t_s <= until_s] if until_s is not None else table

    data, acks, sack = within(flow.data), within(flow.acks), within(flow.sack)
    first, again = data[~data.again], data[data.again]
    for table, columns, colour, marker, label in (
        (first, "end", BLUE, ".", "data"),
        (again, "end", RED, "x", "sent again"),
    ):
        at = thin(table.t_s, table[columns])
        where.plot(
            table.t_s.to_numpy()[at] - begin_s,
            table[columns].to_numpy()[at],
            marker,
            color=colour,
            markersize=2.5 if marker == "." else 4,
            label=label if len(table) else None,
            linestyle="none",
        )
    if len(sack):
        at = thin(sack.t_s, sack.right)
        x, left, right = (sack[name].to_numpy()[at] for name in ("t_s", "left", "right"))
        # Below the data, which it would hide where there is much of it.
        where.vlines(x - begin_s, left, right, color=ORANGE, linewidth=0.8, zorder=1.5, label="SACK")
    at = thin(acks.t_s, acks.acknowledged)
    where.step(
        acks.t_s.to_numpy()[at] - begin_s,
        acks.acknowledged.to_numpy()[at],
        where="post",
        color=GREEN,
        linewidth=0.8,
        label="ACK",
    )
    where.set_ylabel("sequence number")
    unit(where.yaxis, "B")


def draw_flow(flow: FlowPackets, capture: str, number: int, bands: Sequence[Band] = ()) -> Drawing:
    """The time-sequence graph of a flow.

    Args:
        flow: What is drawn.
        capture: The interface that it was captured on.
        number: Tells the flows of a capture apart.
        bands: What is shown behind it, of its time.
    """
    figure, (where,) = axes(height_in=3.0)
    draw_sequence(where, flow)
    shown = within(bands, float(flow.data.t_s.min()), float(flow.data.t_s.max()))
    draw_bands(where, shown)
    time_axis(where)
    legend(where)
    again = int(flow.data.again.sum())
    words = (
        f"{flow.name}, as captured on {capture}: {len(flow.data)} segments with data, {again} of them sent again. "
        "Data up to this byte, and acknowledgements of it; vertical lines are selective acknowledgements."
    )
    name = f"sequence-{capture.replace(':', '-').lower()}-{number}"
    return Drawing(name, f"Time-sequence graph of {flow.name}, {capture}", words + caption(shown), figure)
