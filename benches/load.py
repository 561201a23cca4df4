"""What other load on the host does to results: the same lab without it and beside busy loops, on both drives.

    PYTHONPATH=python .venv/bin/python benches/load.py [--loops 8] [--repeats 3]

The loops each run in a session of their own, which the host's scheduler weighs like a whole guest. SPECIFICATION.md
quotes its table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

LAB = """
name: load
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 100Mbit, delay: 5ms}]
run:
  - {on: a, name: ping, exec: ping -c 100 -i 0.02 b}
  - {on: b, name: server, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: bulk, exec: iperf3 -c b -t 5 -J, after: [server, ping]}
"""


def measure(drive: str, loops: int) -> str:
    """One row of the table."""
    spin = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(spin, start_new_session=True) for _ in range(loops)]
    try:
        with tempfile.TemporaryDirectory() as directory:
            lab, out = Path(directory) / "lab.yaml", Path(directory) / "run"
            lab.write_text(LAB)
            command = [sys.executable, "-m", "dilaton", "run", str(lab), "--drive", drive, "--out", str(out)]
            subprocess.run(command, check=True, capture_output=True)
            record = json.loads((out / "run.json").read_text())
    finally:
        for other in others:
            other.kill()
            other.wait()
    results = {process["name"]: process["result"] for process in record["processes"]}
    rtt = " | ".join(f"{results['ping']['rtt'][name] * 1e3:.3f}" for name in ("avg", "max", "mdev"))
    goodput = results["bulk"]["throughput"] / 1e6
    host_s, verdict = record["time"]["host_s"], record["verdict"]["level"]
    return f"| {drive} | {loops} | {rtt} | {goodput:.3f} | {host_s:.1f} | {verdict} |"


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--loops", type=int, default=8)
    parser.add_argument("--repeats", type=int, default=3)
    asked = parser.parse_args()
    print("| drive | busy loops | RTT avg, ms | max | mdev | goodput, Mbit/s | host s | verdict |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for drive in ("work", "wall"):
        for loops in (0, asked.loops):
            for _ in range(asked.repeats):
                print(measure(drive, loops), flush=True)


if __name__ == "__main__":
    main()
