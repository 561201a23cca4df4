"""CNS'09, table 2 and figure 7: what timer interrupts cost a program that computes, and an ifb device its packets.

python papers/cns09-costs/reproduce.py --out DIR [--tdfs 1,10] [--rates 100,1000,10000] [--rounds 50] [--turns 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from numpy.typing import NDArray
from ruamel.yaml import YAML

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from sweeping import run  # noqa: E402

import dilaton  # noqa: E402
from dilaton.report.style import COLOURS, applied, axes, below  # noqa: E402

PUBLISHED = {100: "81.5 s", 1000: "81.7 s, 0.2 %", 10_000: "84.2 s, 3.3 %"}
"""Table 2: a calculation on FreeBSD, by the frequency of its timer."""

TURN_HOST_US = 100_000
"""Of the host's CPU for a calculation, whatever the TDF."""

ROUTERS = {"plain": "without ifb", "redirecting": "with ifb"}
PACKET_BYTES = 18
"""Data in the packets of the flood: the least that iperf3 takes which fills the smallest frame."""


def timers_lab(tdf: str, rates: list[int], rounds: int) -> dict[str, Any]:
    """A node that computes, with and without a thread beside it that wakes up at a rate."""
    command = f"./timers {TURN_HOST_US // int(tdf)} {rounds} 0 {' '.join(map(str, rates))}"
    return {
        "name": "cns09-timers",
        "time": {"tdf": tdf},
        "files": ".",
        "nodes": {"a": None},
        "run": [{"on": "a", "name": "timers", "exec": command}],
    }


def overheads(out: Path) -> dict[int, list[float]]:
    """By rate, how much longer the calculation took in each round than in its turn without a timer, as a ratio."""
    found: dict[int, list[float]] = {}
    without = 0
    for line in (out / "nodes/a/timers.stdout").read_text().splitlines():
        rate, took_ns = map(int, line.split())
        if rate == 0:
            without = took_ns
        else:
            found.setdefault(rate, []).append(took_ns / without - 1)
    return found


def ifb_lab(turns: int, seconds: int) -> dict[str, Any]:
    """The lab, in which the two rows take turns with floods of small packets at its end."""
    lab: dict[str, Any] = YAML(typ="safe").load(HERE / "lab.yaml")
    before = ["ping-1", "ping-2"]
    for turn in range(turns):
        for row in (1, 2):
            name = f"flood-{row}-{turn}"
            command = f"iperf3 -c b{row} -u -b 0 -l {PACKET_BYTES} -t {seconds} -J"
            lab["run"].append({"on": f"a{row}", "name": name, "exec": command, "after": before})
            before = [name]
    return lab


def traversals_us(out: Path, router: str) -> NDArray[np.float64]:
    """How long each request took from one interface of a router to the other, microseconds, in order."""
    loaded = dilaton.load(out)
    came, went = (loaded.packets(f"{router}:{interface}") for interface in ("eth0", "eth1"))
    came, went = came[came.direction == "in"], went[went.direction == "out"]
    if len(came) != len(went):
        sys.exit(f"{out}: {len(came)} packets came to {router}, {len(went)} left it")
    return np.sort((went.t_ns.to_numpy() - came.t_ns.to_numpy()) / 1e3)


def floods(out: Path, row: int) -> list[float]:
    """Microseconds for each packet of each flood over a row: all that the guest has to do for it."""
    found = []
    for path in sorted(out.glob(f"nodes/a{row}/flood-{row}-*.stdout")):
        whole = json.loads(path.read_text())["end"]["sum"]
        found.append(1e6 * whole["seconds"] / whole["packets"])
    return found


def draw(took: dict[str, NDArray[np.float64]]) -> Figure:
    """Figure 7."""
    figure, (where,) = axes()
    for number, (router, times) in enumerate(took.items()):
        where.step(times, np.arange(1, len(times) + 1) / len(times), color=COLOURS[number], label=ROUTERS[router])
    where.set_xlabel("from one interface of the router to the other (us)")
    where.set_ylabel("part of the packets")
    where.set_xlim(0, max(np.percentile(times, 99) for times in took.values()))
    where.set_ylim(0, 1)
    below(figure, *where.get_legend_handles_labels())
    return figure


def print_timers(chosen: argparse.Namespace) -> None:
    """Runs what is missing of table 2, and prints it."""
    subprocess.run(["cc", "-O1", "-pthread", "-o", chosen.out / "timers", HERE / "timers.c"], check=True)
    tdfs, rates = chosen.tdfs.split(","), [int(rate) for rate in chosen.rates.split(",")]
    found = {}
    for tdf in tdfs:
        out = chosen.out / f"timers-{tdf}"
        run(timers_lab(tdf, rates, chosen.rounds), out)
        found[tdf] = overheads(out)
    heads = [f"TDF {tdf}, {what}" for tdf in tdfs for what in ("median", "quartiles")]
    print(f"| timers a second | {' | '.join(heads)} | paper |\n{'| --- ' * (len(heads) + 2)}|")
    for rate in rates:
        cells = []
        for tdf in tdfs:
            low, middle, high = statistics.quantiles(found[tdf][rate], n=4)
            cells += [f"{100 * middle:.2f} %", f"{100 * low:.2f} to {100 * high:.2f} %"]
        print(f"| {rate} | {' | '.join(cells)} | {PUBLISHED.get(rate, '')} |", flush=True)


def print_ifb(chosen: argparse.Namespace) -> None:
    """Runs what is missing of figure 7, draws it and prints its table."""
    out = chosen.out / "ifb"
    run(ifb_lab(chosen.turns, chosen.seconds), out)
    took = {router: traversals_us(out, router) for router in ROUTERS}
    print("| router | traversal, us: median | quartiles | 99 % | us of CPU a packet of a flood | least to most |")
    print(f"{'| --- ' * 6}|")
    for row, (router, times) in enumerate(took.items(), start=1):
        low, middle, high, most = np.percentile(times, (25, 50, 75, 99))
        each = floods(out, row)
        cells = f"{middle:.1f} | {low:.1f} to {high:.1f} | {most:.1f} | {statistics.mean(each):.1f}"
        print(f"| {ROUTERS[router]} | {cells} | {min(each):.1f} to {max(each):.1f} |", flush=True)
    with applied():
        draw(took).savefig(chosen.out / "figure-7.svg", metadata={"Date": None})


def main() -> None:
    """Prints the tables, and draws the figure."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--tdfs", default="1,10")
    parser.add_argument("--rates", default="100,1000,10000", help="timers a second")
    parser.add_argument("--rounds", type=int, default=50, help="turns of each rate (default %(default)s)")
    parser.add_argument("--turns", type=int, default=3, help="floods over each router (default %(default)s)")
    parser.add_argument("--seconds", type=int, default=2, help="of a flood, in virtual time (default %(default)s)")
    chosen = parser.parse_args()
    chosen.out = chosen.out.resolve()
    chosen.out.mkdir(parents=True, exist_ok=True)
    print_timers(chosen)
    print()
    print_ifb(chosen)


if __name__ == "__main__":
    main()
