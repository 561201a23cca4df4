"""DieCast (NSDI'08), figures 5, 6 and 7: what BitTorrent's clients take, on machines of their own or many on few.

python papers/diecast-bittorrent/reproduce.py --out DIR [--figures 5,6,7] [--smaller 1] [--clients 40] [--repeat 1]

`--smaller 10` has files of a tenth of the size. The clients of repeats are taken together.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from diecast import NETWORK_TDF, NO_SCALING, SPARE, TOGETHER  # noqa: E402
from swarm import files, make_torrent, programs, transfer_times_s  # noqa: E402
from sweeping import run  # noqa: E402

from dilaton.measure.statistics import distance  # noqa: E402
from dilaton.report.style import COLOURS, HEIGHT_IN, applied, axes, below  # noqa: E402

ALONE = "1"
"""How many clients a machine has in the baseline."""


@dataclass(frozen=True)
class Case:
    """One experiment: how many clients, their file in MB, the rate of the dumbbell's middle, and how they are placed.

    `placed` is how many clients share a guest: `1` is the baseline; `no DieCast` is ten without any scaling.
    """

    clients: int
    size_mb: int
    middle: str
    placed: str

    @property
    def label(self) -> str:
        """In a figure."""
        how = {ALONE: "baseline", NO_SCALING: NO_SCALING}.get(self.placed, f"{self.placed} on one, TDF {self.placed}")
        return f"{self.clients} clients, {self.size_mb} MB, {self.middle}bit/s: {how}"


def figures(clients: int, smaller: int) -> dict[str, list[Case]]:
    """The paper's cases; which file figures 6 and 7 have it does not say."""
    small, large = 10 // smaller, 50 // smaller
    placements = (ALONE, "10", NO_SCALING)
    return {
        "5": [
            Case(clients, size, middle, how)
            for size, middle in ((small, "10M"), (large, "10M"), (large, "1G"))
            for how in placements
        ],
        "6": [Case(many * clients // 40, small, "10M", how) for many in (80, 200) for how in placements],
        "7": [Case(clients, small, "10M", how) for how in (ALONE, "10", "5", NO_SCALING)],
    }


def lab(case: Case, torrent: Path) -> tuple[dict[str, Any], str]:
    """The lab, and the client that has the file at the beginning."""
    peers = [f"c{number}" for number in range(case.clients)]
    seeder = peers[case.clients // 3]
    together = {ALONE: 1, NO_SCALING: TOGETHER}.get(case.placed) or int(case.placed)
    nodes: dict[str, Any] = {side: {"kind": "router", "guest": side} for side in ("left", "right")}
    nodes["tracker"] = {"guest": "left"}
    guests: dict[str, Any] = {side: {"tdf": NETWORK_TDF} for side in ("left", "right")}
    access = {"rate": "10Mbit", "delay": "5ms", "queue": {"limit": "100"}}
    links: list[dict[str, Any]] = [
        {"endpoints": ["left", "right"], **access, "rate": f"{case.middle}bit"},
        {"endpoints": ["tracker", "left"], "rate": "1Gbit", "delay": "1ms"},
    ]
    for number, peer in enumerate(peers):
        guest = f"machine{number // together}"
        nodes[peer] = {"guest": guest} | ({} if case.placed == NO_SCALING else {"cpu": "1"})
        guests[guest] = {"memory": f"{256 + 2 * case.size_mb * together}MiB"}
        if together > 1:
            guests[guest]["tdf"] = "1" if case.placed == NO_SCALING else f"{SPARE * together:g}"
        # Every second one on each side, so that a machine has clients of both.
        links.append({"endpoints": [peer, ("left", "right")[number % 2]], **access})
    return {
        "name": "diecast-bittorrent",
        "files": files(torrent),
        "guests": guests,
        "nodes": nodes,
        "links": links,
        "run": programs(peers, seeder, torrent),
        "stop_after": "1h",
    }, seeder


def measure(case: Case, out: Path, number: int) -> tuple[list[float], dict[str, Any]]:
    """Runs a case for that time unless it was done; the transfer times of its clients, and the record."""
    torrent = make_torrent(out / f"{case.size_mb}MB", case.size_mb * 1_000_000)
    made, seeder = lab(case, torrent)
    place = out / f"{case.clients}-{case.size_mb}MB-{case.middle}-{case.placed.replace(' ', '-')}-{number}"
    record = run(made, place)
    return list(transfer_times_s(record, place, seeder).values()), record


def draw(found: dict[Case, list[float]]) -> Figure:
    """Distributions of transfer times: the baseline solid, what is scaled dashed, what is not dotted."""
    experiments = list(dict.fromkeys((case.clients, case.size_mb, case.middle) for case in found))
    alone = len(experiments) == 1
    # Legends of several experiments take much of the height.
    figure, (where,) = axes(height_in=HEIGHT_IN + 0.3 * (len(experiments) - 1))
    for number, (case, times) in enumerate(found.items()):
        style = {ALONE: "-", NO_SCALING: ":"}.get(case.placed, "--")
        colour = COLOURS[number if alone else experiments.index((case.clients, case.size_mb, case.middle))]
        parts = np.arange(1, len(times) + 1) / len(times)
        where.step([0, *times], [0, *parts], style, where="post", color=colour, label=case.label)
    where.set_xlabel("time since the start (s)")
    where.set_ylabel("part of the clients")
    where.set_xlim(left=0)
    where.set_ylim(0, 1)
    below(figure, *where.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, prints the tables and draws the figures."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figures", default="5,6,7")
    parser.add_argument("--clients", type=int, default=40, help="of figures 5 and 7 (default %(default)s)")
    parser.add_argument("--smaller", type=int, default=1)
    parser.add_argument("--repeat", type=int, default=1, help="runs of each case (default %(default)s)")
    parser.add_argument("--cases", help="how many clients share a machine: `1`, the baseline, and others")
    chosen = parser.parse_args()
    out = chosen.out.resolve()
    head = ["case", "mean, s", "least", "median", "most", "means of runs"]
    head += ["distance to the baseline", "host s", "verdict"]
    for number, name in enumerate(chosen.figures.split(",")):
        print("\n" * min(number, 1) + f"| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
        found: dict[Case, list[float]] = {}
        baseline: list[float] = []
        wanted = chosen.cases.split(",") if chosen.cases else (ALONE, "10", "5", NO_SCALING)
        for case in figures(chosen.clients, chosen.smaller)[name]:
            if case.placed not in wanted:
                continue
            made = [measure(case, out, number) for number in range(chosen.repeat)]
            times = found[case] = sorted(time for one, _ in made for time in one)
            baseline = times if case.placed == ALONE else baseline
            apart = "" if case.placed == ALONE else f"{distance(baseline, times).relative:.1%}"
            marks = " | ".join(f"{value:.1f}" for value in (np.mean(times), times[0], np.median(times), times[-1]))
            means = ", ".join(f"{mean:.1f}" for mean in sorted(np.mean(one) for one, _ in made))
            host_s = sum(record["time"]["host_s"] for _, record in made)
            levels = Counter(record["verdict"]["level"] for _, record in made)
            verdict = ", ".join(f"{count} {level}" for level, count in levels.items())
            print(f"| {case.label} | {marks} | {means} | {apart} | {host_s:.0f} | {verdict} |", flush=True)
        with applied():
            draw(found).savefig(out / f"figure-{name}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
