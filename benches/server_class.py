"""Thirty people at once at a server: what a call of the API and an echo of a terminal take, and what the server costs.

    PYTHONPATH=python:. .venv/bin/python benches/server_class.py [--people 30] [--host-s 60] [--kernel [--busy]]
        [--profile FILE]

What they do is in `tests/functional/server/people.py`, where is also looked that nothing is lost or doubled. Runs are
on a machine without a kernel, unless `--kernel` is given: the server is what is measured, and the same for it. With
`--busy` a program of each run takes all of a core that it gets, as labs do that are not idle.
Latencies are those that clients see, beside whatever else the machine does, which is printed, too; they are told apart
by whether runs were still being launched. CPU seconds and memory are the server process's alone. With py-spy installed,
`--profile` says where they went.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from tests.functional.server.people import together
from tests.unit.server.runs.server_process import Process, process
from tests.unit.server.serving import ENDLESS

BUSY = ENDLESS.replace("sleep 100000", "sha256sum /dev/zero")


def told(what: str, took: list[float]) -> str:
    """A line of what was seen."""
    cuts = [1000 * cut for cut in statistics.quantiles(took, n=100)]
    return f"{what:10} {len(took):6}   median {cuts[49]:7.1f} ms   99 % within {cuts[98]:7.1f} ms"


def cpu_s(pid: int) -> float:
    """CPU seconds of a process."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def memory_mb(pid: int) -> float:
    """The most memory that it has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(server: Process, people: int, host_s: float, lab: str, profile: Path | None) -> None:
    """Has them work, and prints what was seen."""
    pid = server.process.pid
    marks: list[tuple[float, float]] = []
    spy = None
    if profile is not None:
        options = ["--pid", str(pid), "--format", "raw", "--gil", "--output", str(profile), "--rate", "50"]
        spy = subprocess.Popen(["py-spy", "record", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    marks.append((time.monotonic(), cpu_s(pid)))
    seen = together(server, people, host_s, lambda: marks.append((time.monotonic(), cpu_s(pid))), lab)
    marks.append((time.monotonic(), cpu_s(pid)))
    if spy is not None:
        spy.send_signal(2)
        spy.wait()
    (begun, begun_cpu), (there, there_cpu), (end, end_cpu) = marks
    print(f"load of the machine {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    print(f"all running after {there - begun:.1f} s; CPU of the server {there_cpu - begun_cpu:.2f} s")
    print(f"then {end - there:.1f} s; CPU of the server {end_cpu - there_cpu:.2f} s; memory {memory_mb(pid):.0f} MB")
    print(f"{len(seen.runs)} runs, {sum(map(len, seen.told))} events told: none lost, none twice")
    for when, calls in {"while begun": seen.early, "calls": seen.calls}.items():
        print(told(when, [one for took in calls.values() for one in took]))
        for what, took in calls.items():
            print(told(f"  {what}", took))
    print(told("echoes", seen.echoes))


def main() -> None:
    """Measures."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--people", type=int, default=30)
    parser.add_argument("--host-s", type=float, default=60.0)
    parser.add_argument("--kernel", action="store_true")
    parser.add_argument("--busy", action="store_true")
    parser.add_argument("--profile", type=Path)
    asked = parser.parse_args()
    options = ("--at-once", asked.people, *(["--kernel"] if asked.kernel else []))
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory, process(Path(directory), *options) as server:
        measure(server, asked.people, asked.host_s, BUSY if asked.busy else ENDLESS, asked.profile)


if __name__ == "__main__":
    main()
