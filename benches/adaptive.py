"""Whether a TDF that follows the load is as cheap as the best one that does not, on labs whose load changes.

    PYTHONPATH=python .venv/bin/python benches/adaptive.py --out DIR [--labs step,…] [--repeat 2]
    PYTHONPATH=python .venv/bin/python benches/adaptive.py --steps 1,10,100

Of each lab the least fixed TDF that is valid is searched for, since less work is done at less; it is watched, as `auto`
is, so that epochs out of bounds count. Work is the guest's own CPU time, since host time is also that of whatever else
the host does. But the speed of a host that others share drifts by more than what is looked for, within minutes; so
each fixed TDF runs side by side with `auto`, on a core each, and the ratio of such pairs counts. One core may be faster
than the other, so every second pair has them the other way round. Runs that are in DIR and finished are not run again.

With `--steps` it measures instead what a step of the controller costs, by the number of guests. SPECIFICATION.md quotes
both.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from time import process_time
from typing import Any

import dilaton
from dilaton.host.counters import Counters
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.network.bounds import network_of
from dilaton.run.adaptive.meter import Meter, Watched
from dilaton.run.adaptive.watch import Watch

FLOWS = 3
SWITCHES = 10
"""That each flow crosses; links of 100 Mbit/s and 1 ms."""

LOADS: dict[str, list[tuple[int, float, int]]] = {
    "step": [(0, 0, 4), (1, 1.5, 1), (2, 1.5, 1)],
    "ramp": [(0, 0, 4), (1, 1.5, 3), (2, 3, 1)],
    "burst": [(0, 0, 1), (1, 2, 1), (2, 2, 1), (0, 4, 1)],
    "sawtooth": [(flow, 2 * tooth, 1) for tooth in range(3) for flow in range(FLOWS)],
    "alternating": [(flow, 1.5 * flow, 1) for flow in range(FLOWS)],
}
"""By lab: flows, their starts and durations in virtual seconds; the latter whole, since 0.5 is for ever to iperf3."""

TDFS = ("1", "1.25", "1.6", "2", "2.5", "3.2", "4", "5", "6.3", "8", "10", "12.5", "16", "20", "25", "32", "40", "50")
"""Among which the best is searched for: ten of them are a decade."""


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
        command = f"iperf3 -c h{(flow + 1) * SWITCHES - 1} -t {duration_s}"
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


def has_finished(out: Path) -> bool:
    """Whether there is a run in that directory which has come to its end."""
    record = out / "run.json"
    return record.is_file() and json.loads(record.read_text())["state"] == "finished"


def measure(load: str, tdf: str, out: Path, core: int) -> Outcome:
    """Runs a lab once, unless that was done already.

    Args:
        load: Of `LOADS`.
        tdf: A number, or `auto`.
        out: Where the run directory is.
        core: Of the host, on which it runs.
    """
    if not has_finished(out):
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        path = out.parent / f"{out.name}.yaml"
        # A fixed TDF is watched, too.
        path.write_text(json.dumps(lab(load, {} if tdf == "auto" else {"min": tdf, "max": tdf})))
        command = ["taskset", "-c", str(core), sys.executable, "-m", "dilaton", "run", str(path), "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
    run = dilaton.load(out)
    epochs, record = run.epochs, run.record
    assert record.fidelity and record.fidelity.adaptation and record.verdict
    seen = record.fidelity.adaptation
    work_s = float(((epochs.end_s - epochs.begin_s) * epochs.busy * epochs.tdf).sum())
    found = Outcome(work_s, seen.tdf_mean or 0.0, seen.out_of_bounds_share, record.verdict.level)
    figures = f"{found.tdf_mean:.3g} | {found.work_s:.1f} | {found.out_share:.1%} | {found.verdict}"
    print(f"| {load} | {tdf} | {figures} |", flush=True)
    return found


def compare(load: str, out: Path, repeat: int) -> str:
    """What `auto` takes, relative to the least fixed TDF that is valid."""
    low, high = 0, len(TDFS)
    while low < high:
        middle = (low + high) // 2
        _, fixed = pair(load, TDFS[middle], out, 0)
        if fixed.verdict == "valid":
            high = middle
        else:
            low = middle + 1
    if low == len(TDFS):
        return f"{load}: no fixed TDF up to {TDFS[-1]} is valid"
    best = TDFS[low]
    ratios = [ours.work_s / fixed.work_s for ours, fixed in (pair(load, best, out, turn) for turn in range(repeat))]
    each = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"{load}: auto takes {statistics.median(ratios):.2f} times the CPU time of TDF {best} ({each})"


def pair(load: str, tdf: str, out: Path, turn: int) -> list[Outcome]:
    """Runs a lab with `auto` and at a fixed TDF at the same time, unless that was done already."""
    runs = {each: out / f"{load}-{tdf}-pair-{turn}-{each}" for each in ("auto", tdf)}
    if not all(map(has_finished, runs.values())):
        for run in runs.values():
            shutil.rmtree(run, ignore_errors=True)
    cores = sorted(os.sched_getaffinity(0))[:2]
    if turn % 2:
        cores.reverse()
    with ThreadPoolExecutor(2) as both:
        return list(both.map(lambda each, core: measure(load, each, runs[each], core), runs, cores))


@dataclass(frozen=True)
class Paged:
    """A guest that is nothing but its clock page."""

    page: ClockPage

    def reached_ns(self) -> int:
        """The latest reading of its clock."""
        return self.page.read("virtual_now_ns")

    def counters(self) -> Counters:
        """What it has counted by now."""
        return self.page.counters(0)


def step_ms(guests: int, epochs: int = 300) -> float:
    """Milliseconds of CPU for a guest and epoch: its page is read, the epoch judged, and the next TDF decided."""
    planned = compile_plan(loads(json.dumps(lab("step", {})), "step.yaml"))
    with ExitStack() as pages:
        paged = [Paged(pages.enter_context(closing(ClockPage(0)))) for _ in range(guests)]
        network = network_of(planned)
        watched = [Watched(guest, network=network) for guest in paged]
        assert planned.time.watch
        meter = Meter(watched, planned.time.watch.epoch_ns, Fraction(2), planned.time.drive)
        watch = Watch(watched, planned.time, network)
        took_s = 0.0
        for epoch in range(1, epochs + 1):
            for guest in paged:
                # What the clock of a busy guest would have written.
                for field, value in (("virtual_now_ns", epoch * 10**8), ("lateness_ns_log2", epoch * 1000)):
                    guest.page._write(field, value)
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
    parser.add_argument("--out", type=Path, help="where runs go")
    parser.add_argument("--repeat", type=int, default=2, help="pairs of auto and the best (default %(default)s)")
    parser.add_argument("--steps", help="numbers of guests")
    asked = parser.parse_args()
    if asked.steps:
        for guests in map(int, asked.steps.split(",")):
            print(f"{guests} guests: {step_ms(guests):.4f} ms for each and epoch")
        return
    if not asked.out:
        parser.error("--out: say where runs go")
    print("| lab | TDF | mean TDF | core s | out of bounds | verdict |\n| --- | --- | --- | --- | --- | --- |")
    for load in asked.labs.split(","):
        print(compare(load, asked.out, asked.repeat), flush=True)


if __name__ == "__main__":
    main()
