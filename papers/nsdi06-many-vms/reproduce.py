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

from dilaton.lab.text.units import parse_rate  # noqa: E402
from dilaton.measure.statistics import are_different, distance, summarise  # noqa: E402
from dilaton.report.comparison import TOLERANCE  # noqa: E402
from dilaton.report.style import COLOURS, WIDTH_IN, applied, unit  # noqa: E402

GUESTS = "1,2,5,10"
RATES = "500Mbit,1Gbit,2Gbit,4Gbit"

SETTINGS = {
    "50Mbit": ["links.0.queue.limit=333", "stop_after=82s"],
    "2Gbit": ["guests.receivers.tdf=40"],
    "4Gbit": ["guests.receivers.tdf=40", "stop_after=3s"],
}
"""Of a rate, where the lab's own do not fit. At 50 Mbit/s, which the figure does not have, the paper's 1,000 round
trips can be afforded. The guest with the bottleneck and the receiver takes tens of microseconds of a core for a packet,
and at 4 Gbit/s there is one every 3 us."""

MEMORY_MB = 2_000
"""Of the senders' guests in sum: TCP's buffers may take a third of it, and are as large over any number of them."""

SENDERS, FLOWS = 10, 50
PORTS = range(5201, 5201 + SENDERS)

FROM_S = 2.0
"""From here on what is acknowledged counts."""

Flows = dict[tuple[str, int], list[float]]
"""Throughputs by the rate of the bottleneck and the number of guests, bit/s."""


def main() -> None:
    """Runs what is missing, then writes the figure and the table."""
    chosen = options(str(__doc__), repeat=1, rates=RATES, guests=GUESTS)
    flows: Flows = {}
    for rate in chosen.rates.split(","):
        for guests in map(int, chosen.guests.split(",")):
            out, lab = chosen.out / f"{rate}-{guests}", chosen.out / f"guests-{guests}.yaml"
            lab.write_text(split(guests))
            values = [f"time.drive={chosen.drives}", f"links.0.rate={rate}", *SETTINGS.get(rate, [])]
            sweep(lab, out, values, chosen.repeat, chosen.jobs)
            flows[rate, guests] = [flow for _, run in runs(out) for flow in throughputs(run.tcp)]
    with applied():
        draw(flows).savefig(chosen.out / "figure-6.svg", metadata={"Date": None})
    text = table(flows)
    (chosen.out / "figure-6.md").write_text(text)
    print(text)


def split(guests: int) -> str:
    """The lab with its senders in so many guests."""
    text = (HERE / "lab.yaml").read_text()
    memory = ", ".join(f"senders{number}: {{memory: {MEMORY_MB // guests}MB}}" for number in range(guests))
    text = text.replace("guests: {", f"guests: {{{memory}, ")
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


def draw(flows: Flows) -> Figure:
    """Figure 6: mean and standard deviation of the flows, for each number of guests."""
    figure = Figure(figsize=(WIDTH_IN, 3.0))
    where = figure.subplots()
    rates = sorted({parse_rate(rate) for rate, _ in flows})
    where.plot([rate / 1e9 for rate in rates], [rate / FLOWS for rate in rates], color="0.6", label="fair share")
    for number, guests in enumerate(sorted({guests for _, guests in flows})):
        found = [(rate, of_rate) for (rate, of_guests), of_rate in flows.items() if of_guests == guests]
        means = [np.mean(of_rate) for _, of_rate in found]
        deviations = [np.std(of_rate, ddof=1) for _, of_rate in found]
        # Beside each other, as in the paper.
        places = [parse_rate(rate) / 1e9 + 0.04 * (number - 1.5) for rate, _ in found]
        style = {"color": COLOURS[number], "marker": "os^D"[number], "markersize": 3, "capsize": 2}
        label = f"{guests} guest{'s' if guests > 1 else ''}"
        where.errorbar(places, means, deviations, label=label, **style)
    where.set_xlabel("bottleneck (Gbit/s)")
    where.set_ylabel("throughput of a flow")
    where.set_ylim(bottom=0)
    unit(where.yaxis, "bit/s")
    where.legend()
    return figure


def table(flows: Flows) -> str:
    """Means and deviations for each number of guests, and whether they differ from those of the smallest one."""
    least = min(guests for _, guests in flows)
    distances = [distance(flows[rate, least], of_rate) for (rate, _), of_rate in flows.items()]
    lines = [
        f"| bottleneck | guests | mean of a flow, Mbit/s | deviation | KS to {least} | p | verdict |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for (rate, guests), apart, is_different in zip(flows, distances, are_different(distances, TOLERANCE), strict=True):
        found = summarise(np.array(flows[rate, guests]) / 1e6)
        against = f"{apart.ks:.2f} | {apart.p:.2f} | {'different' if is_different else 'indistinguishable'}"
        shown = "| |" if guests == least else against
        lines.append(f"| {rate} | {guests} | {found.mean:.2f} | {found.mean * found.cov:.2f} | {shown} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
