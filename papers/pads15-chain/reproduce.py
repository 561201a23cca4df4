"""PADS'15, section 5: one TCP flow through a row of Open vSwitches under an OpenFlow controller; figures 3 and 4.

python papers/pads15-chain/reproduce.py --out DIR [--switches 40] [--rates 4Gbit,8Gbit,10Gbit] [--tdfs 1,4]
"""

from __future__ import annotations

import argparse
import statistics
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pads15 import chain, throughputs
from sweeping import run

PUBLISHED = {
    (40, "4Gbit"): "about 4000 at TDF 1 and 4",
    (40, "8Gbit"): "TDF 4 as a testbed, TDF 1 28 % less",
    (40, "10Gbit"): "TDF 4 as a testbed, TDF 1 39 % less (6100)",
}
"""The throughput in Mbit/s, as the text gives it. For other rows of 4 Gbit/s: 3800 at TDF 4; TDF 1 loses 41 % with 60
switches, 65 % with 80 and 83 % with 100."""


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--switches", default="40", help="how many, or several numbers (default %(default)s)")
    parser.add_argument("--rates", default="4Gbit,8Gbit,10Gbit")
    parser.add_argument("--tdfs", default="1,4")
    parser.add_argument("--drives", default="wall,work")
    parser.add_argument("--repeat", type=int, default=1)
    parser.add_argument("--seconds", default="25", help="length of the flow, in virtual time")
    parser.add_argument("--mtu", type=int, default=1500)
    chosen = parser.parse_args()
    print("| switches | rate | drive | TDF | Mbit/s | host s | paper |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for count in map(int, chosen.switches.split(",")):
        for rate in chosen.rates.split(","):
            for drive in chosen.drives.split(","):
                for tdf in chosen.tdfs.split(","):
                    made = chain(count, rate, tdf, drive, chosen.seconds, chosen.mtu)
                    place = f"{count}-{rate}-{drive}-{tdf}"
                    records = [run(made, chosen.out / f"{place}-{number}") for number in range(chosen.repeat)]
                    mean = statistics.mean(throughputs(record)[0] for record in records)
                    host_s = statistics.mean(record["time"]["host_s"] for record in records)
                    paper = PUBLISHED.get((count, rate), "")
                    print(f"| {count} | {rate} | {drive} | {tdf} | {mean:.0f} | {host_s:.0f} | {paper} |", flush=True)


if __name__ == "__main__":
    main()
