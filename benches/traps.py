"""What a guest's programs cost where they meet their kernel, kernel by kernel: in CPU time of the host, with the clock.

    PYTHONPATH=python .venv/bin/python benches/traps.py debian 6.12.113 7.2.7 7.2.7+seccomp [--repeat 5]

Names are those of `dilaton kernel list`. Measured are a system call that does nothing, a page fault, a byte there and
back through two pipes between two programs, a file of the host opened, read and closed, fork, exec and wait of `true`,
a megabyte by TCP over veth, and a datagram on one hop more of a chain of bridges (`costs.py`).
In a guest that computes CPU time is virtual time on the work drive, at TDF 1. Kernels take turns. Each figure is the
least of several runs, with the greatest beside it, as what else runs on the host only ever adds; that of a hop is a
difference of runs, and so their median, with the least and the greatest. Ratios are to the kernel that is named first:
the median of those within a turn, with the least and the greatest.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from costs import hop_us
from overhead import TCP, gbit_per_s

from dilaton.host.here.uml import kernels

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
import json, mmap, os, time
def cost(turns, act):
    best = float("inf")
    for _ in range(5):
        begin = time.monotonic_ns()
        act(turns)
        best = min(best, (time.monotonic_ns() - begin) / turns / 1000)
    return best
def calls(turns):
    for _ in range(turns): os.getppid()
def faults(turns):
    room = mmap.mmap(-1, turns * 4096, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    for at in range(0, turns * 4096, 4096): room[at] = 1
    room.close()
def pipes(turns):
    (down, to), (up, back) = os.pipe(), os.pipe()
    if os.fork() == 0:
        for _ in range(turns): os.write(back, os.read(down, 1))
        os._exit(0)
    for _ in range(turns): os.write(to, b"x"); os.read(up, 1)
    os.wait()
    for fd in (down, to, up, back): os.close(fd)
def files(turns):
    for _ in range(turns):
        fd = os.open("/etc/hostname", os.O_RDONLY); os.read(fd, 64); os.close(fd)
def spawns(turns):
    for _ in range(turns): os.waitpid(os.posix_spawn("/bin/true", ["true"], {}), 0)
print(json.dumps({
    "getppid": cost(2000, calls), "page fault": cost(500, faults), "pipe there and back": cost(300, pipes),
    "open, read, close": cost(300, files), "fork, exec, wait": cost(10, spawns),
}))
"""


HOP = "packet and hop"


def in_guest(*words: str) -> str:
    """What a command prints in a guest."""
    command = [sys.executable, "-m", "dilaton", "exec", "--", *words]
    environment = os.environ | {"PYTHONPATH": str(ROOT / "python")}
    return subprocess.run(command, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout


def measured(kernel: str) -> dict[str, float]:
    """The costs in guests of that kernel, microseconds."""
    os.environ[kernels.VARIABLE] = kernel
    traps = dict(json.loads(in_guest("python3", "-I", "-S", "-c", PROGRAM)))
    megabyte_us = 8e3 / gbit_per_s(in_guest("sh", "-c", TCP))
    return {**traps, "a megabyte of TCP over veth": megabyte_us, HOP: hop_us()}


def cell(name: str, costs: Sequence[float], firsts: Sequence[float]) -> str:
    """A kernel's cost, and its ratio to the first kernel's, turn by turn."""
    shown = f"{min(costs):.1f} (to {max(costs):.1f})"
    if name == HOP:
        shown = f"{statistics.median(costs):.2f} ({min(costs):.2f} to {max(costs):.2f})"
    if costs is firsts:
        return shown
    ratios = [cost / first for cost, first in zip(costs, firsts, strict=True)]
    return f"{shown}; {statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kernels", nargs="+", metavar="KERNEL")
    parser.add_argument("--repeat", type=int, default=5, metavar="N")
    asked = parser.parse_args()
    found: dict[str, list[dict[str, float]]] = {kernel: [] for kernel in asked.kernels}
    for _ in range(asked.repeat):
        for kernel, runs in found.items():
            runs.append(measured(kernel))
            print(kernel, json.dumps(runs[-1]), file=sys.stderr, flush=True)
    names = list(found[asked.kernels[0]][0])
    print("| us of CPU |", " | ".join(asked.kernels), "|")
    print("| --- |", " | ".join("---" for _ in asked.kernels), "|")
    for name in names:
        costs = [[run[name] for run in runs] for runs in found.values()]
        print(f"| {name} |", " | ".join(cell(name, each, costs[0]) for each in costs), "|")


if __name__ == "__main__":
    main()
