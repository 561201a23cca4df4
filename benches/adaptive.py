"""Whether a TDF that follows the load is as cheap as the best one that does not, on labs whose load changes.

    PYTHONPATH=python .venv/bin/python benches/adaptive.py [--labs step,…] [--tdfs 2,3,5,8,12,20]
    PYTHONPATH=python .venv/bin/python benches/adaptive.py --steps 1,10,100

Each lab runs with `tdf: auto` and at fixed TDFs, which are watched, too. Work is the guest's own CPU time, since host
time is also that of whatever else the host does. A fixed TDF is as good as `auto` when no more of its virtual time is
out of bounds. With `--steps` it measures instead what a step of the controller costs, by the number of guests.
SPECIFICATION.md quotes both.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

import dilaton
from dilaton.host.clock_page import WORD, ClockPage, layout
from dilaton.lab import loads
from dilaton.plan.bounds import network_of
from dilaton.plan.compile import compile as compile_plan
from dilaton.run.adaptive.meter import Meter, Watched
from dilaton.run.adaptive.watch import Watch

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


def step_ms(guests: int, epochs: int = 300) -> float:
    """Milliseconds of CPU for a guest and epoch: its page is read, the epoch judged, and the next TDF decided."""
    planned = compile_plan(loads(json.dumps(lab("step", {})), "step.yaml"))
    with ExitStack() as pages:
        watched = [Watched(pages.enter_context(closing(ClockPage(0))), 0) for _ in range(guests)]
        assert planned.time.watch
        meter = Meter(watched, planned.time.watch.epoch_ns, Fraction(2))
        watch = Watch(watched, planned.time, network_of(planned.nodes))
        took_s = 0.0
        for epoch in range(1, epochs + 1):
            for guest in watched:
                # What the clock of a busy guest would have written.
                for field, value in (("virtual_now_ns", epoch * 10**8), ("lateness_ns_log2", epoch * 1000)):
                    WORD.pack_into(guest.page._memory, layout().offsets[field] * WORD.size, value)
            begin_s = process_time()
            seen = meter.take(Fraction(2))
            assert seen
            watch.step(seen)
            took_s += process_time() - begin_s
    return 1e3 * took_s / epochs / guests


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--labs", default=",".join(LOADS))
    parser.add_argument("--tdfs", default="2,3,5,8,12,20")
    parser.add_argument("--steps", help="numbers of guests")
    asked = parser.parse_args()
    if asked.steps:
        for guests in map(int, asked.steps.split(",")):
            print(f"{guests} guests: {step_ms(guests):.4f} ms for each and epoch")
        return
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
