"""What measuring costs, in host time of the guest's CPU.

    .venv/bin/python benches/measure.py [TDF ...]

Samples: a star of 50 links, so 100 interfaces, sampled every 100 ms, with 20 TCP flows of 100 Mbit/s through its hub,
sampled every 10 ms at both ends. Captures: the same bytes over a link that only the guest's CPU limits, without
and with a capture at one end. On the work drive the virtual time that this takes is CPU time,
whatever else the host does.
"""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

LEAVES = 50
FLOWS = 20
START_S = 2
"""When the flows begin, all servers being up."""
FLOW_S = 2
BYTES = 400_000_000
REPEATS = 3


def star(tdf: str) -> str:
    """The lab of the samples."""
    lines = [f"name: star\ntime: {{drive: work, tdf: {tdf}}}\nnodes:\n  hub:"]
    lines += [f"  n{leaf}:" for leaf in range(LEAVES)]
    lines += ["links:", *(f"  - {{endpoints: hub -- n{leaf}, rate: 100Mbit, delay: 5ms}}" for leaf in range(LEAVES))]
    lines.append("run:")
    for flow in range(FLOWS):
        server = FLOWS + flow
        exec_client = f"iperf3 -c n{server} -t {FLOW_S} -J"
        lines.append(f"  - {{on: n{server}, name: s{flow}, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}")
        lines.append(f"  - {{on: n{flow}, name: c{flow}, exec: {exec_client}, after: s{flow}, start: {START_S}s}}")
    return "\n".join([*lines, "measure: {interfaces: 100ms, tcp: 10ms}", ""])


def transfer(tdf: str, capture: str) -> str:
    """The lab of the captures."""
    return f"""
name: transfer
time: {{drive: work, tdf: {tdf}}}
nodes: {{a: {{}}, b: {{}}}}
links: ["a:eth0 -- b:eth0"]
run:
  - {{on: b, name: server, exec: iperf3 -s, ready: {{tcp: 5201}}, background: true}}
  - {{on: a, name: bulk, exec: iperf3 -c b -n {BYTES} -J, after: server}}
measure: {{interfaces: 100ms, capture: [{capture}]}}
"""


def run(lab: str, directory: Path) -> dict[str, Any]:
    """Runs a lab in a new directory below `directory`, and returns its record, with the rows of sampler.csv."""
    out = directory / str(len(list(directory.iterdir())))
    (directory / "lab.yaml").write_text(lab)
    command = [sys.executable, "-m", "dilaton", "run", str(directory / "lab.yaml"), "--out", str(out)]
    subprocess.run(command, check=True, capture_output=True)
    record: dict[str, Any] = json.loads((out / "run.json").read_text())
    record["samples"] = list(csv.DictReader((out / "measure" / "guest0" / "sampler.csv").open()))
    return record


def transfer_s(record: dict[str, Any]) -> float:
    """Host seconds of CPU time that the transfer took."""
    result = next(process["result"] for process in record["processes"] if process["name"] == "bulk")
    return float(result["intervals"][-1]["end_s"] * record["time"]["tdf"])


def samples(tdf: str, directory: Path) -> None:
    """Prints a row for each kind of sample."""
    record = run(star(tdf), directory)
    for kind in ("tcp", "interfaces"):
        rows = [row for row in record["samples"] if row["kind"] == kind]
        cost_s = sum(int(row["cpu_ns"]) for row in rows) * record["time"]["tdf"] / 1e9
        late_us = sorted(int(row["late_ns"]) for row in rows)[len(rows) * 99 // 100] / 1e3
        missed = sum(int(row["missed"]) for row in rows)
        print(
            f"| {tdf} | {kind} | {len(rows)} | {cost_s / len(rows) * 1e6:.0f} "
            f"| {cost_s / record['time']['host_s']:.2%} | {late_us:.0f} | {missed} |",
            flush=True,
        )


def captures(tdf: str, directory: Path) -> None:
    """Prints a row for each way to capture; the least of several runs, since other load only adds."""
    plain = min(transfer_s(run(transfer(tdf, ""), directory)) for _ in range(REPEATS))
    for what, capture in (("snaplen 96", '{interface: "b:eth0", snaplen: 96}'), ("whole packets", '"b:eth0"')):
        records = [run(transfer(tdf, capture), directory) for _ in range(REPEATS)]
        record = min(records, key=transfer_s)
        rows = [row for row in record["samples"] if row["kind"] == "capture"]
        packets = sum(int(row["count"]) for row in rows)
        writing_us = sum(int(row["cpu_ns"]) for row in rows) * record["time"]["tdf"] / 1e3 / packets
        cost_us = (transfer_s(record) - plain) * 1e6 / packets
        print(
            f"| {tdf} | {what} | {packets} | {plain * 1e6 / packets:.2f} | {cost_us:.2f} | {writing_us:.2f} |",
            flush=True,
        )


def main() -> None:
    """Prints the tables."""
    tdfs = sys.argv[1:] or ["1", "10"]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        print("| TDF | sample | samples | us each | of host time | 99 % at most, us late | missed |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for tdf in tdfs:
            samples(tdf, directory)
        print("\n| TDF | capture | packets | us a packet without | us more with | of which the sampler |")
        print("| --- | --- | --- | --- | --- | --- |")
        for tdf in tdfs:
            captures(tdf, directory)


if __name__ == "__main__":
    main()
