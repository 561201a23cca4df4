"""NSDI'06, table 3: 50 TCP flows on four generations of hardware, each of which looks like the fastest when dilated.

python papers/nsdi06-table3/reproduce.py --out DIR [--seconds 80] [--flows 50] [--repeat 1] [--smaller 1]

`--smaller 10` divides the network's rate and all CPUs by ten, for a small version that shows the same.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import run  # noqa: E402

FASTEST_MHZ = 2600
"""What a core of this host stands for."""
RATE_MBIT = 500
DELAY = "40ms"
"""One way: a round trip of 80 ms."""


@dataclass(frozen=True)
class Hardware:
    """A row of the table: its processor, its TDF, and mean and deviation of the paper's flows in Mbit/s.

    `shared`: both machines are in one guest, each with a share of its CPU, as the paper's slowest processor is a share
    of one that is ten times as fast; else each has a guest, whose CPU is as fast.
    """

    label: str
    mhz: int
    tdf: int
    published: str
    shared: bool = False

    def speed(self, smaller: int) -> str:
        """Of its processor in virtual time, in cores of this host."""
        return f"{self.mhz * self.tdf}/{FASTEST_MHZ * smaller}"


ROWS = [
    Hardware("2.6 GHz", 2600, 1, "9.39 ± 1.91"),
    Hardware("1.13 GHz", 1130, 2, "9.57 ± 1.76"),
    Hardware("500 MHz", 500, 5, "9.70 ± 2.04"),
    Hardware("500 MHz scaled down to 50 MHz", 50, 50, "9.25 ± 2.20", shared=True),
]


def lab(hardware: Hardware, chosen: argparse.Namespace) -> dict[str, Any]:
    """Two machines of that hardware, and the network that all of them see."""
    node = {"cpu": hardware.speed(chosen.smaller)}
    rate = f"{RATE_MBIT / chosen.smaller:g}Mbit"
    server = {"on": "receiver", "name": "server", "exec": "iperf3 -s", "background": True, "ready": {"tcp": "5201"}}
    command = f"iperf3 -c receiver -P {chosen.flows} -O 3 -t {chosen.seconds} -J"
    return {
        "name": "nsdi06-table3",
        "time": {"tdf": str(hardware.tdf)},
        "guests": "1" if hardware.shared else "per-node",
        "nodes": {"sender": node, "receiver": node},
        "links": [{"endpoints": ["sender", "receiver"], "rate": rate, "delay": DELAY, "queue": {"limit": "1bdp"}}],
        "run": [server, {"on": "sender", "name": "flows", "exec": command, "after": "server"}],
    }


def throughputs(out: Path) -> list[float]:
    """Of each flow, as its receiver saw it, in Mbit/s."""
    text = (out / "nodes" / "sender" / "flows.stdout").read_text()
    return [float(stream["receiver"]["bits_per_second"]) / 1e6 for stream in json.loads(text)["end"]["streams"]]


def main() -> None:
    """Runs what is missing, and prints the table."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seconds", type=int, default=80, help="that are measured (default %(default)s)")
    parser.add_argument("--flows", type=int, default=50)
    parser.add_argument("--repeat", type=int, default=1, help="runs of each row (default %(default)s)")
    parser.add_argument("--smaller", type=int, default=1)
    chosen = parser.parse_args()
    head = ["hardware", "TDF", "CPU, cores of this host", "mean of a flow, Mbit/s", "deviation", "verdict", "paper"]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    for hardware in ROWS:
        records, flows = [], []
        for number in range(chosen.repeat):
            out = chosen.out / f"{hardware.mhz}MHz-{number}"
            records.append(run(lab(hardware, chosen), out))
            flows += throughputs(out)
        verdicts = ", ".join(dict.fromkeys(record["verdict"]["level"] for record in records))
        speed = hardware.mhz * hardware.tdf / FASTEST_MHZ / chosen.smaller
        measured = f"{statistics.mean(flows):.2f} | {statistics.stdev(flows):.2f} | {verdicts}"
        print(f"| {hardware.label} | {hardware.tdf} | {speed:.3g} | {measured} | {hardware.published} |", flush=True)


if __name__ == "__main__":
    main()
