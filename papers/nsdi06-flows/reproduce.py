"""NSDI'06, figure 5: the throughput of 60 flows that share a bottleneck, at TDF 1, 10 and 100."""

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

TDFS = ("1", "10", "100")
REFERENCE = "100"
"""With the fastest CPU; the others are compared with it."""
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
    chosen = options(str(__doc__), repeat=3)
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
            places = [rate + 6 * (number - 1) for rate in rates]
            style = {"color": COLOURS[number], "marker": "os^"[number], "markersize": 3, "capsize": 2}
            where.errorbar(places, means, deviations, label=f"TDF {tdf}", **style)
        where.set_title(title)
        where.set_xlabel("bottleneck (Mbit/s)")
        where.set_ylim(bottom=0)
    panels[0].set_ylabel("throughput of a flow")
    unit(panels[0].yaxis, "bit/s")
    below(figure, *panels[0].get_legend_handles_labels())
    return figure


def table(flows: dict[Key, Any]) -> str:
    """Means and deviations at all TDFs, and which of them differ from those of the reference."""
    points = [(group, rate) for group in GROUPS for rate in RATES]
    others = [tdf for tdf in TDFS if tdf != REFERENCE]
    verdicts = {
        tdf: are_different([distance(flows[*point, REFERENCE], flows[*point, tdf]) for point in points], TOLERANCE)
        for tdf in others
    }
    lines = [
        f"| group | bottleneck | {' | '.join(f'TDF {tdf}: mean, Mbit/s | deviation' for tdf in TDFS)} "
        f"| {' | '.join(f'TDF {tdf} and {REFERENCE}' for tdf in others)} |",
        "| --- " * (2 + 2 * len(TDFS) + len(others)) + "|",
    ]
    for number, (group, rate) in enumerate(points):
        summaries = [summarise(np.array(flows[group, rate, tdf]) / 1e6) for tdf in TDFS]
        cells = [f"{each.mean:.3f} | {each.mean * each.cov:.3f}" for each in summaries]
        cells += ["different" if verdicts[tdf][number] else "indistinguishable" for tdf in others]
        lines.append(f"| {GROUPS[group]} | {rate} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def pairs_of_runs(flows: Flows) -> str:
    """How far two runs of the same TDF are apart, beside two of which one is the reference's."""
    rows = [(f"both at TDF {tdf}", tdf, tdf) for tdf in TDFS]
    rows += [(f"TDF {tdf} and {REFERENCE}", tdf, REFERENCE) for tdf in TDFS if tdf != REFERENCE]
    lines = [
        "| two runs | pairs | median KS | p at most 0.05 | median Wasserstein |",
        "| --- | --- | --- | --- | --- |",
    ]
    for what, one, other in rows:
        apart: list[Distance] = []
        for group, rate in product(GROUPS, RATES):
            ones, others = flows[group, rate, one], flows[group, rate, other]
            pairs = combinations(ones, 2) if one == other else product(ones, others)
            apart += [distance(*pair) for pair in pairs]
        significant = sum(each.p <= SIGNIFICANCE for each in apart)
        lines.append(
            f"| {what} | {len(apart)} | {np.median([each.ks for each in apart]):.2f} "
            f"| {significant / len(apart) * 100:.0f} % | {np.median([each.relative for each in apart]) * 100:.0f} % |"
        )
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
