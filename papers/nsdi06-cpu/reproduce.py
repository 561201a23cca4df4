"""NSDI'06, figures 7, 8 and 11: 50 TCP flows between hosts, one of which has less CPU, over the network's bandwidth.

python papers/nsdi06-cpu/reproduce.py --out DIR [--figures 7,8,11] [--rates 100,200,400,800] [--seconds 2] [--flows 50]

`--smaller 10` divides all rates and CPUs by ten, for a small version that shows the same.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import run  # noqa: E402

from dilaton.report.style import COLOURS, applied, axes, below, from_zero, unit  # noqa: E402

UNRESTRICTED = 10
"""Cores of the other host. One is not enough: at TDF 1 a guest forwards little more than a gigabit a second."""
DELAY = "40ms"
"""One way: a round trip of 80 ms."""


@dataclass(frozen=True)
class Line:
    """A line of a figure: which host is restricted, the TDF, and its share of the CPU in percent."""

    restricted: str
    tdf: int
    percent: int

    @property
    def label(self) -> str:
        """As the paper has it."""
        return f"{self.percent} % of the CPU, TDF {self.tdf}"


FIGURES = {
    "7": [Line("sender", 1, 50), Line("sender", 10, 5), Line("sender", 10, 100)],
    "8": [Line("receiver", 1, 50), Line("receiver", 10, 5), Line("receiver", 10, 100)],
    "11": [Line("sender", 10, percent) for percent in (5, 10, 20, 40)],
}


def lab(line: Line, rate_mbit: int, chosen: argparse.Namespace) -> dict[str, Any]:
    """Two machines and a link: a CPU of `percent` of a host that is as fast as the TDF makes it."""
    nodes = {name: {"cpu": f"{UNRESTRICTED}/{chosen.smaller}"} for name in ("sender", "receiver")}
    nodes[line.restricted]["cpu"] = f"{line.percent * line.tdf}/{100 * chosen.smaller}"
    return {
        "name": "nsdi06-cpu",
        "time": {"tdf": str(line.tdf)},
        "guests": "per-node",
        "nodes": nodes,
        "links": [
            {
                "endpoints": ["sender", "receiver"],
                "rate": f"{rate_mbit / chosen.smaller:g}Mbit",
                "delay": DELAY,
                "queue": {"limit": "1bdp"},
            }
        ],
        "run": [
            {"on": "receiver", "name": "server", "exec": "iperf3 -s", "background": True, "ready": {"tcp": "5201"}},
            {
                "on": "sender",
                "name": "flows",
                "exec": f"iperf3 -c receiver -P {chosen.flows} -O 3 -t {chosen.seconds} -J",
                "after": "server",
            },
        ],
    }


def throughputs(out: Path) -> list[float]:
    """Of each flow, as its receiver saw it, bit/s."""
    text = (out / "nodes" / "sender" / "flows.stdout").read_text()
    return [float(stream["receiver"]["bits_per_second"]) for stream in json.loads(text)["end"]["streams"]]


def draw(found: dict[tuple[Line, int], list[float]], lines: list[Line], rates: list[int]) -> Figure:
    """A figure: mean and standard deviation of the flows."""
    figure, (where,) = axes()
    for number, line in enumerate(lines):
        flows = [found[line, rate] for rate in rates]
        means, deviations = [np.mean(each) for each in flows], [np.std(each, ddof=1) for each in flows]
        # Beside each other, as in the paper.
        places = [rate + (number - 1) * rates[-1] / 150 for rate in rates]
        style = {"color": COLOURS[number], "marker": "os^v"[number], "markersize": 4, "capsize": 2}
        where.errorbar(places, means, deviations, label=line.label, **style)
    where.set_xlabel("bandwidth (Mbit/s)")
    where.set_ylabel("throughput of a flow")
    from_zero(where)
    unit(where.yaxis, "bit/s")
    below(figure, *where.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, draws the figures and prints their tables."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figures", default="7,8,11")
    parser.add_argument("--rates", default="100,200,400,800", help="Mbit/s; five times as much in figure 11")
    parser.add_argument("--seconds", type=int, default=2, help="that are measured (default %(default)s)")
    parser.add_argument("--flows", type=int, default=50)
    parser.add_argument("--smaller", type=int, default=1)
    chosen = parser.parse_args()
    for number, name in enumerate(chosen.figures.split(",")):
        lines = FIGURES[name]
        rates = [int(rate) * (5 if name == "11" else 1) for rate in chosen.rates.split(",")]
        found: dict[tuple[Line, int], list[float]] = {}
        print("\n" * min(number, 1), end="")
        print(f"| Mbit/s | {' | '.join(line.label for line in lines)} |\n{'| --- ' * (len(lines) + 1)}|")
        for rate in rates:
            for line in lines:
                out = chosen.out / f"{line.restricted}-{line.tdf}-{line.percent}-{rate}"
                run(lab(line, rate, chosen), out)
                found[line, rate] = throughputs(out)
            flows = [found[line, rate] for line in lines]
            cells = (f"{np.mean(each) / 1e6:.2f} ± {np.std(each, ddof=1) / 1e6:.2f}" for each in flows)
            print(f"| {rate} | {' | '.join(cells)} |", flush=True)
        with applied():
            draw(found, lines, rates).savefig(chosen.out / f"figure-{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
