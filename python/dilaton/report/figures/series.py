"""Time series from samples: what links carry, what queues hold, how TCP fares, what nodes use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import pandas as pd
from matplotlib.axes import Axes

from dilaton.measure.operations.history import Interval
from dilaton.report.figures.bands import Band, caption, draw_bands
from dilaton.report.figures.names import flow_name
from dilaton.report.style import LINES_MAX, Drawing, axes, from_zero, legend, time_axis, unit


@dataclass(frozen=True)
class Panel:
    """A series of a figure: a column, its label, unit and words in the caption, and whether it is drawn as steps."""

    column: str
    label: str
    unit: str
    words: str
    scale: float = 1.0
    is_stepped: bool = False


CONNECTION_SHARE_MIN = 0.001
"""Connections with less than this share of the data of the largest one are not drawn."""

INTERFACES = [
    Panel("tx_bit_per_s", "sent", "bit/s", "what they sent", is_stepped=True),
    Panel("queue_packets", "queue (packets)", "", "packets in their queues"),
    Panel("queue_drop_per_s", "drops (1/s)", "", "packets dropped by these in a second", is_stepped=True),
]
TCP = [
    Panel("goodput_bit_per_s", "goodput", "bit/s", "rate of acknowledged data", is_stepped=True),
    Panel("cwnd_packets", "cwnd (packets)", "", "congestion window"),
    Panel("rtt_us", "smoothed RTT", "s", "smoothed round trip", scale=1e-6),
]
NODES = [
    Panel("cpu_share", "CPU (share)", "", "CPU time as a share of their guest's"),
    Panel("memory_bytes", "memory", "B", "memory of their processes"),
]


def draw_interfaces(table: pd.DataFrame, bands: Sequence[Band]) -> Iterator[Drawing]:
    """Throughput, queue and drops of the busiest interfaces."""
    table = table.assign(series=table.node + ":" + table.interface)
    yield from _draw("interfaces", "Links", "Interfaces", table, INTERFACES, "tx_bytes", "interfaces", bands)


def draw_tcp(table: pd.DataFrame, bands: Sequence[Band], nodes: Mapping[str, str]) -> Iterator[Drawing]:
    """The inside of the largest TCP connections.

    Args:
        table: Samples of connections.
        bands: What is shown behind them.
        nodes: The node that has each address.
    """
    ends = ("source", "source_port", "destination", "destination_port")
    connections = list(zip(*(table[end] for end in ends), strict=True))
    known = {connection: flow_name(nodes, *connection) for connection in dict.fromkeys(connections)}
    names = pd.Series([known[connection] for connection in connections], index=table.index, dtype=object)
    is_shown = carries(table.bytes_acked.groupby(names).transform("max"))
    trickles = names[~is_shown].nunique()
    table = table[is_shown]
    # As long as nothing has been answered there is no round trip.
    table = table.assign(rtt_us=table.rtt_us.where(table.rtt_us > 0))
    whose = "TCP connections, as the kernel of their sender knew them"
    if trickles:
        whose += f" (without {trickles} that carried less than {CONNECTION_SHARE_MIN:.1%} of what the largest did)"
    yield from _draw(
        "tcp", "TCP connections", whose, table.assign(series=names), TCP, "bytes_acked", "connections", bands
    )


def carries(acked: pd.Series) -> pd.Series:
    """Which connections, by the bytes that they had acknowledged, are no mere trickle beside the largest, as those are
    by which programs such as iperf3 control their tests."""
    return acked >= CONNECTION_SHARE_MIN * acked.max()


def draw_nodes(table: pd.DataFrame, bands: Sequence[Band]) -> Iterator[Drawing]:
    """CPU and memory of the nodes that used most CPU."""
    yield from _draw("nodes", "Nodes", "Nodes", table.assign(series=table.node), NODES, "cpu_ns", "nodes", bands)


def draw_intervals(intervals: Mapping[str, Sequence[Interval]], bands: Sequence[Band]) -> Drawing:
    """Throughput as programs printed it, interval by interval.

    Args:
        intervals: What each process measured.
        bands: What is shown behind them.
    """
    figure, (where,) = axes()
    for name, parts in list(intervals.items())[:LINES_MAX]:
        rates = [part.throughput for part in parts]
        edges = [parts[0].begin_s, *(part.end_s for part in parts)]
        where.step(edges, [*rates[:1], *rates], where="pre", label=name)
    draw_bands(where, bands)
    where.set_ylabel("throughput")
    from_zero(where)
    unit(where.yaxis, "bit/s")
    time_axis(where)
    legend(where)
    more = f" The first {LINES_MAX} of {len(intervals)}." if len(intervals) > LINES_MAX else ""
    words = f"Throughput that programs measured, in the intervals that they printed.{more}{caption(bands)}"
    return Drawing("programs-throughput", "Throughput, by program", words, figure)


def _draw(
    name: str,
    title: str,
    whose: str,
    table: pd.DataFrame,
    panels: Sequence[Panel],
    size: str,
    things: str,
    bands: Sequence[Band],
) -> Iterator[Drawing]:
    """A figure with a panel for each column that has something to show."""
    shown = [panel for panel in panels if table[panel.column].abs().max() > 0]
    if not shown:
        return
    largest = table.groupby("series")[size].max().sort_values(ascending=False, kind="stable")
    largest = largest[largest > 0] if (largest > 0).any() else largest
    figure, made = axes(len(shown), 1.7, sharex=True)
    for panel, where in zip(shown, made, strict=True):
        _draw_panel(where, table, list(largest.index[:LINES_MAX]), panel)
        draw_bands(where, bands if where is made[0] else [band.unnamed() for band in bands])
    legend(made[0])
    time_axis(made[-1])
    more = f"; the {LINES_MAX} with most of {len(largest)} {things}" if len(largest) > LINES_MAX else ""
    what = ", ".join(panel.words for panel in shown)
    yield Drawing(name, title, f"{whose}: {what}{more}.{caption(bands)}", figure)


def _draw_panel(where: Axes, table: pd.DataFrame, names: Sequence[str], panel: Panel) -> None:
    for name in names:
        rows = table[table.series == name]
        style = "steps-pre" if panel.is_stepped else "default"
        where.plot(rows.t_s, rows[panel.column] * panel.scale, label=name, drawstyle=style)
    where.set_ylabel(panel.label)
    from_zero(where)
    unit(where.yaxis, panel.unit)
