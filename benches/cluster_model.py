"""What a virtual second takes over many machines, predicted from what few of them cost.

    PYTHONPATH=python .venv/bin/python benches/cluster_model.py
    PYTHONPATH=python taskset -c 0 .venv/bin/python benches/cluster_model.py validate

A virtual second takes as long as the busiest machine needs for its guests, and for each time that machines wait for
each other what that takes, which is some times per lookahead as long as guests are busy everywhere:

    host s = guests + 1 s / lookahead * TIMES * (WAIT + 2 * LAN + hub(machines))

`WAIT` and `hub` were measured by `cargo bench -p relay --bench carrying -- machines`, where all machines were one with
one core: of two machines all but what the hub computes, and of more the CPU time of the hub, for which a power law is
fitted, since beyond a few machines all wait for it. `LAN` is one way between two real machines, which is assumed.
`TIMES` was fitted to what `validate` measured at 200 us: threads of the benchmark wait once, guests that compute more
often, as they tell in the midst of a lookahead, too, where they are. What frames cost is not in it: one or two
microseconds of CPU time each, on machines that wait most of the time.

`validate` runs four guests that compute on one, two and four machines made of this one, on one core, where relays and
hub take turns with the guests, so that all of the time of a lookahead is added; and says how far the prediction is off.
docs/cluster.md quotes both.
"""

from __future__ import annotations

import json
import math
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

HUB_CPU_S = {4: 119e-6, 8: 212e-6, 16: 680e-6, 32: 1.6e-3, 64: 4.1e-3}
"""Of the hub for a lookahead, by the number of machines, beside other load, where it is more than alone."""

ALL_CPU_S = {1: 0, 2: 54e-6, 4: 152e-6}
"""Of the hub and all relays for a lookahead."""

TIMES = 3
WAIT_S = 32e-6
LAN_S = 30e-6

MACHINES = (2, 4, 10, 40, 100, 400, 1000)


@dataclass(frozen=True)
class Lab:
    """A lab that is spread over machines.

    Attributes:
        name: Its name.
        lookahead_s: The delay of the links between machines.
        guests_s: What guests of a machine take, seconds of the host for a virtual second.
    """

    name: str
    lookahead_s: float
    guests_s: float


LABS = (
    Lab("WAN, 10 ms between machines", 10e-3, 1),
    Lab("fat tree, 10 us within a pod, a pod on a machine, 50 us between pods", 50e-6, 1),
    Lab("fat tree, pods cut, 10 us between machines", 10e-6, 1),
    Lab("DieCast's, ten nodes of a tenth each on a machine, 100 us between machines", 100e-6, 1),
)


def hub_s(machines: int) -> float:
    """CPU time of the hub for a lookahead: the power law through what was measured."""
    points = [(math.log(count), math.log(took_s)) for count, took_s in HUB_CPU_S.items()]
    mean_x, mean_y = (sum(values) / len(points) for values in zip(*points, strict=True))
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / sum((x - mean_x) ** 2 for x, _ in points)
    return math.exp(mean_y + slope * (math.log(machines) - mean_x))


def predicted_s(lab: Lab, machines: int) -> float:
    """What a virtual second takes, seconds of the host."""
    return lab.guests_s + TIMES * (WAIT_S + 2 * LAN_S + hub_s(machines)) / lab.lookahead_s


COMPUTE = """
use Time::HiRes qw(clock_gettime CLOCK_MONOTONIC);
my ($end, $sum) = (clock_gettime(CLOCK_MONOTONIC) + 1, 0);
while (clock_gettime(CLOCK_MONOTONIC) < $end) { $sum += $_ for 1 .. 2_000 }
"""

GUESTS = 4
TURNS = 3


def measured_s(delay: str, machines: int) -> float:
    """The least that a virtual second takes of guests in a row that all compute, seconds of the host."""
    names = [f"n{number}" for number in range(GUESTS)]
    lab = {
        "name": "row",
        "time": {"drive": "work", "tdf": 1},
        "guests": "per-node",
        "nodes": {name: {} for name in names},
        "links": [{"endpoints": f"{one} -- {other}", "delay": delay} for one, other in pairwise(names)],
        "run": [{"on": name, "name": f"compute-{name}", "exec": ["/usr/bin/perl", "-e", COMPUTE]} for name in names],
    }
    arguments = () if machines == 1 else ("--machines", str(machines))
    took = []
    for _ in range(TURNS):
        with tempfile.TemporaryDirectory(dir="/var/tmp") as directory:
            path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
            path.write_text(json.dumps(lab))
            command = [sys.executable, "-m", "dilaton", "run", str(path), "--out", str(out), *arguments]
            subprocess.run(command, check=True, capture_output=True)
            time = json.loads((out / "run.json").read_text())["time"]
            took.append(time["host_s"] / time["virtual_s"])
    return float(min(took))


def validate() -> None:
    """Compares what is predicted with what is measured."""
    print("| lookahead | machines | measured | predicted | error |\n| --- | --- | --- | --- | --- |", flush=True)
    for delay, lookahead_s in {"10ms": 10e-3, "1ms": 1e-3, "200us": 200e-6}.items():
        guests_s = measured_s(delay, 1)
        for machines, took_s in ALL_CPU_S.items():
            measured = guests_s if machines == 1 else measured_s(delay, machines)
            predicted = guests_s + TIMES * took_s / lookahead_s
            shown = f"{delay} | {machines} | {measured:.2f} | {predicted:.2f} | {predicted / measured - 1:+.0%}"
            print(f"| {shown} |", flush=True)


def main() -> None:
    """Prints the table."""
    if sys.argv[1:] == ["validate"]:
        validate()
        return
    print(f"| host s for a virtual s, on machines | {' | '.join(map(str, MACHINES))} |")
    print(f"| --- |{' --- |' * len(MACHINES)}")
    for lab in LABS:
        print(f"| {lab.name} | {' | '.join(f'{predicted_s(lab, machines):.3g}' for machines in MACHINES)} |")


if __name__ == "__main__":
    main()
