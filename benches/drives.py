"""Whether a lab gives the same results on every drive and at every TDF: throughput and the distribution of RTTs.

    PYTHONPATH=python .venv/bin/python benches/drives.py [--drives work,wall] [--tdfs 1,10,100] [--seconds 20]

TCP fills a link of 50 Mbit/s while ping looks at the queue before it. The KS distance of the RTTs is to the first row.
The wall drive takes TDF host seconds for each virtual second. SPECIFICATION.md quotes its table.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from scipy.stats import ks_2samp

LAB = """
name: drives
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], rate: 50Mbit, delay: 20ms, queue: {{limit: 200}}}}]
run:
  - {{on: b, name: server, exec: iperf3 -s, background: true, ready: {{tcp: 5201}}}}
  - {{on: a, name: bulk, exec: iperf3 -c b -t {seconds} -J, after: server}}
  - {{on: a, name: ping, exec: ping -i 0.05 -c {pings} b, after: server}}
"""

RTT = re.compile(r"time=([0-9.]+) ms")


def measure(drive: str, tdf: str, seconds: int) -> tuple[list[float], dict[str, Any]]:
    """RTTs in ms, and the run record."""
    with tempfile.TemporaryDirectory() as directory:
        lab, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        lab.write_text(LAB.format(seconds=seconds, pings=seconds * 20))
        command = [sys.executable, "-m", "dilaton", "run", str(lab), "--drive", drive, "--tdf", tdf]
        subprocess.run([*command, "--out", str(out)], check=True, capture_output=True)
        output = (out / "nodes/a/ping.stdout").read_text()
        return [float(found) for found in RTT.findall(output)], json.loads((out / "run.json").read_text())


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--drives", default="work,wall")
    parser.add_argument("--tdfs", default="1,10,100")
    parser.add_argument("--seconds", type=int, default=20, help="of virtual time")
    asked = parser.parse_args()
    print("| drive | TDF | goodput, Mbit/s | RTT p5, ms | median | p95 | KS distance | verdict |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    first: list[float] = []
    for drive in asked.drives.split(","):
        for tdf in asked.tdfs.split(","):
            rtts, record = measure(drive, tdf, asked.seconds)
            first = first or rtts
            low, middle, high = (sorted(rtts)[int(len(rtts) * share)] for share in (0.05, 0.5, 0.95))
            results = {process["name"]: process["result"] for process in record["processes"]}
            goodput = results["bulk"]["throughput"] / 1e6
            distance = ks_2samp(first, rtts).statistic
            figures = [f"{goodput:.3f}", *(f"{rtt:.2f}" for rtt in (low, middle, high)), f"{distance:.3f}"]
            print("|", " | ".join([drive, tdf, *figures, record["verdict"]["level"]]), "|", flush=True)


if __name__ == "__main__":
    main()
