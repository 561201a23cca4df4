"""Whether a TDF that follows the load is as cheap as the best one that does not, on labs whose load changes.

    PYTHONPATH=python .venv/bin/python benches/adaptive.py [--labs step,…] [--tdfs 2,3,5,8,12,20]

Each lab runs with `tdf: auto` and at fixed TDFs, which are watched, too. Work is the guest's own CPU time, since host
time is also that of whatever else the host does. A fixed TDF is as good as `auto` when no more of its virtual time is
out of bounds. SPECIFICATION.md quotes its table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import dilaton

FLOWS = 3
SWITCHES = 10
"""That each flow crosses; links of 100 Mbit/s and 1 ms."""

LOADS: dict[str, list[tuple[int, float, float]]] = {
    "step": [(0, 0, 4.5), (1, 1.5, 1.5), (2, 1.5, 1.5)],
    "ramp": [(0, 0, 4.5), (1, 1.5, 3), (2, 3, 1.5)],
    "burst": [(0, 0, 0.5), (1, 2, 0.5), (2, 2, 0.5), (0, 4, 0.5)],
    "sawtooth": [(flow, 1.2 * tooth, 0.6) for tooth in range(4) for flow in range(FLOWS)],
    "alternating": [(flow, 1.5 * flow, 1.5) for flow in range(FLOWS)],
}
"""By lab: flows, their starts and durations in virtual seconds."""


@dataclass(frozen=True)
class Outcome:
    """What a run cost, and how well it was."""

    work_s: float
    tdf_mean: float
    out_share: float
    verdict: str


def lab(load: str, auto: dict[str, str]) -> dict[str, Any]:
    """The lab: a row of switches, a host at each."""
    processes: list[dict[str, Any]] = []
    for flow in range(FLOWS):
        server = {"on": f"h{(flow + 1) * SWITCHES - 1}", "name": f"sink{flow}", "exec": "iperf3 -s"}
        processes.append(server | {"ready": {"tcp": "5201"}, "background": "true"})
    for number, (flow, start_s, duration_s) in enumerate(LOADS[load]):
        command = f"iperf3 -c h{(flow + 1) * SWITCHES - 1} -t {duration_s:g}"
        client = {"on": f"h{flow * SWITCHES}", "name": f"flow{number}", "exec": command, "start": f"{start_s:g}s"}
        earlier = [f"flow{before}" for before in range(number) if LOADS[load][before][0] == flow]
        processes.append(client | {"after": [f"sink{flow}", *earlier[-1:]]})
    return {
        "name": load,
        "time": {"tdf": "auto", "auto": auto},
        "topology": {
            "generate": "line",
            "nodes": str(FLOWS * SWITCHES),
            "hosts": "1",
            "rate": "100Mbit",
            "delay": "1ms",
        },
        "groups": {"fabric": {"kind": "switch"}},
        "run": processes,
    }


def measure(load: str, auto: dict[str, str]) -> Outcome:
    """Runs a lab once."""
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(json.dumps(lab(load, auto)))
        command = [sys.executable, "-m", "dilaton", "run", path, "--out", out]
        subprocess.run(command, check=True, capture_output=True)
        run = dilaton.load(out)
        epochs, record = run.epochs, run.record
        assert record.fidelity and record.fidelity.adaptation and record.verdict
        seen = record.fidelity.adaptation
        work_s = float(((epochs.end_s - epochs.begin_s) * epochs.busy * epochs.tdf).sum())
        return Outcome(work_s, seen.tdf_mean or 0.0, seen.out_of_bounds_share, record.verdict.level)


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labs", default=",".join(LOADS))
    parser.add_argument("--tdfs", default="2,3,5,8,12,20")
    asked = parser.parse_args()
    print("| lab | TDF | mean TDF | core s | out of bounds | verdict |\n| --- | --- | --- | --- | --- | --- |")
    for load in asked.labs.split(","):
        ours = measure(load, {})
        rows = {"auto": ours} | {tdf: measure(load, {"min": tdf, "max": tdf}) for tdf in asked.tdfs.split(",")}
        for name, seen in rows.items():
            figures = f"{seen.tdf_mean:.3g} | {seen.work_s:.1f} | {seen.out_share:.1%} | {seen.verdict}"
            print(f"| {load} | {name} | {figures} |", flush=True)
        as_good = [seen.work_s for name, seen in rows.items() if name != "auto" and seen.out_share <= ours.out_share]
        if as_good:
            print(f"{load}: auto took {ours.work_s / min(as_good):.2f} times the cheapest fixed TDF that is as good")


if __name__ == "__main__":
    main()
