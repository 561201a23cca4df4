"""Thirty people at once at a server: what a call of the API and an echo of a terminal take, and what the server costs.

    PYTHONPATH=python:. .venv/bin/python benches/server_class.py [--people 30] [--host-s 60] [--kernel [--busy]]
        [--profile FILE]

What they do is in `tests/functional/server/people.py`, where is also looked that nothing is lost or doubled. Runs are
on a machine without a kernel, unless `--kernel` is given: the server is what is measured, and the same for it. With
`--busy` a program of each run takes all of a core that it gets, as labs do that are not idle.
Latencies are those that clients see, beside whatever else the machine does, which is printed, too; they are told apart
by whether runs were still being launched. Clients would be on machines of their own, so where Linux lets them they go
before all else, as the server does. CPU seconds, those in which its threads waited for a core, and memory are the
server process's alone. With py-spy installed, `--profile` says where they went.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import tempfile
import time
from pathlib import Path

from dilaton.server.priority import FIRST
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


def waited_s(pid: int) -> float:
    """Seconds in which threads of a process that could have gone on had no core, of those that it still has."""
    tasks = Path(f"/proc/{pid}/task").glob("*/schedstat")
    return sum(int(task.read_text().split()[1]) for task in tasks) / 1e9


def go_first() -> bool:
    """Has this process go before all others; whether Linux lets it."""
    try:
        os.setpriority(os.PRIO_PROCESS, 0, FIRST)
        Path("/proc/self/autogroup").write_text(str(FIRST))
    except OSError:
        return False
    return True


def memory_mb(pid: int) -> float:
    """The most memory that it has had."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


def measure(server: Process, people: int, host_s: float, lab: str, profile: Path | None) -> None:
    """Has them work, and prints what was seen."""
    pid = server.process.pid
    marks: list[tuple[float, float, float]] = []
    print(f"clients go first: {go_first()}")

    def mark() -> None:
        marks.append((time.monotonic(), cpu_s(pid), waited_s(pid)))

    spy = None
    if profile is not None:
        options = ["--pid", str(pid), "--format", "raw", "--gil", "--output", str(profile), "--rate", "50"]
        spy = subprocess.Popen(["py-spy", "record", *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    mark()
    seen = together(server, people, host_s, mark, lab)
    mark()
    if spy is not None:
        spy.send_signal(2)
        spy.wait()
    (begun, begun_cpu, begun_wait), (there, there_cpu, there_wait), (end, end_cpu, end_wait) = marks
    print(f"load of the machine {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")
    for what, host_s, cpu, wait in (
        ("all running after", there - begun, there_cpu - begun_cpu, there_wait - begun_wait),
        ("then", end - there, end_cpu - there_cpu, end_wait - there_wait),
    ):
        print(f"{what} {host_s:.1f} s; the server took {cpu:.2f} CPU s, and waited {wait:.2f} s for a core")
    print(f"memory {memory_mb(pid):.0f} MB")
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
