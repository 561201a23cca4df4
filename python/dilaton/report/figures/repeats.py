"""The inside of TCP connections over the repeats of a sweep: at every instant their mean, and a band around it.

Two repeats have no connection in common: clients' ports are dealt anew in each. So a connection is told by its ends and
the port of its server, which is the lower one, and several of these by the order in which they began. Samples are taken
at multiples of one period, so that repeats meet at the same instants.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import pandas as pd

from dilaton.measure.statistics import half_interval
from dilaton.report.figures.series import CONNECTION_SHARE_MIN, TCP, Panel, carries
from dilaton.report.style import LINES_MAX, Drawing, axes, from_zero, legend, time_axis, unit

ENDS = ["source", "served_from", "destination", "served_to"]
"""Of these ports the client's is none."""

ROOM = 1.5
"""How much higher than the highest line a panel may be for the sake of its bands."""

TRICKLES = "trickles"
"""The attribute of a table that says how many connections it leaves out."""


def connections_of(table: pd.DataFrame, nodes: Mapping[str, str]) -> pd.DataFrame:
    """Samples of a run's connections under names that its repeats share, in the column `series`.

    Trickles are left out, and counted in `attrs[TRICKLES]`.

    Args:
        table: Samples of connections.
        nodes: The node that has each address.
    """
    if table.empty:
        return table.assign(series=pd.Series(dtype=object))
    is_server = table.source_port < table.destination_port
    table = table.assign(
        served_from=table.source_port.where(is_server, 0), served_to=table.destination_port.where(~is_server, 0)
    )
    both = ["source_port", "destination_port"]
    ports = table.groupby([*ENDS, *both], sort=False).agg(begin=("t_ns", "min"), acked=("bytes_acked", "max"))
    ports = ports.reset_index()
    is_shown = carries(ports.acked)
    ports = ports[is_shown].sort_values(["begin", *both], kind="stable")
    order = ports.groupby(ENDS).cumcount() + 1
    ports["series"] = [
        f"{_end(nodes, row.source, row.served_from)} > {_end(nodes, row.destination, row.served_to)}"
        + (f" ({number})" if number > 1 else "")
        for row, number in zip(ports.itertuples(), order, strict=True)
    ]
    table = table.merge(ports[[*ENDS, *both, "series"]], on=[*ENDS, *both])
    # As long as nothing has been answered there is no round trip.
    table = table.assign(rtt_us=table.rtt_us.where(table.rtt_us > 0))
    table.attrs[TRICKLES] = int((~is_shown).sum())
    return table


def _end(nodes: Mapping[str, str], address: str, port: int) -> str:
    return f"{nodes.get(address, address)}:{port}" if port else nodes.get(address, address)


def draw_repeats(runs: Mapping[str, Sequence[pd.DataFrame]], more: str = "") -> Iterator[Drawing]:
    """A figure of the largest connections of each combination; none where nothing was sampled.

    Args:
        runs: For each combination of values, by its words, the samples of its repeats, as of `connections_of`.
        more: A further sentence of the caption.
    """
    lines = {
        f"{words}, {series}" if words else str(series): rows
        for words, repeats in runs.items()
        for series, rows in pd.concat(
            [table.assign(repeat=number) for number, table in enumerate(repeats)], ignore_index=True
        ).groupby("series", sort=False)
    }
    if not lines:
        return
    largest = sorted(lines, key=lambda name: -lines[name].groupby("repeat").bytes_acked.max().mean())
    shown = [panel for panel in TCP if any(rows[panel.column].max() > 0 for rows in lines.values())]
    if not shown:
        return
    figure, made = axes(len(shown), 1.7, sharex=True)
    is_cut = False
    for panel, where in zip(shown, made, strict=True):
        top = 0.0
        for name in largest[:LINES_MAX]:
            means = means_over_repeats(lines[name], panel)
            [line] = where.plot(means.t_s, means["mean"], label=name)
            low, high = means["mean"] - means.half, means["mean"] + means.half
            where.fill_between(means.t_s, low.clip(lower=0), high, color=line.get_color(), alpha=0.2, linewidth=0)
            top = max(top, means["mean"].max() * ROOM)
        where.set_ylabel(panel.label)
        from_zero(where)
        # The interval of two repeats is thirteen times what they differ by, and would leave the lines no room.
        if 0 < top < where.get_ylim()[1]:
            where.set_ylim(top=top)
            is_cut = True
        unit(where.yaxis, panel.unit)
    legend(made[0])
    time_axis(made[-1])
    left = f" The {LINES_MAX} with most data of {len(lines)}." if len(lines) > LINES_MAX else ""
    what = ", ".join(panel.words for panel in shown)
    if trickles := sum(table.attrs.get(TRICKLES, 0) for repeats in runs.values() for table in repeats):
        least = f"{CONNECTION_SHARE_MIN:.1%} of what the largest of their run did"
        left += f" Without {trickles} that carried less than {least}."
    if is_cut:
        left += " Bands go on above the figure."
    yield Drawing(
        "sweep-tcp",
        "TCP connections over repeats",
        f"TCP connections, as the kernel of their sender knew them: {what}. Lines are means of the repeats that had "
        f"the connection at that instant, bands their 95 % confidence intervals; one repeat has none.{left}{more}",
        figure,
    )


def means_over_repeats(rows: pd.DataFrame, panel: Panel) -> pd.DataFrame:
    """Of each instant `t_s` the `mean` of the repeats, and `half` of its 95 % confidence interval."""
    by_instant = (rows.set_index("t_s")[panel.column].dropna() * panel.scale).groupby(level=0)
    return by_instant.agg(mean="mean", half=half_interval).reset_index()
