"""PADS'15, section 6: eight flows over a fat tree (k = 4) with ECMP, by strides of 1 and 4; figures 7 and 8.

python papers/pads15-ecmp/reproduce.py --out DIR [--rates 100Mbit,10Gbit] [--tdfs 1,4] [--drive wall]

It prints a table, and draws a figure for each rate.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pads15 import throughputs
from sweeping import run

from dilaton.report.style import COLOURS, applied, axes, below, from_zero

SENDERS = {1: (1, 3, 5, 7, 9, 11, 13, 15), 4: (1, 2, 3, 4, 9, 10, 11, 12)}
"""Eight hosts that send, by stride; no host both sends and receives. Stride 1 stays below an edge switch; stride
4 leads to the next pod, by four equal paths."""

FIGURES = {"100Mbit": "figure-7", "10Gbit": "figure-8"}

PUBLISHED = {
    ("100Mbit", "1", 1): 90,
    ("100Mbit", "1", 4): 30,
    ("100Mbit", "10", 1): 90,
    ("100Mbit", "10", 4): 30,
    ("10Gbit", "4", 1): 9000,
    ("10Gbit", "1", 1): 3800,
    ("10Gbit", "4", 4): 1800,
}
"""The mean throughput of a flow in Mbit/s, by rate, TDF and stride, as the text gives it: "below 30 Mbps", "above 9.0
Gbps", "barely 3.8 Gbps", and a drop of "about 80 %"; about 90 with 100 Mbit/s is read off figure 7,
which has no virtual time, as the paper's machine needed none."""

Flows = dict[tuple[str, int], list[float]]
"""The throughputs in Mbit/s of all flows of a rate, by TDF and stride."""


def lab(stride: int, rate: str, tdf: str, drive: str, seed: int, seconds: str, offload: bool) -> dict[str, Any]:
    """The lab: iperf3 from each sender to the host that is a stride further."""
    runs: list[dict[str, Any]] = []
    for sender in SENDERS[stride]:
        name = f"server{sender}"
        ready = {"tcp": "5201"}
        runs.append(
            {"on": f"h{sender + stride}", "name": name, "exec": "iperf3 -s", "ready": ready, "background": "true"}
        )
    for sender in SENDERS[stride]:
        command = f"iperf3 -c h{sender + stride} -t {seconds} -J"
        runs.append(
            {"on": f"h{sender}", "name": f"flow{sender}", "exec": command, "start": "1s", "after": f"server{sender}"}
        )
    tree = {"generate": "fat-tree", "k": "4", "rate": rate, "delay": "10us", "offload": str(offload).lower()}
    return {
        "name": "pads15-ecmp",
        "seed": str(seed),
        "time": {"drive": drive, "tdf": tdf},
        "topology": tree,
        "routing": "ecmp",
        "run": runs,
    }


def draw(found: Flows, rate: str) -> Figure:
    """Above, means of flows and their deviations, with the paper's; below, each flow, in the order of throughput."""
    figure, (means, each) = axes(2)
    unit, mbit_per_unit = ("Mbit/s", 1) if rate.endswith("Mbit") else ("Gbit/s", 1000)
    keys = list(found)
    for number, (tdf, stride) in enumerate(keys):
        flows = sorted(flow / mbit_per_unit for flow in found[tdf, stride])
        colour = COLOURS[number]
        means.bar(number, statistics.mean(flows), yerr=statistics.stdev(flows), color=colour, width=0.7, capsize=2)
        label = f"TDF {tdf}, stride {stride}"
        each.plot(range(1, len(flows) + 1), flows, "o-", color=colour, markersize=3, label=label)
        if published := PUBLISHED.get((rate, tdf, stride)):
            is_first = not any(text == "paper, mean" for text in means.get_legend_handles_labels()[1])
            means.plot(
                number, published / mbit_per_unit, "D", color="black", ms=4, label="paper, mean" if is_first else None
            )
    means.set(ylabel=f"mean of flows ({unit})")
    means.set_xticks(range(len(keys)), [f"TDF {tdf}\nstride {stride}" for tdf, stride in keys])
    each.set(ylabel=f"throughput ({unit})", xlabel="flow, by its throughput")
    for place in (means, each):
        from_zero(place)
    means_of, flows_of = means.get_legend_handles_labels(), each.get_legend_handles_labels()
    below(figure, means_of[0] + flows_of[0], means_of[1] + flows_of[1])
    return figure


def main() -> None:
    """Runs what is missing, prints the table, and draws the figures."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rates", default="100Mbit,10Gbit")
    parser.add_argument("--tdfs", default="1,4")
    parser.add_argument("--drive", default="wall", choices=["wall", "work", "event"])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each point, each with a seed of its own")
    parser.add_argument("--seconds", default="10", help="length of the flows, in virtual time")
    parser.add_argument("--offload", action="store_true", help="keep segmentation offload, as Mininet does")
    chosen = parser.parse_args()
    print("| rate | drive | TDF | stride | mean, Mbit/s | min | max | deviation | paper |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    suffix = "-offload" if chosen.offload else ""
    for rate in chosen.rates.split(","):
        found: Flows = {}
        for tdf in chosen.tdfs.split(","):
            for stride in SENDERS:
                flows = found.setdefault((tdf, stride), [])
                for seed in range(1, chosen.repeat + 1):
                    made = lab(stride, rate, tdf, chosen.drive, seed, chosen.seconds, chosen.offload)
                    out = chosen.out / f"{rate}-{chosen.drive}-{tdf}-{stride}-{seed}{suffix}"
                    flows += throughputs(run(made, out))
                mean, deviation = statistics.mean(flows), statistics.stdev(flows)
                row = f"{mean:.1f} | {min(flows):.1f} | {max(flows):.1f} | {deviation:.1f}"
                paper = PUBLISHED.get((rate, tdf, stride), "")
                print(f"| {rate} | {chosen.drive} | {tdf} | {stride} | {row} | {paper} |", flush=True)
        with applied():
            draw(found, rate).savefig(chosen.out / f"{FIGURES.get(rate, rate)}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
