"""What several guests gain and cost on this machine, as ratios, so that they mean something beside other load too.

    PYTHONPATH=python .venv/bin/python benches/guests.py [pairs] [windows] [light] [computing]

- `pairs`: two pairs of nodes with as much to send each, in one guest and in two: how many times as fast two are.
- `windows`: two guests that compute side by side, by the delay of the link between them: what keeping to each
  other's time costs.
- `light`: 40 guests on a ring of links of 1 ms that ping their neighbours: virtual seconds for a host second.
- `computing`: the same computation in 40 guests at once and in one alone: virtual time, and how far apart.

SPECIFICATION.md quotes it.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

COMPUTE = "import time; b = time.monotonic(); sum(i * i for i in range({count})); print(time.monotonic() - b)"
RING = 40


def run(lab: dict[str, Any]) -> tuple[dict[str, Any], dict[str, str]]:
    """The record of a lab's run, and what each of its processes printed."""
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(json.dumps(lab))
        subprocess.run([sys.executable, "-m", "dilaton", "run", path, "--out", out], check=True, capture_output=True)
        printed = {file.stem: file.read_text() for file in out.glob("nodes/*/*.stdout")}
        return json.loads((out / "run.json").read_text()), printed


def pairs() -> None:
    """Two busy pairs in one guest and in two."""
    transfers = [
        part
        for sender, receiver in ("ab", "cd")
        for part in (
            {"on": receiver, "name": f"sink-{receiver}", "exec": "iperf3 -s -1", "ready": {"tcp": 5201}},
            {
                "on": sender,
                "name": f"send-{sender}",
                "exec": f"iperf3 -c {receiver} -n 500M",
                "after": f"sink-{receiver}",
            },
        )
    ]
    host_s = {}
    for count, guests in (1, "xx"), (2, "xy"):
        nodes = {name: {"guest": guests[number // 2]} for number, name in enumerate("abcd")}
        links = [{"endpoints": f"{one} -- {other}", "delay": "10us"} for one, other in ("ab", "cd")]
        record, _ = run({"name": "pairs", "time": {"tdf": 1}, "nodes": nodes, "links": links, "run": transfers})
        host_s[count] = record["time"]["host_s"]
    print(
        f"| two busy pairs | {host_s[1]:.1f} s in one guest, {host_s[2]:.1f} s in two: "
        f"{host_s[1] / host_s[2]:.2f} times as fast |"
    )


def windows() -> None:
    """Two guests that compute, by their lookahead."""
    compute = ["python3", "-c", COMPUTE.format(count=3_000_000)]
    for delay in ("10ms", "1ms", "100us", "10us"):
        lab = {
            "name": "windows",
            "time": {"tdf": 1},
            "guests": "per-node",
            "nodes": {"a": {}, "b": {}},
            "links": [{"endpoints": "a -- b", "delay": delay}],
            "run": [{"on": name, "name": f"compute-{name}", "exec": compute} for name in "ab"],
        }
        record, _ = run(lab)
        waits = [guest["waits"] for guest in record["guests"]]
        agreements = sum(each["agreements"] for each in waits)
        waited_us = sum(each["waited_host_s"] for each in waits) * 1e6 / agreements
        print(
            f"| {delay} between two | {record['time']['virtual_s']:.2f} virtual s in "
            f"{record['time']['host_s']:.2f} s; {agreements} agreements, {waited_us:.0f} us of waiting each |",
            flush=True,
        )


def light() -> None:
    """A ring of guests with light traffic."""
    names = [f"n{number}" for number in range(RING)]
    neighbours = [(name, names[(number + 1) % RING]) for number, name in enumerate(names)]
    lab = {
        "name": "light",
        "time": {"tdf": 1},
        "guests": "per-node",
        "nodes": {name: {} for name in names},
        "links": [{"endpoints": f"{one} -- {other}", "delay": "1ms"} for one, other in neighbours],
        "run": [{"on": one, "name": f"ping-{one}", "exec": f"ping -c 10 -i 1 {other}"} for one, other in neighbours],
    }
    record, printed = run(lab)
    assert all("10 received" in text for text in printed.values())
    virtual_s, host_s = record["time"]["virtual_s"], record["time"]["host_s"]
    print(f"| {RING} guests, 1 ms, a ping a second each | {virtual_s:.1f} virtual s in {host_s:.1f} s |")


def computing() -> None:
    """The same computation in many guests at once and in one alone."""
    found = {}
    for count in (1, RING):
        names = [f"n{number}" for number in range(count)]
        compute = ["python3", "-c", COMPUTE.format(count=1_000_000)]
        lab = {
            "name": "computing",
            "time": {"tdf": 1},
            "guests": "per-node",
            "nodes": {name: {} for name in names},
            "run": [{"on": name, "name": f"compute-{name}", "exec": compute} for name in names],
        }
        found[count] = sorted(float(text) for text in run(lab)[1].values())
    alone, together = found[1][0], found[RING]
    print(
        f"| a computation in {RING} guests, in one alone = 1 | median {statistics.median(together) / alone:.3f}, "
        f"{together[0] / alone:.3f} to {together[-1] / alone:.3f} |"
    )


def main() -> None:
    """Prints a table of what was asked for; all of it without arguments."""
    all_parts = {part.__name__: part for part in (pairs, windows, light, computing)}
    print("| what | measured |\n| --- | --- |", flush=True)
    for name in sys.argv[1:] or all_parts:
        all_parts[name]()


if __name__ == "__main__":
    main()
