"""What two machines cost over one with the same guests, by the lookahead between them.

    PYTHONPATH=python .venv/bin/python benches/cluster.py [idle] [computing] [sending] [DELAY ...]

Two guests with a link between them, at TDF 1 on the work drive, on this machine and on two that are made of it:

- `idle`: nothing happens in them but what their kernels do by themselves.
- `computing`: a program computes in each all the time.
- `sending`: TCP from one to the other, as fast as it goes.

Each figure is seconds of CPU time of the whole run, guests, relays and agents, for a virtual second: what a run of one
virtual second takes is taken off, and so are its begin and end. It is the least of three, in which both take
turns. Host time would be that of whatever else runs here, too, and has guests and relays take turns, which on machines
of their own do not; it is said beside it, the least as well. docs/cluster.md quotes it; what one connection carries is
measured by `cargo bench -p relay`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

COMPUTE = """
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my ($end, $sum) = (clock_gettime(CLOCK_MONOTONIC) + SECONDS, 0);
while (clock_gettime(CLOCK_MONOTONIC) < $end) { $sum += $_ for 1 .. 2_000 }
"""

LOADS = ("idle", "computing", "sending")

SECONDS = {"10us": 0.1, "100us": 0.5, "1ms": 2, "5ms": 2, "10ms": 2}
"""Virtual seconds for which it is measured, by the delay of the link."""

IDLE_TIMES = 100
"""How many times as long they are idle."""

TURNS = 3


def programs(load: str, seconds: float) -> list[dict[str, Any]]:
    """What runs in both guests."""
    if load == "idle":
        return [{"on": "a", "exec": f"sleep {seconds * IDLE_TIMES:g}"}]
    if load == "computing":
        program = COMPUTE.replace("SECONDS", f"{seconds:g}")
        return [{"on": name, "name": f"compute-{name}", "exec": ["/usr/bin/perl", "-e", program]} for name in "ab"]
    return [
        {"on": "b", "name": "sink", "exec": "iperf3 -s", "ready": {"tcp": 5201}, "background": True},
        {"on": "a", "name": "send", "exec": f"iperf3 -c b -t {seconds:g} -J", "after": "sink"},
    ]


def lab(load: str, delay: str, seconds: float) -> dict[str, Any]:
    """A lab of two guests, with load for so many virtual seconds."""
    return {
        "name": "two",
        "time": {"drive": "work", "tdf": 1},
        "guests": "per-node",
        "nodes": {"a": {}, "b": {}},
        "links": [{"endpoints": "a -- b", "delay": delay}],
        "run": programs(load, seconds),
    }


@dataclass(frozen=True)
class Took:
    """What a run took, in seconds: CPU time from its begin to its end, and, of its virtual time alone, of the host."""

    cpu_s: float
    host_s: float
    virtual_s: float


def took(described: dict[str, Any], *arguments: str) -> Took:
    """Runs a lab."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(json.dumps(described))
        command = [sys.executable, "-m", "dilaton", "run", path, "--out", out, *arguments]
        before = os.times()
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        after = os.times()
        time = json.loads((out / "run.json").read_text())["time"]
        cpu_s = after.children_user + after.children_system - before.children_user - before.children_system
        return Took(cpu_s, time["host_s"], time["virtual_s"])


def costs(load: str, delay: str, *arguments: str) -> tuple[float, float]:
    """What a virtual second takes: CPU time, and time of the host."""
    # iperf3 counts whole seconds.
    seconds = max(1, SECONDS[delay]) if load == "sending" else SECONDS[delay]
    long, short = (took(lab(load, delay, each), *arguments) for each in (1 + seconds, 1))
    return (long.cpu_s - short.cpu_s) / (long.virtual_s - short.virtual_s), long.host_s / long.virtual_s


def main() -> None:
    """Prints a table."""
    wanted = sys.argv[1:]
    titles = ("load", "lookahead", "one machine", "two", "ratio", "of the host")
    print(f"| {' | '.join(titles)} |\n|{' --- |' * len(titles)}", flush=True)
    for load in [load for load in LOADS if load in wanted] or LOADS:
        for delay in [delay for delay in SECONDS if delay in wanted] or SECONDS:
            ways: list[tuple[str, ...]] = [(), ("--machines", "2")]
            taken = [[costs(load, delay, *way) for way in ways] for _ in range(TURNS)]
            one, two = ([min(figures) for figures in zip(*way, strict=True)] for way in zip(*taken, strict=True))
            figures = f"{one[0]:.4g} | {two[0]:.4g} | {two[0] / one[0]:.2f} | {one[1]:.4g} and {two[1]:.4g}"
            print(f"| {load} | {delay} | {figures} |", flush=True)


if __name__ == "__main__":
    main()
