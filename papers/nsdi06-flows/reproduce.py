"""NSDI'06, figure 5: the throughput of 60 flows that share a bottleneck, at TDF 1 and 10."""

from __future__ import annotations

import sys
from itertools import combinations, product
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import options, runs, sweep  # noqa: E402

from dilaton.measure.statistics import SIGNIFICANCE, Distance, are_different, distance, summarise  # noqa: E402
from dilaton.report.comparison import TOLERANCE  # noqa: E402
from dilaton.report.style import COLOURS, WIDTH_IN, applied, below, unit  # noqa: E402

TDFS = ("1", "10")
RATES = ("10Mbit", "50Mbit", "100Mbit", "200Mbit", "300Mbit", "400Mbit", "500Mbit", "600Mbit")
GROUPS = {"near": "RTT 20 ms", "middle": "RTT 40 ms", "far": "RTT 60 ms"}

PORTS = (5201, 5202, 5203)
FLOWS = 20
"""In each group."""

Key = tuple[str, str, str]
"""Group, rate, TDF."""

Flows = dict[Key, list[list[float]]]
"""The throughputs of the flows of each run, in bit/s."""


def main() -> None:
    """Runs what is missing, then writes the figure and the table."""
    chosen = options(str(__doc__), repeat=2)
    values = [f"time.drive={chosen.drives}", f"links.0.rate={','.join(RATES)}", f"time.tdf={','.join(TDFS)}"]
    sweep(HERE / "lab.yaml", chosen.out, values, chosen.repeat, chosen.jobs)
    flows: Flows = {}
    for row, run in runs(chosen.out):
        for group in GROUPS:
            key = (group, str(row["links.0.rate"]), str(row["time.tdf"]))
            flows.setdefault(key, []).append(throughputs(run.tcp, group))
    joined = {key: np.concatenate(parts) for key, parts in flows.items()}
    with applied():
        draw(joined).savefig(chosen.out / "figure-5.svg", metadata={"Date": None})
    text = f"{table(joined)}\n{pairs_of_runs(flows)}"
    (chosen.out / "figure-5.md").write_text(text)
    print(text)


def throughputs(tcp: Any, node: str) -> list[float]:
    """What each flow of a node had acknowledged at the end, over the time of the last sample, in bit/s."""
    data = tcp[(tcp.node == node) & tcp.destination_port.isin(PORTS)]
    connections = data.groupby("source_port")
    acknowledged = connections.bytes_acked.max().nlargest(FLOWS)
    # The connection by which iperf3 controls a test carries next to nothing.
    return [float(value) * 8 / float(tcp.t_s.max()) for value in acknowledged]


def draw(flows: dict[Key, Any]) -> Figure:
    """Figure 5: mean and standard deviation of the flows of each group."""
    figure = Figure(figsize=(WIDTH_IN, 2.6))
    panels = figure.subplots(1, len(GROUPS), sharey=True)
    for where, (group, title) in zip(panels, GROUPS.items(), strict=True):
        for number, tdf in enumerate(TDFS):
            rates = [float(rate.removesuffix("Mbit")) for rate in RATES]
            means = [np.mean(flows[group, rate, tdf]) for rate in RATES]
            deviations = [np.std(flows[group, rate, tdf], ddof=1) for rate in RATES]
            # Beside each other, as in the paper.
            places = [rate + 6 * (number - 0.5) for rate in rates]
            style = {"color": COLOURS[number], "marker": "os"[number], "markersize": 3, "capsize": 2}
            where.errorbar(places, means, deviations, label=f"TDF {tdf}", **style)
        where.set_title(title)
        where.set_xlabel("bottleneck (Mbit/s)")
        where.set_ylim(bottom=0)
    panels[0].set_ylabel("throughput of a flow")
    unit(panels[0].yaxis, "bit/s")
    below(figure, *panels[0].get_legend_handles_labels())
    return figure


def table(flows: dict[Key, Any]) -> str:
    """Means and deviations at both TDFs, and whether they differ."""
    pairs = [(group, rate) for group in GROUPS for rate in RATES]
    distances = [distance(flows[group, rate, "1"], flows[group, rate, "10"]) for group, rate in pairs]
    lines = [
        "| group | bottleneck | TDF 1: mean, Mbit/s | deviation | TDF 10: mean | deviation | KS | p | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (group, rate), apart, is_different in zip(pairs, distances, are_different(distances, TOLERANCE), strict=True):
        one, ten = (summarise(np.array(flows[group, rate, tdf]) / 1e6) for tdf in TDFS)
        lines.append(
            f"| {GROUPS[group]} | {rate} | {one.mean:.3f} | {one.mean * one.cov:.3f} | {ten.mean:.3f} "
            f"| {ten.mean * ten.cov:.3f} | {apart.ks:.2f} | {apart.p:.2f} "
            f"| {'different' if is_different else 'indistinguishable'} |"
        )
    return "\n".join(lines) + "\n"


def pairs_of_runs(flows: Flows) -> str:
    """How far two runs are apart that differ in their seeds alone, beside two that differ in their TDFs."""
    same: list[Distance] = []
    other: list[Distance] = []
    for group, rate in product(GROUPS, RATES):
        one, ten = (flows[group, rate, tdf] for tdf in TDFS)
        same += [distance(*pair) for runs_of_one in (one, ten) for pair in combinations(runs_of_one, 2)]
        other += [distance(*pair) for pair in product(one, ten)]
    lines = [
        "| two runs | pairs | median KS | p at most 0.05 | median Wasserstein |",
        "| --- | --- | --- | --- | --- |",
    ]
    for what, apart in (("same TDF, other seeds", same), ("TDF 1 and 10", other)):
        significant = sum(each.p <= SIGNIFICANCE for each in apart)
        lines.append(
            f"| {what} | {len(apart)} | {np.median([each.ks for each in apart]):.2f} "
            f"| {significant / len(apart) * 100:.0f} % | {np.median([each.relative for each in apart]) * 100:.0f} % |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
