"""NSDI'06, figure 6: the throughput of 50 flows at TDF 10, split over 1, 2, 5 and 10 guests."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import options, runs, sweep  # noqa: E402

from dilaton.measure.statistics import are_different, distance, summarise  # noqa: E402
from dilaton.report.comparison import TOLERANCE  # noqa: E402
from dilaton.report.style import COLOURS, WIDTH_IN, applied, unit  # noqa: E402

GUESTS = (1, 2, 5, 10)
RATES = ("500Mbit", "1Gbit", "2Gbit", "4Gbit")
RATES_GBIT_PER_S = (0.5, 1.0, 2.0, 4.0)

SENDERS, FLOWS = 10, 50
PORTS = range(5201, 5201 + SENDERS)

FROM_S = 2.0
"""From here on what is acknowledged counts."""

Key = tuple[int, str]
"""Guests, rate."""


def main() -> None:
    """Runs what is missing, then writes the figure and the table."""
    chosen = options(str(__doc__), repeat=1)
    flows: dict[Key, list[float]] = {}
    for guests in GUESTS:
        out, lab = chosen.out / f"guests-{guests}", chosen.out / f"guests-{guests}.yaml"
        lab.write_text(split(guests))
        values = [f"time.drive={chosen.drives}", f"links.0.rate={','.join(RATES)}"]
        sweep(lab, out, values, chosen.repeat, chosen.jobs)
        for row, run in runs(out):
            flows.setdefault((guests, str(row["links.0.rate"])), []).extend(throughputs(run.tcp))
    with applied():
        draw(flows).savefig(chosen.out / "figure-6.svg", metadata={"Date": None})
    text = table(flows)
    (chosen.out / "figure-6.md").write_text(text)
    print(text)


def split(guests: int) -> str:
    """The lab with its senders in so many guests."""
    text = (HERE / "lab.yaml").read_text()
    for number in range(SENDERS):
        sender = f"s{number}: {{guest: senders"
        text = text.replace(sender, f"{sender}{number * guests // SENDERS}")
    return text


def throughputs(tcp: Any) -> list[float]:
    """What each flow had acknowledged after slow start, bit/s."""
    data = tcp[tcp.node.str.startswith("s") & tcp.destination_port.isin(PORTS) & (tcp.t_s >= FROM_S)]
    of_flow = data.groupby(["node", "source_port"])
    acknowledged = (of_flow.bytes_acked.max() - of_flow.bytes_acked.min()).nlargest(FLOWS)
    # The connections by which iperf3 controls tests carry next to nothing.
    return [float(value) * 8 / float(data.t_s.max() - data.t_s.min()) for value in acknowledged]


def draw(flows: dict[Key, list[float]]) -> Figure:
    """Figure 6: mean and standard deviation of the flows, for each number of guests."""
    figure = Figure(figsize=(WIDTH_IN, 3.0))
    where = figure.subplots()
    for number, guests in enumerate(GUESTS):
        means = [np.mean(flows[guests, rate]) for rate in RATES]
        deviations = [np.std(flows[guests, rate], ddof=1) for rate in RATES]
        # Beside each other, as in the paper.
        places = [rate + 0.04 * (number - 1.5) for rate in RATES_GBIT_PER_S]
        style = {"color": COLOURS[number], "marker": "os^D"[number], "markersize": 3, "capsize": 2}
        label = f"{guests} guest{'s' if guests > 1 else ''}"
        where.errorbar(places, means, deviations, label=label, **style)
    where.set_xlabel("bottleneck (Gbit/s)")
    where.set_ylabel("throughput of a flow")
    where.set_ylim(bottom=0)
    unit(where.yaxis, "bit/s")
    where.legend()
    return figure


def table(flows: dict[Key, list[float]]) -> str:
    """Means and deviations for each number of guests, and whether they differ from those of one."""
    pairs = [(guests, rate) for rate in RATES for guests in GUESTS]
    distances = [distance(flows[GUESTS[0], rate], flows[guests, rate]) for guests, rate in pairs]
    lines = [
        "| bottleneck | guests | mean of a flow, Mbit/s | deviation | KS to one guest | p | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (guests, rate), apart, is_different in zip(pairs, distances, are_different(distances, TOLERANCE), strict=True):
        found = summarise(np.array(flows[guests, rate]) / 1e6)
        against = f"{apart.ks:.2f} | {apart.p:.2f} | {'different' if is_different else 'indistinguishable'}"
        shown = "| |" if guests == GUESTS[0] else against
        lines.append(f"| {rate} | {guests} | {found.mean:.2f} | {found.mean * found.cov:.2f} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
