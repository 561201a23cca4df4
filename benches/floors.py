"""How far what a guest's programs ask of their kernel is from the least that its host's calls take, in CPU time.

    PYTHONPATH=python:. .venv/bin/python benches/floors.py debian 6.12.113 7.2.7 7.2.7+seccomp [--repeat 5]

Names are those of `dilaton kernel list`. Measured are loops of getppid(2), of touching fresh pages and of spawns in
guests, with the clock (`traps.py`), and bare loops of the host calls of one of these (`floor.c`), for a guest that
traces its programs and for one that does not, with the three readings of clocks of each stop. The floor of a spawn is
that of a process of the host, of as many page faults and CPUIDs as the clock counts, of a system call for each other
stop, and of the pages that are mapped and taken away beyond that. Of these perf(1) counts the host's calls, where root
may ask it; otherwise they are left out. The host and the kernels take turns. Figures are microseconds, least and
greatest of the turns. The distance is what the guest took by what the host took in the same turn: median, least and
greatest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from traps import PROGRAM, ROOT, in_guest

from dilaton.host.here.uml import kernels
from tests.fidelity.held_guest import counted, python
from tests.fidelity.test_costs import SPAWN

MAPPINGS = ("mmap", "munmap")
"""Host calls that a guest's kernel has the process of its program make, many in one stop."""

CALL, FAULT, SPAWNED = "getppid", "page fault", "fork, exec, wait"
SPAWNS = 20


@dataclass(frozen=True)
class Stops:
    """What stops a program from its spawn to its end, and the pages that are mapped and taken away besides."""

    faults: float
    cpuids: float
    others: float
    mapped: float | None
    unmapped: float | None


def stops_of(kernel: str, directory: Path) -> Stops:
    """Those of a spawn in a guest of that kernel, by the clock."""
    os.environ[kernels.VARIABLE] = kernel
    counters = ("stub_stops", "cpuids", "faults_told", "faults_asked")
    labs = [{"nodes": {"a": {}}, "run": [python("a", SPAWN.format(n))]} for n in (SPAWNS, 2 * SPAWNS)]
    few, many = (counted(lab, "work", directory / f"{kernel}-{n}", counters) for n, lab in enumerate(labs))
    stops, cpuids, *faults = ((more - less) / SPAWNS for less, more in zip(few, many, strict=True))
    # Where it is traced, a fault is two stops.
    of_a_fault = 1 if is_untraced(kernel) else 2
    others = stops - of_a_fault * sum(faults) - cpuids
    calls = [host_calls(lab, directory / f"{kernel}-calls-{n}") for n, lab in enumerate(labs)]
    if None in calls:
        return Stops(sum(faults), cpuids, others, None, None)
    mapped, unmapped = ((more - less) / SPAWNS for less, more in zip(*filter(None, calls), strict=True))
    return Stops(sum(faults), cpuids, others, mapped - sum(faults), unmapped)


def host_calls(lab: dict[str, Any], directory: Path) -> list[float] | None:
    """How many of `MAPPINGS` all processes of a run make, as perf(1) counts; None where it cannot."""
    directory.mkdir()
    (directory / "lab.yaml").write_text(json.dumps({"name": "calls", **lab}))
    events = ",".join(f"syscalls:sys_enter_{call}" for call in MAPPINGS)
    run = [sys.executable, "-m", "dilaton", "run", str(directory / "lab.yaml"), "--out", str(directory / "run")]
    command = ["perf", "stat", "-x,", "-e", events, "-o", str(directory / "counts"), "--", *run]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    try:
        subprocess.run(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
        counts = [line.split(",")[0] for line in (directory / "counts").read_text().splitlines() if "sys_enter" in line]
        return [float(count) for count in counts]
    except (OSError, subprocess.CalledProcessError, ValueError):
        return None


def is_untraced(kernel: str) -> bool:
    """Whether guests of that kernel do not trace their programs."""
    return kernel.endswith("+seccomp")


def floors_of(kernel: str, host: dict[str, float], spawn: Stops) -> dict[str, float]:
    """The floor of each loop in a guest of that kernel, of what the host's loops took, microseconds."""
    how = "trapped-metered" if is_untraced(kernel) else "metered"
    call, fault, cpuid = host[how], host[f"fault-{how}"], host.get(f"cpuid-{how}", 0)
    spawned = host["process"] + spawn.faults * fault + spawn.cpuids * cpuid + spawn.others * call
    spawned += host["map"] * (spawn.mapped or 0) + host["unmap"] * (spawn.unmapped or 0)
    return {CALL: call, FAULT: fault, SPAWNED: spawned}


def floor(program: Path, stops: int) -> dict[str, float]:
    """What the host's loops take, microseconds, of batches of so many stops."""
    said = subprocess.run([program, str(stops)], stdout=subprocess.PIPE, text=True, check=True).stdout
    return {name: float(took_us) for name, took_us in (line.split() for line in said.splitlines())}


def guest(kernel: str) -> dict[str, float]:
    """What the loops take in a guest of that kernel, microseconds."""
    os.environ[kernels.VARIABLE] = kernel
    return dict(json.loads(in_guest("python3", "-I", "-S", "-c", PROGRAM)))


def span(figures: Sequence[float]) -> str:
    return f"{min(figures):.1f} to {max(figures):.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    parser.add_argument("--stops", type=int, default=20_000, metavar="N")
    asked = parser.parse_args()
    floors: list[dict[str, float]] = []
    guests: dict[str, list[dict[str, float]]] = {kernel: [] for kernel in asked.kernels}
    with tempfile.TemporaryDirectory() as directory:
        program = Path(directory) / "floor"
        subprocess.run(["cc", "-O2", "-o", program, ROOT / "benches" / "floor.c"], check=True)
        spawns = {kernel: stops_of(kernel, Path(directory)) for kernel in asked.kernels}
        for _ in range(asked.repeat):
            floors.append(floor(program, asked.stops))
            print("host", json.dumps(floors[-1]), file=sys.stderr, flush=True)
            for kernel, turns in guests.items():
                turns.append(guest(kernel))
                print(kernel, json.dumps(turns[-1]), file=sys.stderr, flush=True)
    print("| host calls alone | us of CPU |", "| --- | --- |", sep="\n")
    for name in floors[0]:
        print(f"| {name} | {span([turn[name] for turn in floors])} |")
    print("\n| kernel | a spawn: page faults | CPUIDs | other stops | mapped beyond faults | taken away |")
    print("| --- | --- | --- | --- | --- | --- |")
    for kernel, spawn in spawns.items():
        mappings = ["not counted" if count is None else f"{count:.0f}" for count in (spawn.mapped, spawn.unmapped)]
        print(f"| {kernel} | {spawn.faults:.0f} | {spawn.cpuids:.0f} | {spawn.others:.0f} | {' | '.join(mappings)} |")
    print("\n| kernel | what | us of CPU | floor | distance |", "| --- | --- | --- | --- | --- |", sep="\n")
    for kernel, turns in guests.items():
        leasts = [floors_of(kernel, turn, spawns[kernel]) for turn in floors]
        for what in (CALL, FAULT, SPAWNED):
            took_us, least_us = [turn[what] for turn in turns], [least[what] for least in leasts]
            ratios = [took / least for took, least in zip(took_us, least_us, strict=True)]
            distance = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"| {kernel} | {what} | {span(took_us)} | {span(least_us)} | {distance} |")


if __name__ == "__main__":
    main()
