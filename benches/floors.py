"""How far what a guest's programs ask of their kernel is from the least that its host's calls take, in CPU time.

    PYTHONPATH=python .venv/bin/python benches/floors.py debian 6.12.113 7.2.7 7.2.7+seccomp [--repeat 5]

Names are those of `dilaton kernel list`. Measured are loops of getppid(2) and of touching fresh pages in guests, with
the clock (`traps.py`), and bare loops of the host calls of one of these (`floor.c`), for a guest that traces its
programs and for one that does not, with the three readings of clocks of each stop. The host and the kernels take turns.
Figures are microseconds, least and greatest of the turns. The distance is what the guest took by what the host took in
the same turn: median, least and greatest.
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
from pathlib import Path

from traps import PROGRAM, ROOT, in_guest

from dilaton.host.here.uml import kernels

TRACED = {"getppid": "metered", "page fault": "fault-metered"}
UNTRACED = {"getppid": "trapped-metered", "page fault": "fault-trapped-metered"}


def floors_of(kernel: str) -> dict[str, str]:
    """The host's loop for each loop in a guest of that kernel."""
    return UNTRACED if kernel.endswith("+seccomp") else TRACED


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
        for _ in range(asked.repeat):
            floors.append(floor(program, asked.stops))
            print("host", json.dumps(floors[-1]), file=sys.stderr, flush=True)
            for kernel, turns in guests.items():
                turns.append(guest(kernel))
                print(kernel, json.dumps(turns[-1]), file=sys.stderr, flush=True)
    print("| host calls alone | us of CPU |", "| --- | --- |", sep="\n")
    for name in floors[0]:
        print(f"| {name} | {span([turn[name] for turn in floors])} |")
    print("\n| kernel | what | us of CPU | floor | distance |", "| --- | --- | --- | --- | --- |", sep="\n")
    for kernel, turns in guests.items():
        for what, name in floors_of(kernel).items():
            took_us, least_us = [turn[what] for turn in turns], [turn[name] for turn in floors]
            ratios = [took / least for took, least in zip(took_us, least_us, strict=True)]
            distance = f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"
            print(f"| {kernel} | {what} | {span(took_us)} | {span(least_us)} | {distance} |")


if __name__ == "__main__":
    main()
