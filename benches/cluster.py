"""What two machines cost over one with the same guests, by the lookahead between them.

    PYTHONPATH=python .venv/bin/python benches/cluster.py [idle] [computing] [sending] [DELAY ...]

Two guests with a link between them, at TDF 1 on the work drive, on this machine and on two that are made of it:

- `idle`: nothing happens in them but what their kernels do by themselves.
- `computing`: a program computes in each all the time.
- `sending`: TCP from one to the other, as fast as it goes.

Each figure is seconds of the host for a virtual second, the least of three, in which both take turns. As both machines
are this one, relays and agents take what guests do not get. docs/cluster.md quotes it; what one connection carries is
measured by `cargo bench -p relay`.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
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


def lab(load: str, delay: str) -> dict[str, Any]:
    """A lab of two guests."""
    return {
        "name": "two",
        "time": {"drive": "work", "tdf": 1},
        "guests": "per-node",
        "nodes": {"a": {}, "b": {}},
        "links": [{"endpoints": "a -- b", "delay": delay}],
        "run": programs(load, SECONDS[delay]),
    }


def host_s_for_virtual_s(described: dict[str, Any], *arguments: str) -> float:
    """What a virtual second of a lab takes, seconds of the host."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(json.dumps(described))
        command = [sys.executable, "-m", "dilaton", "run", path, "--out", out, *arguments]
        subprocess.run([str(word) for word in command], check=True, capture_output=True)
        took = json.loads((out / "run.json").read_text())["time"]
        return float(took["host_s"] / took["virtual_s"])


def main() -> None:
    """Prints a table."""
    wanted = sys.argv[1:]
    print("| load | lookahead | one machine | two | ratio |\n| --- | --- | --- | --- | --- |", flush=True)
    for load in [load for load in LOADS if load in wanted] or LOADS:
        for delay in [delay for delay in SECONDS if delay in wanted] or SECONDS:
            described = lab(load, delay)
            ways: list[tuple[str, ...]] = [(), ("--machines", "2")]
            taken = [[host_s_for_virtual_s(described, *way) for way in ways] for _ in range(TURNS)]
            one, two = map(min, zip(*taken, strict=True))
            print(f"| {load} | {delay} | {one:.4g} | {two:.4g} | {two / one:.2f} |", flush=True)


if __name__ == "__main__":
    main()
