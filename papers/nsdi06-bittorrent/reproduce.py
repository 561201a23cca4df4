"""Figure 12 of the NSDI'06 paper: what a swarm of BitTorrent carries together, until CPUs or the network are full.

python papers/nsdi06-bittorrent/reproduce.py --out DIR [--figures a,b,c] [--clients 40,80,120,160,200,240] [--repeat 10]

`--smaller 10` has a file of a tenth of the size.
"""

from __future__ import annotations

import argparse
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from swarm import files, make_torrent, programs, transfer_times_s  # noqa: E402
from sweeping import run  # noqa: E402

from dilaton.report.style import COLOURS, applied, axes, below, unit  # noqa: E402

MACHINES = 10
FILE_BYTES = 46_000_000
NETWORK_TDF = "50"
"""Of the guest that is the network in the middle, which is to limit nothing."""
DELAY = "1ms"
"""From a machine to the middle; what it was, the paper does not say."""


@dataclass(frozen=True)
class Setting:
    """One of the three parts of the figure: the dilation of the machines, and the rate of each one's link in Mbit/s."""

    tdf: int
    rate_mbit: int

    @property
    def label(self) -> str:
        """In the figure."""
        return f"TDF {self.tdf}, {MACHINES * self.rate_mbit / 1000:g} Gbit/s in all"


SETTINGS = {"a": Setting(1, 100), "b": Setting(10, 100), "c": Setting(10, 1000)}


def lab(setting: Setting, clients: int, torrent: Path) -> tuple[dict[str, Any], str]:
    """The lab, and the peer that has the file at the beginning."""
    peers = [f"c{number}" for number in range(clients + 1)]
    nodes: dict[str, Any] = {"core": {"kind": "switch", "guest": "core"}, "tracker": {"guest": "core"}}
    guests: dict[str, Any] = {"core": {"tdf": NETWORK_TDF}}
    links: list[dict[str, Any]] = [{"endpoints": ["tracker", "core"]}]
    for number in range(MACHINES):
        machine = f"machine{number}"
        on_it = peers[number::MACHINES]
        nodes[f"s{number}"] = {"kind": "switch", "guest": machine}
        nodes |= {peer: {"guest": machine} for peer in on_it}
        size_mib = torrent.with_name("data").stat().st_size / 2**20
        guests[machine] = {"tdf": str(setting.tdf), "memory": f"{128 + int((16 + 2 * size_mib) * len(on_it))}MiB"}
        links.append({"endpoints": [f"s{number}", "core"], "rate": f"{setting.rate_mbit}Mbit", "delay": DELAY})
        links += [{"endpoints": [peer, f"s{number}"]} for peer in on_it]
    return {
        "name": "nsdi06-bittorrent",
        "files": files(torrent),
        "guests": guests,
        "nodes": nodes,
        "links": links,
        "run": programs(peers, peers[0], torrent),
        "stop_after": "1h",
    }, peers[0]


def carried_mbit(file_bytes: int, times_s: list[float]) -> float:
    """The aggregate bandwidth as the paper reckons it: that many times the file over the mean time."""
    return len(times_s) * file_bytes * 8 / 1e6 / float(np.mean(times_s))


def draw(found: dict[Setting, dict[int, tuple[list[float], list[float]]]]) -> Figure:
    """Times and aggregate bandwidth over the number of clients, with their standard deviation over runs."""
    figure, (times, rates) = axes(2, sharex=True)
    for colour, (setting, points) in zip(COLOURS, found.items(), strict=False):
        for where, part in ((times, 0), (rates, 1)):
            means = [np.mean(point[part]) for point in points.values()]
            deviations = [np.std(point[part]) for point in points.values()]
            where.errorbar(
                list(points), means, deviations, marker="o", markersize=3, capsize=2, color=colour, label=setting.label
            )
    times.set_ylabel("mean time of a client (s)")
    rates.set_ylabel("carried by all")
    rates.set_xlabel("clients")
    unit(rates.yaxis, "bit/s")
    for where in (times, rates):
        where.set_ylim(bottom=0)
    below(figure, *times.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, prints the tables and draws the figure."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figures", default="a,b,c", help="parts of figure 12 (default %(default)s)")
    parser.add_argument("--clients", default="40,80,120,160,200,240")
    parser.add_argument("--repeat", type=int, default=10)
    parser.add_argument("--smaller", type=int, default=1)
    chosen = parser.parse_args()
    out = chosen.out.resolve()
    file_bytes = FILE_BYTES // chosen.smaller
    torrent = make_torrent(out / f"{file_bytes}B", file_bytes)
    head = ["figure 12", "clients", "mean time, s", "Mbit/s in all", "busiest machine", "host s", "verdict"]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
    found: dict[Setting, dict[int, tuple[list[float], list[float]]]] = {}
    for name in chosen.figures.split(","):
        setting = SETTINGS[name]
        points = found.setdefault(setting, {})
        for clients in map(int, chosen.clients.split(",")):
            times, rates, host_s, busy, levels = [], [], 0.0, 0.0, []
            for repeat in range(chosen.repeat):
                made, seeder = lab(setting, clients, torrent)
                place = out / f"{name}-{clients}-{repeat}"
                record = run(made | {"seed": repeat + 1}, place)
                each = list(transfer_times_s(record, place, seeder).values())
                times.append(float(np.mean(each)))
                rates.append(carried_mbit(file_bytes, each) * 1e6)
                host_s += record["time"]["host_s"]
                machines = [guest["fidelity"] for guest in record["guests"] if guest["name"] != "core"]
                busy = max(busy, *(guest["busy"] for guest in machines))
                levels.append(record["verdict"]["level"])
            points[clients] = times, rates
            row = [f"({name}) {setting.label}", f"{clients}", f"{np.mean(times):.2f}", f"{np.mean(rates) / 1e6:.0f}"]
            row += [f"{busy:.0%}", f"{host_s:.0f}", ", ".join(dict.fromkeys(levels))]
            print(f"| {' | '.join(row)} |", flush=True)
    with applied():
        draw({setting: points for setting, points in found.items() if points}).savefig(
            out / "figure-12.svg", metadata={"Date": None}
        )


if __name__ == "__main__":
    main()
