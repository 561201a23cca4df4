"""PADS'15, section 5: five TCP flows over parts of a row of switches, one, then all, then one again; figure 5, table 1.

python papers/pads15-adaptive/reproduce.py --out DIR [--hosts 100] [--scale 1] [--guests 1] [--cpu 0.1] [--cases …]

It prints the table as cases end, and draws figure 5 of those that there are.
"""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from pads15 import MEGA
from sweeping import has_finished, run

import dilaton
from dilaton.report.style import COLOURS, applied, axes, below, from_zero

FLOWS = 5
PHASES_S = (0, 50, 150, 200)
"""The first flow is there from begin to end, the others between the second and the third."""

TDF_MAX = {"work": "100", "wall": "20"}
"""The paper's largest was 11. On the wall drive a TDF to which a stall of the host drives it up is all host time."""

RATE_MBIT_PER_S = 100
GOODPUT = 1448 / 1514
"""Data in a full frame."""

CASES = "wall-1,work-lateness,work-pads15,work-peak,wall-lateness,wall-pads15,wall-peak"
"""A drive, and a policy, a TDF, or the highest TDF that `lateness` came to on that drive."""

PUBLISHED = {
    "wall-1": "240.730 s, TDF 1, ratio 1.000",
    "wall-pads15": "1332.242 s, TDF 5.900, ratio 5.534",
    "wall-peak": "2434.910 s, TDF 11.000, ratio 10.115",
}
"""Table 1: running time, average TDF, and running time relative to that without virtual time."""


def lab(phases_s: Sequence[float], drive: str, how: str, chosen: argparse.Namespace) -> dict[str, Any]:
    """The lab: a row of switches with a host at each, two at the last one.

    Args:
        phases_s: The instants between which the phases are.
        drive: Of the clock.
        how: A TDF, or the policy by which it follows the load.
        chosen: The command line.
    """
    hosts, cpu = chosen.hosts, chosen.cpu
    nodes = {f"h{number}": {"kind": "host"} for number in range(1, hosts + 1)}
    nodes |= {f"s{number}": {"kind": "switch"} for number in range(1, hosts)}
    pairs = [(f"h{number}", f"s{min(number, hosts - 1)}") for number in range(1, hosts + 1)]
    pairs += pairwise(f"s{number}" for number in range(1, hosts))
    links = [{"endpoints": list(pair), "rate": f"{RATE_MBIT_PER_S}Mbit", "delay": "1ms"} for pair in pairs]
    processes: list[dict[str, Any]] = []
    for flow in range(FLOWS):
        first, last = flow * hosts // FLOWS + 1, (flow + 1) * hosts // FLOWS
        for end in (first, last) if cpu else ():
            nodes[f"h{end}"]["cpu"] = cpu
        begin_s, end_s = (phases_s[0], phases_s[3]) if flow == 0 else (phases_s[1], phases_s[2])
        server = {"on": f"h{first}", "name": f"source{flow}", "exec": "iperf3 -s", "ready": {"tcp": "5201"}}
        # In reverse the client is the one that receives, and knows what has arrived.
        command = f"iperf3 -c h{first} -R -t {end_s - begin_s:g} -i 1 -J"
        client = {"on": f"h{last}", "name": f"flow{flow}", "exec": command, "start": f"{begin_s:g}s"}
        processes += [server | {"background": "true"}, client | {"after": [f"source{flow}"]}]
    time = {"drive": drive, "tdf": how}
    if not re.fullmatch(r"[\d.]+", how):
        # The paper's TDF does not fall below 1.
        auto = {"min": "1", "start": "1", "max": TDF_MAX[drive], "policy": how, "target": chosen.target}
        time = {"drive": drive, "tdf": "auto", "auto": auto}
    cut = {"guests": str(chosen.guests)} if chosen.guests > 1 else {}
    return {"name": "pads15-adaptive", "time": time, "nodes": nodes, "links": links, "run": processes} | cut


def worst_mbit_per_s(record: dict[str, Any], phases_s: Sequence[float]) -> list[float]:
    """For each phase, the least mean rate of a flow after its first second there, with headers, in Mbit/s."""
    processes = {process["name"]: process for process in record["processes"]}
    found: list[list[float]] = [[] for _ in range(3)]
    for flow in range(FLOWS):
        start_s = processes[f"flow{flow}"]["start_s"]
        intervals = processes[f"flow{flow}"]["result"]["intervals"]
        for phase, (begin_s, end_s) in enumerate(pairwise(phases_s)):
            rates = [
                part["throughput"] / GOODPUT / MEGA
                for part in intervals
                if begin_s + 1.25 <= start_s + (part["start_s"] + part["end_s"]) / 2 <= end_s
            ]
            if rates:
                found[phase].append(sum(rates) / len(rates))
    return [min(rates, default=math.nan) for rates in found]


def broken_off(record: dict[str, Any]) -> list[str]:
    """The flows that did not come to their end, and so say nothing of their rates."""
    flows = [process for process in record["processes"] if process["name"].startswith("flow")]
    return [flow["name"] for flow in flows if not (flow["result"] or {}).get("intervals")]


def core_s(record: dict[str, Any], out: Path) -> float:
    """Host seconds of CPU that the guest used, whatever else the host had to do."""
    if record["fidelity"]["adaptation"]:
        epochs = dilaton.load(out).epochs
        return float(((epochs.end_s - epochs.begin_s) * epochs.busy * epochs.tdf).sum())
    return float(record["fidelity"]["busy"] * record["time"]["tdf"] * record["time"]["virtual_s"])


def row(case: str, record: dict[str, Any], out: Path, phases_s: Sequence[float]) -> str:
    """A line of the table."""
    time, fidelity = record["time"], record["fidelity"]
    adaptation = fidelity["adaptation"]
    mean = adaptation["tdf_mean"] if adaptation else time["tdf"]
    share = f"{adaptation['out_of_bounds_share']:.1%}" if adaptation else ""
    if broken := broken_off(record):
        flows = f"{', '.join(broken)} broke off"
    else:
        flows = " / ".join(f"{rate:.1f}" for rate in worst_mbit_per_s(record, phases_s))
    ratio, work = time["host_s"] / time["virtual_s"], core_s(record, out) / time["virtual_s"]
    cells = [case, f"{time['host_s']:.0f}", f"{mean:.3g}", f"{ratio:.2f}", f"{work:.2f}", flows, share]
    cells.append(record["verdict"]["level"])
    return f"| {' | '.join([*cells, PUBLISHED.get(case, '')])} |"


def meant(case: str, out: Path) -> tuple[str, str]:
    """The drive of a case, and its TDF or policy."""
    drive, how = case.split("-")
    if how != "peak":
        return drive, how
    adaptive = out / f"{drive}-lateness"
    if not has_finished(adaptive):
        sys.exit(f"{case}: takes its TDF from {adaptive.name}, which has not come to its end")
    trace = json.loads((adaptive / "run.json").read_text())["fidelity"]["tdf_trace"]
    return drive, f"{max(change['tdf'] or 0 for change in trace):g}"


def draw(records: dict[str, dict[str, Any]]) -> Figure:
    """Figure 5: the throughputs of the flows in each case, and below them how the TDF went."""
    figure, places = axes(len(records) + 1, height_in=1.5, sharex=True)
    for place, (case, record) in zip(places, records.items(), strict=False):
        for process in record["processes"]:
            if not process["name"].startswith("flow") or not (process["result"] or {}).get("intervals"):
                continue
            parts = process["result"]["intervals"]
            times = [process["start_s"] + (part["start_s"] + part["end_s"]) / 2 for part in parts]
            number = int(process["name"].removeprefix("flow"))
            rates = [part["throughput"] / GOODPUT / MEGA for part in parts]
            place.plot(times, rates, color=COLOURS[number], label=f"flow {number + 1}", linewidth=0.7)
        place.set(title=case, ylabel="Mbit/s")
        from_zero(place)
    for number, (case, record) in enumerate(records.items()):
        trace = record["fidelity"]["tdf_trace"]
        times = [change["virtual_s"] for change in trace] + [record["time"]["virtual_s"]]
        tdfs = [change["tdf"] or 0 for change in trace]
        places[-1].step(times, [*tdfs, tdfs[-1]], where="post", color=COLOURS[FLOWS + number], label=f"TDF, {case}")
    places[-1].set(ylabel="TDF", xlabel="virtual time (s)")
    from_zero(places[-1])
    flows, clocks = places[0].get_legend_handles_labels(), places[-1].get_legend_handles_labels()
    below(figure, flows[0] + clocks[0], flows[1] + clocks[1])
    return figure


def main() -> None:
    """Runs what is missing, prints the table and draws the figure; what fails is left out of both, and told."""
    parser = argparse.ArgumentParser(description=str(__doc__))
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--hosts", type=int, default=100, help="a multiple of 5 (default %(default)s)")
    parser.add_argument("--scale", type=float, default=1.0, help="of the 200 virtual seconds (default %(default)s)")
    parser.add_argument("--guests", type=int, default=1, help="at most one for each core (default %(default)s)")
    parser.add_argument("--cpu", help="of the hosts at the ends of flows, in cores of this machine")
    parser.add_argument("--target", default="80%", help="busy fraction that policies aim at (default %(default)s)")
    parser.add_argument("--cases", default=CASES)
    chosen = parser.parse_args()
    phases_s = [chosen.scale * instant for instant in PHASES_S]
    head = ["case", "host s", "mean TDF", "host s per virtual s", "core s per virtual s", "worst flow, Mbit/s"]
    head += ["out of bounds", "verdict", "paper"]
    print(f"| {' | '.join(head)} |\n|{' --- |' * len(head)}")
    failed = False
    records: dict[str, dict[str, Any]] = {}
    for case in chosen.cases.split(","):
        out = chosen.out / case
        try:
            drive, how = meant(case, chosen.out)
            if not has_finished(out):
                what = f"{phases_s[-1]:g} virtual seconds on the {drive} drive, TDF: {how}"
                print(f"{case}: {what}; dilaton top {out} shows how far it is", file=sys.stderr, flush=True)
            record = records[case] = run(lab(phases_s, drive, how, chosen), out)
        except SystemExit as failure:
            print(failure, file=sys.stderr, flush=True)
            failed = True
        else:
            print(row(case, record, out, phases_s), flush=True)
    if records:
        with applied():
            draw(records).savefig(chosen.out / "figure-5.svg", metadata={"Date": None})
    sys.exit(failed)


if __name__ == "__main__":
    main()
