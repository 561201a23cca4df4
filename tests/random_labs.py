"""Random small labs over several guests: that they run to their end, and that no frame is early, late, lost or out of order.

A lab is a tree of two to five nodes, each in a guest of its own, with links of 20 us to 20 ms, and programs that ping, send
and compute, some of which wait for others. Its seed says all of it. `./dev labs` runs a thousand.
"""

from __future__ import annotations

import contextlib
import io
import json
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from dilaton.lab.text import units
from tests.conftest import Outcome, run_in

SLACK_S = 0.003
"""What a round trip may take longer than its delays, at TDF 10, where nobody sends: serialisation, the nodes' own work."""

SENT_BITS = 8 * 110_000
"""Of one `iperf3 -n 100K`, with its headers: all four packets of a ping may wait behind as much on each link."""


def make_lab(seed: int) -> dict[str, Any]:
    """The lab of that seed."""
    draw = random.Random(seed)
    names = "abcde"[: draw.randint(2, 5)]
    links = [
        {
            "endpoints": f"{draw.choice(names[:number])} -- {names[number]}",
            "delay": f"{round(20 * 1000 ** draw.random())}us",
            "rate": draw.choice(["10Mbit", "100Mbit", "1Gbit"]),
        }
        for number in range(1, len(names))
    ]
    run: list[dict[str, Any]] = []
    for number in range(draw.randint(2, 6)):
        one, other = draw.sample(names, 2)
        name, after = f"p{number}", [draw.choice(run)["name"]] if run and draw.random() < 0.4 else []
        kind = draw.choice(["ping", "send", "compute"])
        if kind == "ping":
            run.append({"on": one, "name": name, "exec": f"ping -c 4 -i 0.05 {other}", "after": after})
        elif kind == "send":
            port = 5201 + number
            sink = {"on": other, "name": f"sink{number}", "exec": f"iperf3 -s -1 -p {port}", "ready": {"tcp": port}}
            send = f"iperf3 -c {other} -p {port} -n 100K"
            run += [sink, {"on": one, "name": name, "exec": send, "after": [*after, sink["name"]]}]
        else:
            run.append({"on": one, "name": name, "exec": "md5sum /usr/bin/python3", "after": after})
    return {
        "name": f"random-{seed}",
        "guests": "per-node",
        "time": {"tdf": 10},
        "seed": seed,
        "nodes": {name: {} for name in names},
        "links": links,
        "run": run,
    }


def delay_s(lab: dict[str, Any], one: str, other: str) -> float:
    """The delay from a node to another over the tree."""
    neighbours: dict[str, dict[str, float]] = {name: {} for name in lab["nodes"]}
    for link in lab["links"]:
        a, b = link["endpoints"].split(" -- ")
        neighbours[a][b] = neighbours[b][a] = int(link["delay"].removesuffix("us")) * 1e-6
    found, open_ = {one: 0.0}, [one]
    while open_:
        at = open_.pop()
        for to, more in neighbours[at].items():
            if to not in found:
                found[to] = found[at] + more
                open_.append(to)
    return found[other]


def check(lab: dict[str, Any], outcome: Outcome) -> None:
    """Makes sure that a run of the lab was whole, each of its pings in time."""
    assert outcome.status == 0, outcome.record["reason"]
    sends = sum(process["exec"].startswith("iperf3 -c") for process in lab["run"])
    slack_s = SLACK_S + sum(sends * SENT_BITS / units.parse_link_rate(link["rate"]) for link in lab["links"])
    for process in lab["run"]:
        if process["exec"].startswith("ping"):
            result = outcome.process(process["name"])["result"]
            least_s = 2 * delay_s(lab, process["on"], process["exec"].split()[-1])
            # A ping waits two round trips for its last reply, which may have more than that to wait behind.
            assert result["loss"] <= (0.25 if sends else 0), f"{process['name']}: lost {result['loss']:%}"
            rtt_s = result["rtt"]["min"]
            what = f"{process['name']}: {rtt_s} s; the delays are {least_s} s"
            assert least_s - 1e-6 <= rtt_s <= least_s + slack_s, what


def main() -> int:
    """Runs labs from seed FIRST on, COUNT of them; the status is 1 when one failed."""
    count, first = map(int, [*sys.argv[1:], "1000", "0"][:2] if len(sys.argv) != 2 else [sys.argv[1], "0"])
    failed = []
    for seed in range(first, first + count):
        lab = make_lab(seed)
        with tempfile.TemporaryDirectory() as directory:
            with contextlib.redirect_stdout(io.StringIO()):
                outcome = run_in(Path(directory), json.dumps(lab))
            try:
                check(lab, outcome)
            except AssertionError as error:
                failed.append(seed)
                print(f"seed {seed}: {error}", flush=True)
    print(f"{count} labs, {len(failed)} failed{': ' if failed else ''}{', '.join(map(str, failed))}")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
