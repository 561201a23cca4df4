"""How far each of the peers' works is from its floor, in CPU time: what its calls of the host take in a bare loop.

    PYTHONPATH=python:.:benches/peers .venv/bin/python benches/distances.py W3 W5 [--kernel NAME ...] [--repeat 3]

Takes root, as `./dev peers` does, whose works these are, and perf(1). The floor of a work is the sum of

- what the guest's kernel and its programs compute themselves, which is no call of the host: the share of perf(1)'s
  samples that are of their own instructions, of what the run takes;
- each stop of a program, page fault and CPUID, as the clock counts them, at what it takes in `floor.c` with three
  readings of clocks, as in `floors.py`; each reading beyond these, and each timer of the host that is set;
- each process that the guest makes on the host, each page that is mapped and taken away beyond faults, and each page
  that is touched first without the kernel being told, as perf(1) counts the host's.

Nothing of Python is in it, nor of the jail and of what the clock computes. So there are two distances: of the whole,
and of what the work takes beyond an empty run (W0), by what its floor is beyond that of an empty run. What is counted
comes of runs of their own, which nobody times. The loops are measured just before each work, and all is done in turns:
medians, with the least and the greatest.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import runpy
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from unittest.mock import patch

from floors import floor, is_untraced
from meter import cost
from traps import ROOT
from works import works

from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.here.uml import kernels

BUILT = ROOT / "target" / "peers"
EMPTY = "W0"
COUNTS = "DILATON_BENCH_COUNTS"
"""The variable that says into which file a run is to write what its clocks have counted."""

COUNTERS = ("stub_stops", "faults_told", "faults_asked", "cpuids", "cpu_clock_calls", "host_timers_armed")
PYTHON_FAULTS = "python_faults"
TOUCHED, MAPPED, UNMAPPED, MADE = EVENTS = (
    "page-faults",
    "syscalls:sys_enter_mmap",
    "syscalls:sys_enter_munmap",
    "sched:sched_process_fork",
)
SAMPLES_PER_S = 1999
GUEST = ("linux.uml", "uml-userspace", "memfd:uml-user")
"""What processes of a guest's kernel and of its programs are called on the host."""

OF_GUEST = ("linux.uml)", "(deleted))")
"""How perf(1) shows the files that these have instructions of: the kernel, and the guest's memory, where modules and
programs are."""

PYTHON = (sys.executable, "-m", "dilaton")
STOPS = 5_000
"""Of a batch of the loops."""

READINGS = 3
"""Of clocks, at each stop of the loops."""


@dataclass(frozen=True)
class Counted:
    """What is counted of a run.

    Attributes:
        computed: The share of its CPU time in which its guests computed themselves.
        clock: What their clocks count, by the names of `COUNTERS`, and the page faults of Python.
        host: What perf(1) counts of all processes, by the names of `EVENTS`.
    """

    computed: float
    clock: dict[str, int]
    host: dict[str, int]

    def floor_s(self, kernel: str, loop: dict[str, float], took_s: float) -> float:
        """The floor, CPU seconds, of what the host's loops take, microseconds, and of what a run took, CPU seconds."""
        how = "trapped-metered" if is_untraced(kernel) else "metered"
        stops, told, asked, cpuids, readings, timers = (self.clock[name] for name in COUNTERS)
        faults = told + asked
        calls = stops - cpuids - (1 if is_untraced(kernel) else 2) * faults
        beyond = {
            "process": self.host[MADE],
            "map": self.host[MAPPED] - faults,
            "unmap": self.host[UNMAPPED],
            # A page that the kernel is told of faults once more when it is mapped.
            "touch": self.host[TOUCHED] - self.clock[PYTHON_FAULTS] - 2 * faults,
            "reading": readings - READINGS * stops,
            "timer": timers,
        }
        us = calls * loop[how] + faults * loop[f"fault-{how}"] + cpuids * loop.get(f"cpuid-{how}", 0)
        us += sum(max(0, count) * loop[name] for name, count in beyond.items())
        return self.computed * took_s + us / 1e6


def counted(lab: Path, kernel: str, directory: Path) -> Counted:
    """What is counted of a run of that lab."""
    samples, totals, counts = (directory / name for name in ("samples", "totals", "counts"))
    command = ["run", str(lab), "--out", str(directory / "run")]
    sample = ["perf", "record", "-q", "-F", str(SAMPLES_PER_S), "-e", "cpu-clock", "-o", str(samples), "--"]
    run([*sample, *PYTHON, *command], kernel)
    total = ["perf", "stat", "-x,", "-e", ",".join(EVENTS), "-o", str(totals), "--"]
    # Calls of the host that are counted take longer, so what is counted is not what is sampled.
    run([*total, sys.executable, __file__, *command], kernel, {COUNTS: str(counts)})
    script = ["perf", "script", "-i", str(samples), "-F", "comm,ip,dso"]
    said = subprocess.run(script, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True).stdout
    seen = [line.rstrip() for line in said.splitlines()]
    computed = sum(line.split()[0] in GUEST and line.endswith(OF_GUEST) for line in seen)
    rows = [line.split(",") for line in totals.read_text().splitlines()]
    host = {row[2]: int(row[0]) for row in rows if len(row) > 2 and row[2] in EVENTS}
    return Counted(computed / len(seen), json.loads(counts.read_text()), host)


def run(command: list[str], kernel: str, environment: Mapping[str, str] = MappingProxyType({})) -> None:
    """Runs a command that runs a lab in a guest of that kernel, and removes what it leaves."""
    subprocess.run(
        command,
        env={**os.environ, **environment_of(kernel), **environment},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=True,
    )
    shutil.rmtree(Path(command[-1]))


def run_counted(path: Path) -> None:
    """Does what the command line says, and writes what the clocks of its guests counted."""
    sums: Counter[str] = Counter()
    close = ClockPage.close

    def close_counted(page: ClockPage) -> None:
        sums.update({name: page.read(name) for name in COUNTERS})
        close(page)

    try:
        with patch.object(ClockPage, "close", close_counted):
            runpy.run_module("dilaton", run_name="__main__")
    finally:
        sums[PYTHON_FAULTS] = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
        path.write_text(json.dumps(sums))


def environment_of(kernel: str) -> dict[str, str]:
    """Of a run with guests of that kernel; Python's modules are compiled once and kept."""
    return {"PYTHONDONTWRITEBYTECODE": "", kernels.VARIABLE: kernel}


def spent_s(lab: Path, kernel: str, directory: Path) -> float:
    """CPU seconds of a run of that lab."""
    out = directory / "run"
    command = [*PYTHON, "run", str(lab), "--out", str(out)]
    spent = cost(command, directory / "log", environment_of(kernel))
    shutil.rmtree(out)
    if spent.status:
        raise SystemExit(f"{lab.stem} with {kernel}: status {spent.status}: {(directory / 'log').read_text()}")
    return spent.cpu_s


def span(figures: Sequence[float]) -> str:
    return f"{statistics.median(figures):.2f} ({min(figures):.2f} to {max(figures):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    known = works(BUILT)
    parser.add_argument("works", nargs="+", metavar="WORK", choices=known)
    parser.add_argument("--kernel", action="append", metavar="KERNEL")
    parser.add_argument("--repeat", type=int, default=3, metavar="N")
    asked = parser.parse_args()
    if not (BUILT / "bulk").exists():
        parser.error("./dev peers makes the programs of the works: run it first, with any of them")
    names = [EMPTY, *(name for name in asked.works if name != EMPTY)]
    pairs = [(name, kernel) for name in names for kernel in asked.kernel or ["debian"]]
    counts: dict[tuple[str, str], Counted] = {}
    took: dict[tuple[str, str], list[float]] = {pair: [] for pair in pairs}
    least: dict[tuple[str, str], list[float]] = {pair: [] for pair in pairs}
    with tempfile.TemporaryDirectory(dir=BUILT) as made:
        directory = Path(made)
        program = directory / "floor"
        subprocess.run(["cc", "-O2", "-o", program, ROOT / "benches" / "floor.c"], check=True)
        for name, kernel in pairs:
            lab = directory / f"{name}.yaml"
            lab.write_text(json.dumps({"name": name.lower()} | known[name].lab))
            counts[name, kernel] = counted(lab, kernel, directory)
            print(name, kernel, counts[name, kernel], file=sys.stderr, flush=True)
        for _, (name, kernel) in itertools.product(range(asked.repeat), pairs):
            if kernel == pairs[0][1]:
                loop = floor(program, STOPS)
                print("host", json.dumps(loop), os.getloadavg(), file=sys.stderr, flush=True)
            took[name, kernel].append(spent_s(directory / f"{name}.yaml", kernel, directory))
            least[name, kernel].append(counts[name, kernel].floor_s(kernel, loop, took[name, kernel][-1]))
            print(name, kernel, took[name, kernel][-1], least[name, kernel][-1], file=sys.stderr, flush=True)
    print("| work | kernel | guest's own | CPU s | floor s | distance | beyond an empty run |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, kernel in pairs:
        own, least_own = took[EMPTY, kernel], least[EMPTY, kernel]
        both = list(zip(took[name, kernel], least[name, kernel], own, least_own, strict=True))
        whole = span([cpu_s / floor_s for cpu_s, floor_s, _, _ in both])
        rest = "" if name == EMPTY else span([(cpu_s - own) / (floor_s - bare) for cpu_s, floor_s, own, bare in both])
        computed = f"{100 * counts[name, kernel].computed:.0f} %"
        cells = (name, kernel, computed, span(took[name, kernel]), span(least[name, kernel]), whole, rest)
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    if COUNTS in os.environ:
        run_counted(Path(os.environ.pop(COUNTS)))
    else:
        main()
