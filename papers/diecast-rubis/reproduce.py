"""DieCast (NSDI'08), figures 8 and 9: an auction service after RUBiS, on machines of their own or ten on one.

python papers/diecast-rubis/reproduce.py --out DIR [--servers 8] [--sessions 1600,3200,4800,6400] [--users 100000]

`--servers` is of databases; there are twice as many web servers, and as many load generators as those. Figure 9 comes
of the runs of figure 8 with the most sessions.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

import diecast  # noqa: E402
from diecast import ALONE, NO_SCALING, SCALED, STYLES  # noqa: E402
from sweeping import run  # noqa: E402

import dilaton  # noqa: E402
from dilaton.measure.statistics import distance  # noqa: E402
from dilaton.report.style import COLOURS, applied, axes, below, from_zero  # noqa: E402

PROGRAM = HERE / "auction.py"
SITES = ("a", "b")
PAGE_HASHES = 5000
"""In place of what PHP would compute: some milliseconds of a core of ours."""
MEMORY_MB = 128
WINDOW_S = 5
"""Over which CPU times are averaged, which are counted in ticks of 10 ms."""
TIERS = {"d": "database", "w": "web server", "g": "load generator"}
"""By the first letter of its nodes."""


@dataclass(frozen=True)
class Case:
    """How many sessions all load generators have together, and how machines are placed."""

    sessions: int
    placed: str


def settings(case: Case, chosen: argparse.Namespace) -> dict[str, Any]:
    """What all programs are told. Every second web server of a site has its database at the other site."""
    pairs = 2 * chosen.servers
    databases = []
    for number in range(pairs):
        there, rank = number % 2, number // 2
        databases.append(f"d{2 * (rank // 2 % (chosen.servers // 2)) + (there + rank) % 2}")
    amounts = {"users": chosen.users, "sessions": case.sessions // pairs, "think_s": chosen.think}
    lengths = {"warm_s": chosen.warm, "run_s": chosen.length, "down_s": chosen.down}
    served = {"database": databases, "web": [f"w{number}" for number in range(pairs)]}
    return served | amounts | lengths | {"page_hashes": PAGE_HASHES}


def programs(case: Case, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """What runs: databases, which are filled, then web servers, then load generators."""
    given = settings(case, chosen)

    def auction(node: str, role: str, **when: Any) -> dict[str, Any]:
        command = ["python3", str(PROGRAM), role, json.dumps(given), node[1:]]
        return {"on": node, "name": f"{role}-{node}", "exec": command} | when

    found = []
    for number in range(chosen.servers):
        found += [diecast.redis(f"d{number}"), auction(f"d{number}", "fill", after=f"redis-d{number}")]
    serving = {"ready": {"tcp": "8080"}, "background": "true"}
    found += [auction(node, "web", **serving) for node in given["web"]]
    there = [one["name"] for one in found]
    return found + [auction(f"g{number}", "load", after=there) for number in range(len(given["web"]))]


def lab(case: Case, chosen: argparse.Namespace) -> dict[str, Any]:
    """Two sites, joined by 100 Mbit/s; at each all load generators share an access link of as much.

    Delays the paper does not say.
    """
    pairs = 2 * chosen.servers
    machines = [f"d{number}" for number in range(chosen.servers)]
    machines += [f"{kind}{number}" for kind in "wg" for number in range(pairs)]
    guests, nodes = diecast.place(machines, case.placed, MEMORY_MB)
    switches = [f"{kind}-{site}" for kind in ("site", "access") for site in SITES]
    links = [{"endpoints": ["site-a", "site-b"], "rate": "100Mbit", "delay": "5ms"}]
    links += [{"endpoints": [f"access-{site}", f"site-{site}"], "rate": "100Mbit", "delay": "1ms"} for site in SITES]
    for machine in machines:
        switch = f"{'access' if machine[0] == 'g' else 'site'}-{SITES[int(machine[1:]) % 2]}"
        links.append({"endpoints": [machine, switch], "rate": "1Gbit", "delay": "500us"})
        if machine[0] == "d":
            nodes[machine]["disk"] = diecast.DATABASE_DISK
    return {
        "name": "diecast-rubis",
        "files": [str(HERE.parent)],
        "guests": {"network": {"tdf": diecast.NETWORK_TDF}} | guests,
        "nodes": {switch: {"kind": "switch", "guest": "network"} for switch in switches} | nodes,
        "links": links,
        "run": programs(case, chosen),
        "measure": {"nodes": "1s", "interfaces": "1s"},
        "stop_after": "1h",
    }


def measure(case: Case, chosen: argparse.Namespace) -> tuple[pd.DataFrame, dict[str, Any], Path]:
    """Runs a case unless that was done; what was asked for while that is measured, the record, its place."""
    out = chosen.out / f"{case.sessions} {case.placed}".replace(" ", "-")
    record = run(lab(case, chosen), out)
    lines = [line.split() for file in sorted(out.glob("nodes/g*/load-*.stdout")) for line in file.open()]
    pages = pd.DataFrame(lines, columns=["begin_s", "took_s", "page", "well"])
    pages = pages.astype({"begin_s": float, "took_s": float, "well": int})
    end_s = pages.begin_s + pages.took_s
    return pages[(end_s >= chosen.warm) & (end_s < chosen.warm + chosen.length)], record, out


def draw_load(found: dict[Case, tuple[float, float]]) -> Figure:
    """Figure 8: throughput, and the mean time of a response, over the number of sessions."""
    figure, places = axes(2, sharex=True)
    labels = ("throughput (pages/s)", "mean response time (ms)")
    for column, (where, label) in enumerate(zip(places, labels, strict=True)):
        for number, (placed, style) in enumerate(STYLES.items()):
            values = {case.sessions: value[column] for case, value in found.items() if case.placed == placed}
            look = {"marker": "o", "markersize": 4, "color": COLOURS[number]}
            where.plot(list(values), list(values.values()), style, label=placed, **look)
        where.set_ylabel(label)
    from_zero(places[0])
    # Without scaling it is up to sixty times the others.
    places[1].set_yscale("log")
    places[1].set_xlabel("sessions")
    below(figure, *places[0].get_legend_handles_labels())
    return figure


def profiles(out: Path, placed: str) -> tuple[pd.DataFrame, pd.Series]:
    """By `tier` and `t_s` the means of `cpu`, as part of a machine, and `memory_mb`; and the bytes that each hop sent.

    The kernel of a guest that is dilated takes its CPU for as much faster, of which a machine has its part.
    """
    loaded = dilaton.load(out)
    nodes = loaded.nodes.assign(tier=loaded.nodes.node.str[0].map(TIERS), t_s=loaded.nodes.t_s.round())
    nodes = nodes[nodes.node.str[1:].str.isdigit() & (nodes.t_s % WINDOW_S == 0)]
    of_each = nodes.groupby("node")
    slower = 1.0 if placed == ALONE else diecast.SPARE * diecast.TOGETHER
    nodes["cpu"] = slower * of_each.cpu_ns.diff() / of_each.t_ns.diff()
    nodes["memory_mb"] = nodes.memory_bytes / 1e6
    sent = loaded.interfaces.groupby(["node", "interface"]).tx_bytes.max()
    return nodes.groupby(["tier", "t_s"])[["cpu", "memory_mb"]].mean(), sent


def draw_profiles(found: dict[str, tuple[pd.DataFrame, pd.Series]]) -> Figure:
    """Figure 9: CPU and memory of each tier over time, and what was sent over each hop."""
    figure, (cpu, memory, network) = axes(3)
    for placed, (rows, _) in found.items():
        for number, tier in enumerate(TIERS.values()):
            look = {"color": COLOURS[number], "label": f"{tier}: {placed}"}
            for where, column in ((cpu, "cpu"), (memory, "memory_mb")):
                where.plot(rows.loc[tier].index, rows.loc[tier][column], STYLES[placed], **look)
    order = found[ALONE][1].sort_values().index
    for placed, (_, sent) in found.items():
        network.plot(np.arange(1, len(order) + 1), sent[order] / 1e6, STYLES[placed], color=COLOURS[3])
    network.set_xlabel("hop, by what it carries in the baseline")
    for where, label in ((cpu, "CPU (part of the machine)"), (memory, "memory (MB)"), (network, "sent (MB)")):
        if where is not network:
            where.set_xlabel("virtual time (s)")
        where.set_ylabel(label)
        from_zero(where)
    below(figure, *cpu.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, prints the table and draws the figures."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--servers", type=int, default=8, help="databases, an even number (default %(default)s)")
    parser.add_argument("--sessions", default="1600,3200,4800,6400", help="(default %(default)s)")
    parser.add_argument("--cases", default=",".join(STYLES), help="(default %(default)s)")
    parser.add_argument("--users", type=int, default=100_000, help="and as many items (default %(default)s)")
    parser.add_argument("--think", type=float, default=7, help="mean seconds between pages (default %(default)s)")
    parser.add_argument("--warm", type=float, default=60, help="seconds (default %(default)s)")
    parser.add_argument("--length", type=float, default=600, help="seconds that are measured (default %(default)s)")
    parser.add_argument("--down", type=float, default=60, help="seconds (default %(default)s)")
    chosen = parser.parse_args()
    chosen.out = chosen.out.resolve()
    head = ["sessions", "case", "pages/s", "mean, ms", "median", "95 %", "failed"]
    head += ["throughput apart", "times apart", "host s", "verdict"]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
    found: dict[Case, tuple[float, float]] = {}
    profiled: dict[str, tuple[pd.DataFrame, pd.Series]] = {}
    for sessions in map(int, chosen.sessions.split(",")):
        baseline: list[float] = []
        for placed in chosen.cases.split(","):
            pages, record, out = measure(Case(sessions, placed), chosen)
            took, throughput = pages.took_s[pages.well == 1] * 1e3, float(pages.well.sum()) / chosen.length
            found[Case(sessions, placed)] = throughput, took.mean()
            if placed == ALONE:
                baseline = list(took)
            apart = " | "
            if baseline and placed != ALONE:
                fewer = throughput / found[Case(sessions, ALONE)][0] - 1
                apart = f"{fewer:+.1%} | {distance(baseline, list(took)).relative:.1%}"
            marks = [took.mean(), took.median(), took.quantile(0.95)]
            cells = " | ".join([f"{throughput:.1f}", *(f"{value:.1f}" for value in marks)])
            ends = f"{record['time']['host_s']:.0f} | {record['verdict']['level']}"
            print(f"| {sessions} | {placed} | {cells} | {sum(pages.well == 0)} | {apart} | {ends} |", flush=True)
            if placed != NO_SCALING:
                profiled[placed] = profiles(out, placed)
    with applied():
        draw_load(found).savefig(chosen.out / "figure-8.svg", metadata={"Date": None})
        if {ALONE, SCALED} <= set(profiled):
            draw_profiles(profiled).savefig(chosen.out / "figure-9.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
