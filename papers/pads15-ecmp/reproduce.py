"""PADS'15, section 6: eight flows over a fat tree (k = 4) with ECMP, by strides of 1 and 4; figures 7 and 8.

python papers/pads15-ecmp/reproduce.py --out DIR [--rates 100Mbit,10Gbit] [--tdfs 1,4] [--drive wall]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pads15 import throughputs
from sweeping import run

SENDERS = {1: (1, 3, 5, 7, 9, 11, 13, 15), 4: (1, 2, 3, 4, 9, 10, 11, 12)}
"""Eight hosts that send, by stride; no host both sends and receives. Stride 1 stays below an edge switch; stride
4 leads to the next pod, by four equal paths."""

PUBLISHED = {
    ("100Mbit", 1): "about 90",
    ("100Mbit", 4): "below 30",
    ("10Gbit", 1): "above 9000 at TDF 4, 3800 at TDF 1",
    ("10Gbit", 4): "80 % less",
}
"""The mean throughput of a flow, in Mbit/s, as the text gives it or the figures show it."""


def lab(stride: int, rate: str, tdf: str, drive: str, seed: int, seconds: str, mtu: int) -> dict[str, Any]:
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
    return {
        "name": "pads15-ecmp",
        "seed": str(seed),
        "time": {"drive": drive, "tdf": tdf},
        "topology": {"generate": "fat-tree", "k": "4", "rate": rate, "delay": "10us", "mtu": str(mtu)},
        "routing": "ecmp",
        "run": runs,
    }


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rates", default="100Mbit,10Gbit")
    parser.add_argument("--tdfs", default="1,4")
    parser.add_argument("--drive", default="wall", choices=["wall", "work"])
    parser.add_argument("--repeat", type=int, default=3, help="runs of each point, each with a seed of its own")
    parser.add_argument("--seconds", default="10", help="length of the flows, in virtual time")
    parser.add_argument("--mtu", type=int, default=1500)
    chosen = parser.parse_args()
    print("| rate | drive | TDF | stride | mean, Mbit/s | least | most | deviation | paper |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for rate in chosen.rates.split(","):
        for tdf in chosen.tdfs.split(","):
            for stride in SENDERS:
                flows: list[float] = []
                for seed in range(1, chosen.repeat + 1):
                    made = lab(stride, rate, tdf, chosen.drive, seed, chosen.seconds, chosen.mtu)
                    out = chosen.out / f"{rate}-{chosen.drive}-{tdf}-{stride}-{seed}"
                    flows += throughputs(run(made, out))
                mean, deviation = statistics.mean(flows), statistics.stdev(flows)
                row = f"{mean:.1f} | {min(flows):.1f} | {max(flows):.1f} | {deviation:.1f}"
                paper = PUBLISHED.get((rate, stride), "")
                print(f"| {rate} | {chosen.drive} | {tdf} | {stride} | {row} | {paper} |", flush=True)


if __name__ == "__main__":
    main()
