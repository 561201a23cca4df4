"""DieCast (NSDI'08), figures 11, 12 and 13: Isaac, three tiers on machines of their own or ten on one.

python papers/diecast-isaac/reproduce.py --out DIR [--figures 11,13] [--servers 4] [--clients 28] [--requests 20]

`--servers` is of each tier. Figure 12 comes of the runs of figure 11.
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

from diecast import ALONE, DATABASE_DISK, NETWORK_TDF, NO_SCALING, SCALED, STYLES, place, redis  # noqa: E402
from sweeping import run  # noqa: E402

from dilaton.measure.statistics import distance  # noqa: E402
from dilaton.report.style import COLOURS, applied, axes, below, from_zero  # noqa: E402

PROGRAM = HERE / "isaac.py"

EXPERIMENTS = {
    "failure": {},
    "stress DB": {"write_bytes": 100_000},
    "stress CPU": {"front_hashes": 500_000},
}
"""What differs from the first experiment, which is that of figures 11 and 12."""
FIGURES = {"11": ["failure"], "13": ["stress DB", "stress CPU"]}
TIERS = {"front_s": "front end", "application_s": "application", "database_s": "database"}


@dataclass(frozen=True)
class Case:
    """An experiment, and how its machines are placed."""

    experiment: str
    placed: str


def settings(case: Case, chosen: argparse.Namespace) -> dict[str, Any]:
    """What Isaac's programs are told, as the paper has it; the pause between requests it does not say."""
    names = {tier: [f"{tier[:1]}{number}" for number in range(chosen.servers)] for tier in ("front", "app", "db")}
    given = {"fronts": names["front"], "applications": names["app"], "databases": names["db"]}
    amounts = {"requests": chosen.requests, "pause_s": chosen.pause, "calls": 5, "reads": 10, "writes": 2}
    work = {"write_bytes": 1000, "application_hashes": 500, "front_hashes": 5000} | EXPERIMENTS[case.experiment]
    return given | amounts | work


def programs(case: Case, chosen: argparse.Namespace) -> list[dict[str, Any]]:
    """What runs: databases, then servers, then clients; in the first experiment half of the databases fail a while."""
    given = settings(case, chosen)

    def isaac(node: str, role: str, *more: str) -> dict[str, Any]:
        return {"on": node, "name": f"{role}-{node}", "exec": ["python3", str(PROGRAM), role, json.dumps(given), *more]}

    found = []
    for number, node in enumerate(given["databases"]):
        fails = case.experiment == "failure" and number % 2
        end = {"stop": f"{chosen.fail_at:g}s"} if fails else {}
        found += [redis(node, **end), isaac(node, "fill") | {"after": f"redis-{node}"}]
        if fails:
            found.append(redis(node, "again", start=f"{chosen.fail_at + chosen.fail_for:g}s"))
    for tier, role in (("applications", "application"), ("fronts", "front")):
        found += [isaac(node, role) | {"ready": {"tcp": "7000"}, "background": "true"} for node in given[tier]]
    there = [one["name"] for one in found if "start" not in one]
    for number in range(chosen.clients):
        found.append(isaac(f"c{number}", "client", str(number)) | {"after": there})
    return found


def lab(case: Case, chosen: argparse.Namespace) -> dict[str, Any]:
    """All machines on one switch, each in a guest of its own or among ten that are as different as can be."""
    given = settings(case, chosen)
    machines = [*given["databases"], *given["applications"], *given["fronts"]]
    machines += [f"c{number}" for number in range(chosen.clients)]
    guests, nodes = place(machines, case.placed)
    for database in given["databases"]:
        nodes[database]["disk"] = DATABASE_DISK
    return {
        "name": "diecast-isaac",
        "files": [str(HERE.parent)],
        "guests": {"network": {"tdf": NETWORK_TDF}} | guests,
        "nodes": {"core": {"kind": "switch", "guest": "network"}} | nodes,
        "links": [{"endpoints": [machine, "core"], "rate": "1Gbit", "delay": "500us"} for machine in machines],
        "run": programs(case, chosen),
        "stop_after": "1h",
    }


def measure(case: Case, chosen: argparse.Namespace) -> tuple[pd.DataFrame, dict[str, Any]]:
    """Runs a case unless that was done; the requests, in the order in which they were done, and the record."""
    out = chosen.out / f"{case.experiment} {case.placed}".replace(" ", "-")
    record = run(lab(case, chosen), out)
    lines = [line for file in sorted(out.glob("nodes/c*/client-*.stdout")) for line in file.read_text().splitlines()]
    requests = pd.DataFrame([json.loads(line) for line in lines]).sort_values("end_s", ignore_index=True)
    if len(requests) != chosen.clients * chosen.requests:
        sys.exit(f"{out}: {len(requests)} requests were completed")
    done_s = requests.end_s - requests.begin_s.min()
    return requests.assign(took_s=requests.end_s - requests.begin_s, done_s=done_s), record


def draw_done(found: dict[Case, pd.DataFrame], column: str, label: str, scale: str = "linear") -> Figure:
    """Which part of the requests was completed by a time, or within a duration."""
    figure, (where,) = axes()
    experiments = list(dict.fromkeys(case.experiment for case in found))
    for case, requests in found.items():
        times = np.sort(requests[column])
        colour = COLOURS[experiments.index(case.experiment)]
        parts = np.arange(1, len(times) + 1) / len(times)
        label_of = f"{case.experiment}: {case.placed}"
        where.step([times[0], *times], [0, *parts], STYLES[case.placed], where="post", color=colour, label=label_of)
    where.set_xlabel(label)
    where.set_ylabel("part of the requests completed")
    where.set_xscale(scale)
    if scale == "linear":
        where.set_xlim(left=0)
    where.set_ylim(0, 1)
    below(figure, *where.get_legend_handles_labels())
    return figure


def draw_tiers(found: dict[Case, pd.DataFrame]) -> Figure:
    """Which part of a request's time is spent in each tier."""
    figure, (where,) = axes()
    for number, (case, requests) in enumerate(found.items()):
        spent = requests[list(TIERS)].mean()
        heights = 100 * spent / spent.sum()
        width = 0.8 / len(found)
        where.bar(np.arange(len(TIERS)) + number * width, heights, width, color=COLOURS[number], label=case.placed)
    where.set_xticks(np.arange(len(TIERS)) + 0.4 - 0.4 / len(found), list(TIERS.values()))
    where.set_ylabel("of the time of a request (%)")
    from_zero(where)
    below(figure, *where.get_legend_handles_labels())
    return figure


def main() -> None:
    """Runs what is missing, prints the tables and draws the figures."""
    parser = argparse.ArgumentParser(description=str(__doc__), formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--figures", default=",".join(FIGURES), help="11 (with 12), 13 (default both)")
    parser.add_argument("--servers", type=int, default=4, help="of each tier (default %(default)s)")
    parser.add_argument("--clients", type=int, default=28, help="(default %(default)s)")
    parser.add_argument("--requests", type=int, default=20, help="of each client (default %(default)s)")
    parser.add_argument("--pause", type=float, default=20, help="mean seconds between them (default %(default)s)")
    parser.add_argument("--fail-at", type=float, default=200)
    parser.add_argument("--fail-for", type=float, default=60)
    chosen = parser.parse_args()
    chosen.out = chosen.out.resolve()
    head = ["case", "mean, s", "median", "95 %", *TIERS.values(), "distance to the baseline", "host s", "verdict"]
    for number, name in enumerate(chosen.figures.split(",")):
        print("\n" * min(number, 1) + f"| {' | '.join(head)} |\n|{' --- |' * len(head)}", flush=True)
        found: dict[Case, pd.DataFrame] = {}
        for experiment in FIGURES[name]:
            for placed in (ALONE, SCALED, NO_SCALING):
                case = Case(experiment, placed)
                found[case], record = measure(case, chosen)
                took = found[case].took_s
                baseline = found[Case(experiment, ALONE)].took_s
                apart = "" if placed == ALONE else f"{distance(list(baseline), list(took)).relative:.1%}"
                marks = [took.mean(), took.median(), took.quantile(0.95), *found[case][list(TIERS)].mean()]
                ends = f"{record['time']['host_s']:.0f} | {record['verdict']['level']}"
                cells = " | ".join(f"{value:.3f}" for value in marks)
                print(f"| {experiment}: {placed} | {cells} | {apart} | {ends} |", flush=True)
        with applied():
            if name == "11":
                figures = {
                    "11": draw_done(found, "done_s", "time since the first request (s)"),
                    "12": draw_tiers(found),
                }
            else:
                figures = {name: draw_done(found, "took_s", "time of a request (s)", "log")}
            for figure, drawn in figures.items():
                drawn.savefig(chosen.out / f"figure-{figure}.svg", metadata={"Date": None})


if __name__ == "__main__":
    main()
