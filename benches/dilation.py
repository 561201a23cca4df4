"""The same network at several TDFs: what ping and iperf3 measure in virtual time, and what the wall drive costs.

    .venv/bin/python benches/dilation.py [TDF ...]

SPECIFICATION.md quotes its table. Each TDF runs for about 12 times TDF host seconds.
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

DILATON = Path(__file__).resolve().parents[1] / "dilaton"
LAB = """
name: dilation
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 50Mbit, delay: 20ms}]
run:
  - {on: a, name: ping, exec: ping -c 20 -i 0.1 b}
  - {on: b, name: server, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: bulk, exec: iperf3 -c b -t 8 -O 1 -J, after: [server, ping]}
"""


def measure(tdf: str) -> str:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as directory:
        lab, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        lab.write_text(LAB)
        subprocess.run([DILATON, "run", lab, "--tdf", tdf, "--out", out], check=True, capture_output=True)
        record = json.loads((out / "run.json").read_text())
    results = {process["name"]: process["result"] for process in record["processes"]}
    samples = [sample * 1e3 for sample in results["ping"]["samples"]]
    goodput = results["bulk"]["throughput"] / 1e6
    rtt = f"{min(samples):.3f} | {statistics.median(samples):.3f} | {statistics.mean(samples):.3f} | {max(samples):.3f}"
    ratio = record["time"]["host_s"] / record["time"]["virtual_s"]
    return f"| {tdf} | {rtt} | {goodput:.3f} | {ratio:.4f} |"


def main() -> None:
    """Prints the table."""
    print("| TDF | RTT min, ms | median | mean | max | goodput, Mbit/s | host s per virtual s |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for tdf in sys.argv[1:] or ["1", "10", "100"]:
        print(measure(tdf), flush=True)


if __name__ == "__main__":
    main()
