"""The same network at several TDFs: what ping and iperf3 measure in virtual time, and what that costs.

    .venv/bin/python benches/dilation.py [wall|work [TDF ...]]

SPECIFICATION.md quotes its table. On the wall drive each TDF runs for about 5 times TDF host seconds.
"""

from __future__ import annotations

import json
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
  - {on: a, name: ping, exec: ping -c 10 -i 0.1 b}
  - {on: b, name: server, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: bulk, exec: iperf3 -c b -t 3 -O 1 -J, after: [server, ping]}
"""


def measure(drive: str, tdf: str) -> str:
    """One row of the table."""
    with tempfile.TemporaryDirectory() as directory:
        lab, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        lab.write_text(LAB)
        subprocess.run(
            [DILATON, "run", lab, "--drive", drive, "--tdf", tdf, "--out", out], check=True, capture_output=True
        )
        record = json.loads((out / "run.json").read_text())
    results = {process["name"]: process["result"] for process in record["processes"]}
    goodput = results["bulk"]["throughput"] / 1e6
    # ping's summary: of single replies it prints three digits only.
    rtt = " | ".join(f"{results['ping']['rtt'][name] * 1e3:.3f}" for name in ("min", "avg", "max", "mdev"))
    ratio = record["time"]["host_s"] / record["time"]["virtual_s"]
    return f"| {drive} | {tdf} | {rtt} | {goodput:.3f} | {ratio:.4f} |"


def main() -> None:
    """Prints the table."""
    print("| drive | TDF | RTT min, ms | avg | max | mdev | goodput, Mbit/s | host s per virtual s |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    drives = sys.argv[1:2] or ["wall", "work"]
    for drive in drives:
        for tdf in sys.argv[2:] or ["1", "10", "100"]:
            print(measure(drive, tdf), flush=True)


if __name__ == "__main__":
    main()
