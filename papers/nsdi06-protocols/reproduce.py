"""NSDI'06, figures 9 and 10: TCP and BIC over fast links and long round trips, with 50 flows.

What the paper calls TCP is Linux's Reno. Figures 9 (a) and 10 also hold dilation against what it stands for: the paper
has the undilated flows of its hardware there, and here are flows at a lower and at a higher TDF, whose CPU is another.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import options, run  # noqa: E402

import dilaton  # noqa: E402
from dilaton.lab.text.units import parse_duration, parse_rate  # noqa: E402
from dilaton.report.style import COLOURS, WIDTH_IN, applied, below  # noqa: E402

RATES = "100Mbit,250Mbit,500Mbit,1Gbit"
ROUND_TRIPS = "2ms,50ms,100ms,200ms,400ms,800ms"
VALIDATED_BIT_PER_S = 500e6
"""Up to this rate figure 9 also holds TDFs against each other."""

FLOWS = 50


class Kind(NamedTuple):
    """What a line of a figure stands for."""

    protocol: str
    tdf: int

    def __str__(self) -> str:
        """As a legend has it."""
        return f"{'TCP' if self.protocol == 'reno' else 'BIC'}, TDF {self.tdf}"


OVER_RATES = (Kind("reno", 20), Kind("bic", 20), Kind("reno", 100))
OVER_ROUND_TRIPS = (Kind("reno", 4), Kind("reno", 40), Kind("bic", 40))


class Point(NamedTuple):
    """What the flows of a run had, each, bit/s, and what was said of it."""

    flows: Any
    verdict: str


Points = dict[tuple[Kind, str], Point]
"""Runs by their kind, and by the rate or the round trip."""


def main() -> None:
    """Runs what is missing, then writes figures and tables."""
    chosen = options(str(__doc__), repeat=1, figures="9,10", rates=RATES, round_trips=ROUND_TRIPS)
    rates, round_trips = chosen.rates.split(","), chosen.round_trips.split(",")
    if "9" in chosen.figures.split(","):
        points = {
            (kind, rate): measured(chosen.out, kind, rate, "80ms", 20, chosen.drives)
            for rate in rates
            for kind in kinds_at(rate)
        }
        write(chosen.out, "figure-9", points, rates, "rate of the link", draw_rates(points, rates))
    if "10" in chosen.figures.split(","):
        points = {
            (kind, rtt): measured(chosen.out, kind, "150Mbit", rtt, 60, chosen.drives)
            for rtt in round_trips
            for kind in OVER_ROUND_TRIPS
        }
        write(chosen.out, "figure-10", points, round_trips, "round trip", draw_round_trips(points, round_trips))


def kinds_at(rate: str) -> Sequence[Kind]:
    """The lines that figure 9 has at a rate."""
    return OVER_RATES if parse_rate(rate) <= VALIDATED_BIT_PER_S else OVER_RATES[:2]


def measured(out: Path, kind: Kind, rate: str, rtt: str, seconds: int, drive: str) -> Point:
    """The throughput of each flow over the second half of a run."""
    lab = YAML(typ="safe").load(HERE / "lab.yaml")
    lab["time"] = {"drive": drive, "tdf": kind.tdf}
    lab["links"][0] |= {"rate": rate, "delay": f"{parse_duration(rtt) // 2}ns"}
    lab["stop_after"] = f"{seconds}s"
    lab["run"][1]["exec"] = lab["run"][1]["exec"].replace("-C reno", f"-C {kind.protocol}")
    place = out / f"{kind.protocol}-tdf{kind.tdf}-{rate}-{rtt}"
    record = run(lab, place)
    tcp = dilaton.load(place).tcp
    data = tcp[(tcp.node == "sender") & (tcp.destination_port == 5201) & (tcp.t_s >= seconds / 2 - 0.5)]
    of_flow = data.groupby("source_port")
    acknowledged = (of_flow.bytes_acked.max() - of_flow.bytes_acked.min()).nlargest(FLOWS)
    lasted_s = float(data.t_s.max() - data.t_s.min())
    return Point(acknowledged.to_numpy() * 8 / lasted_s, record["verdict"]["level"])


def draw_rates(points: Points, rates: Sequence[str]) -> Figure:
    """Figure 9: what a flow has, over the rate; means with standard deviations over the flows."""
    figure = Figure(figsize=(WIDTH_IN / 2, 2.6))
    where = figure.subplots()
    for number, kind in enumerate(OVER_RATES):
        those = [rate for rate in rates if (kind, rate) in points]
        places = [parse_rate(rate) / 1e6 for rate in those]
        means = [np.mean(points[kind, rate].flows) / 1e6 for rate in those]
        deviations = [np.std(points[kind, rate].flows) / 1e6 for rate in those]
        style: Any = {"color": COLOURS[number], "marker": "os^"[number], "markersize": 3, "capsize": 2}
        where.errorbar(places, means, deviations, label=str(kind), **style)
    where.set_xlabel("rate of the link (Mbit/s)")
    where.set_ylabel("throughput of a flow (Mbit/s)")
    where.set_ylim(bottom=0)
    below(figure, *where.get_legend_handles_labels())
    return figure


def draw_round_trips(points: Points, round_trips: Sequence[str]) -> Figure:
    """Figure 10: what a flow has of its share of the link, over the round trip."""
    figure = Figure(figsize=(WIDTH_IN / 2, 2.6))
    where = figure.subplots()
    for number, kind in enumerate(OVER_ROUND_TRIPS):
        shares = [np.mean(points[kind, rtt].flows) / (150e6 / FLOWS) for rtt in round_trips]
        places = [parse_duration(rtt) / 1e6 for rtt in round_trips]
        where.plot(places, shares, color=COLOURS[number], marker="os^"[number], markersize=3, label=str(kind))
    where.set_xlabel("round trip (ms)")
    where.set_ylabel("share of what a flow could have")
    where.set_ylim(0, 1.05)
    below(figure, *where.get_legend_handles_labels())
    return figure


def write(out: Path, name: str, points: Points, places: Sequence[str], heading: str, figure: Figure) -> None:
    """The figure, and its numbers as a table."""
    figure.savefig(out / f"{name}.svg", metadata={"Date": None})
    kinds = list(dict.fromkeys(kind for kind, _ in points))
    lines = [f"| {heading} | {' | '.join(f'{kind}: mean, Mbit/s | deviation | verdict' for kind in kinds)} |"]
    lines.append("| --- " * (1 + 3 * len(kinds)) + "|")
    for place in places:
        cells = []
        for kind in kinds:
            point = points.get((kind, place))
            mean = f"{np.mean(point.flows) / 1e6:.3f} | {np.std(point.flows) / 1e6:.3f}" if point else " | "
            cells.append(f"{mean} | {point.verdict if point else ''}")
        lines.append(f"| {place} | {' | '.join(cells)} |")
    text = "\n".join(lines) + "\n"
    (out / f"{name}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    with applied():
        main()
