"""How near the planner's prediction of host time is: three labs, scaled, predicted by a pilot of a tenth, run in full.

    PYTHONPATH=python .venv/bin/python benches/scale.py

docs/scale.md quotes the table.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

WORKERS, PAIRS, STORES = 40, 3, 8

REQUESTS = "while True: sum(range(20000)); time.sleep(random.expovariate(20))"
"""A worker that does a little, and waits for 50 ms in the mean."""


def workers() -> dict[str, Any]:
    """Forty machines on a star that compute now and then, onto four guests."""
    return {
        "topology": {"generate": "star", "leaves": str(WORKERS), "rate": "1Gbit", "delay": "1ms"},
        "nodes": {"n0": {"kind": "switch"}},
        "stop_after": "20s",
        "run": [
            {
                "on": f"n{number}",
                "name": f"worker{number}",
                "exec": ["python3", "-c", f"import random, time\nrandom.seed({number})\n{REQUESTS}"],
            }
            for number in range(1, WORKERS + 1)
        ],
    }


def flows() -> dict[str, Any]:
    """Pairs with a TCP flow each, onto two guests."""
    names = [f"{side}{number}" for number in range(PAIRS) for side in "ab"]
    servers = [
        {"on": f"b{n}", "name": f"s{n}", "exec": "iperf3 -s", "ready": {"tcp": "5201"}, "background": "true"}
        for n in range(PAIRS)
    ]
    clients = [
        {"on": f"a{n}", "name": f"c{n}", "exec": f"iperf3 -c b{n} -t 60", "after": f"s{n}"} for n in range(PAIRS)
    ]
    return {
        "nodes": {name: {} for name in names},
        "links": [{"endpoints": [f"a{n}", f"b{n}"], "rate": "100Mbit", "delay": "5ms"} for n in range(PAIRS)],
        "stop_after": "8s",
        "run": [*servers, *clients],
    }


def stores() -> dict[str, Any]:
    """Machines that read their disks at random places, onto two guests."""
    options = "--name=x --filename=/dev/vda --direct=1 --rw=randread --bs=4k --ioengine=libaio --iodepth=4 --time_based"
    return {
        "defaults": {"memory": "160MB", "disk": {"model": "ssd-sata", "mount": "none"}},
        "nodes": {f"d{number}": {} for number in range(STORES)},
        "stop_after": "3s",
        "run": [
            {"on": f"d{n}", "name": f"fio{n}", "exec": f"fio {options} --rate_iops=2000 --runtime=60"}
            for n in range(STORES)
        ],
    }


LABS = {"workers": (workers, 4), "flows": (flows, 2), "stores": (stores, 2)}


def dilaton(*arguments: str | Path) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "dilaton", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done.stdout


def main() -> None:
    """Prints what was predicted, and what the run's record says of its boot and its run."""
    print(
        "| lab | machines, guests | TDF | predicted, s | measured, s | error |\n| --- | --- | --- | --- | --- | --- |"
    )
    with tempfile.TemporaryDirectory() as directory:
        for name, (make, onto) in LABS.items():
            path = Path(directory) / f"{name}.yaml"
            path.write_text(json.dumps({"name": name, **make()}))
            said = dilaton("scale", path, "--onto", str(onto))
            found = re.search(r"([\d.]+) s for [\d.]+ virtual s", said)
            tdf, count = re.search(r"TDF\s+(\d+)", said), re.search(r"machines\s+(\d+)", said)
            if not (found and tdf and count):
                sys.exit(f"no prediction in {said}")
            dilaton("run", path.with_name(f"{name}-onto-{onto}.yaml"), "--out", path.with_suffix(""))
            times = json.loads((path.with_suffix("") / "run.json").read_text())["time"]
            host_s, predicted_s = times["boot_host_s"] + times["host_s"], float(found[1])
            error = f"{predicted_s / host_s - 1:+.0%}"
            print(
                f"| {name} | {count[1]}, {onto} | {tdf[1]} | {predicted_s:.1f} | {host_s:.1f} | {error} |", flush=True
            )


if __name__ == "__main__":
    main()
