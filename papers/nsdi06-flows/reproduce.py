"""NSDI'06, figure 5: the throughput of 60 flows that share a bottleneck, at TDF 1, 10 and 100."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import options, runs, sweep  # noqa: E402

from dilaton.measure.statistics import summarise  # noqa: E402
from dilaton.report.comparison import compare_sets  # noqa: E402
from dilaton.report.metrics import Metric  # noqa: E402
from dilaton.report.style import COLOURS, WIDTH_IN, applied, below, unit  # noqa: E402

TDFS = ("1", "10", "100")
REFERENCE = "100"
"""With the fastest CPU; the others are compared with it."""
RATES = ("10Mbit", "50Mbit", "100Mbit", "200Mbit", "300Mbit", "400Mbit", "500Mbit", "600Mbit")
GROUPS = {"near": "RTT 20 ms", "middle": "RTT 40 ms", "far": "RTT 60 ms"}

PORTS = (5201, 5202, 5203)
FLOWS = 20
"""In each group."""

Runs = dict[tuple[str, str], list[dict[str, Metric]]]
"""Of each TDF and rate the runs, each with the throughputs of the flows of each group, in bit/s."""


def main() -> None:
    """Runs what is missing, then writes the figure and the table."""
    chosen = options(str(__doc__), repeat=4, tdfs=",".join(TDFS))
    values = [f"time.drive={chosen.drives}", f"links.0.rate={','.join(RATES)}", f"time.tdf={chosen.tdfs}"]
    sweep(HERE / "lab.yaml", chosen.out, values, chosen.repeat, chosen.jobs)
    done: Runs = {}
    verdicts: dict[str, Counter[str]] = {}
    doubted: set[tuple[str, str]] = set()
    for row, run in runs(chosen.out):
        tdf = str(row["time.tdf"])
        done.setdefault((tdf, str(row["links.0.rate"])), []).append(
            {group: Metric(group, "bit/s", np.array(throughputs(run.tcp, group))) for group in GROUPS}
        )
        verdicts.setdefault(tdf, Counter())[str(row["verdict"])] += 1
        if row["verdict"] not in ("confirmed", "valid"):
            doubted.add((tdf, str(row["links.0.rate"])))
    with applied():
        draw(done).savefig(chosen.out / "figure-5.svg", metadata={"Date": None})
    counts = [f"TDF {tdf}: {count} runs {verdict}" for tdf in verdicts for verdict, count in verdicts[tdf].items()]
    apart = []
    for tdf in sorted(verdicts.keys() - {REFERENCE}, key=int):
        sound = [rate for rate in RATES if not doubted & {(tdf, rate), (REFERENCE, rate)}]
        apart += [all_together(done, tdf, rates) for rates in (RATES, sound) if rates]
    text = "\n".join([table(done), *apart, *counts]) + "\n"
    (chosen.out / "figure-5.md").write_text(text)
    print(text)


def throughputs(tcp: Any, node: str) -> list[float]:
    """What each flow of a node had acknowledged at the end, over the time of the last sample, in bit/s."""
    data = tcp[(tcp.node == node) & tcp.destination_port.isin(PORTS)]
    connections = data.groupby("source_port")
    acknowledged = connections.bytes_acked.max().nlargest(FLOWS)
    # The connection by which iperf3 controls a test carries next to nothing.
    return [float(value) * 8 / float(tcp.t_s.max()) for value in acknowledged]


def draw(done: Runs) -> Figure:
    """Figure 5: mean and standard deviation of the flows of each group."""
    tdfs = list(dict.fromkeys(tdf for tdf, _ in done))
    figure = Figure(figsize=(WIDTH_IN, 2.6))
    panels = figure.subplots(1, len(GROUPS), sharey=True)
    for where, (group, title) in zip(panels, GROUPS.items(), strict=True):
        for number, tdf in enumerate(tdfs):
            rates = [float(rate.removesuffix("Mbit")) for rate in RATES]
            flows = [summarise(pooled(done[tdf, rate], group)) for rate in RATES]
            means, deviations = [each.mean for each in flows], [each.mean * each.cov for each in flows]
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


def pooled(runs_of_point: list[dict[str, Metric]], group: str) -> Any:
    """The throughputs of a group's flows in all runs of a point."""
    return np.concatenate([run[group].values for run in runs_of_point])


def table(done: Runs) -> str:
    """Means and deviations at all TDFs, and how far they are from those of the reference, as `dilaton compare` says."""
    sets = sets_of(done, RATES)
    tdfs = list(sets)
    rows = {(row.metric, row.run): row for row in compare_sets(sets).rows}
    headings = [f"TDF {tdf}: mean, Mbit/s | deviation" for tdf in tdfs]
    headings += [f"TDF {tdf} from {REFERENCE} | by chance | p | verdict" for tdf in tdfs[1:]]
    lines = [f"| group | bottleneck | {' | '.join(headings)} |"]
    lines.append("| --- " * (2 + 2 * len(tdfs) + 4 * (len(tdfs) - 1)) + "|")
    for group, title in GROUPS.items():
        for rate in RATES:
            flows = [summarise(pooled(done[tdf, rate], group) / 1e6) for tdf in tdfs]
            cells = [f"{each.mean:.3f} | {each.mean * each.cov:.3f}" for each in flows]
            for tdf in tdfs[1:]:
                row = rows[f"{rate}: {group}", tdf]
                verdict = "**different**" if row.is_different else "indistinguishable"
                cells.append(f"{row.distance.relative:.0%} | {row.by_chance:.0%} | {row.distance.p:.2f} | {verdict}")
            lines.append(f"| {title} | {rate} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def all_together(done: Runs, tdf: str, rates: Sequence[str]) -> str:
    """Whether a TDF differs from the reference with all groups together, at these rates."""
    two = {point: its_runs for point, its_runs in done.items() if point[0] in (tdf, REFERENCE)}
    (together,) = compare_sets(sets_of(two, rates)).together
    verdict = "different" if together.is_different else "indistinguishable"
    return f"TDF {tdf} from {REFERENCE}, {', '.join(rates)} together: p = {together.p:.3f}, {verdict}"


def sets_of(done: Runs, rates: Sequence[str]) -> dict[str, dict[str, list[dict[str, Metric]]]]:
    """The runs by TDF, that of the reference first, and by rate."""
    tdfs = sorted({tdf for tdf, _ in done}, key=lambda tdf: (tdf != REFERENCE, int(tdf)))
    return {tdf: {rate: done[tdf, rate] for rate in rates} for tdf in tdfs}


if __name__ == "__main__":
    main()
