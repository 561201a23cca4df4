"""CPUs of packed nodes at several TDFs: the time of a computation, and of a server's answers, beside a naive quota.

    PYTHONPATH=python .venv/bin/python benches/cpus.py [--computing 1,5,10,50,100] [--answering 1,10,50] [--repeats 2]

The server is that of examples/cpu-shares. The naive quota is what a control group does (cpu.max): of the guest's CPU
the node may have its CPU's speed over the TDF, all of it at the beginning of each period, of 100 ms if that is a
millisecond, the least that the kernel takes, else of a second. docs/cpu.md quotes the tables.
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

import numpy as np

from dilaton.measure.statistics import distance
from dilaton.report.comparison import TOLERANCE

ROOT = Path(__file__).resolve().parents[1]
COMPUTES = "import time\nbegin = time.monotonic()\nfor _ in range(5000000): pass\nprint(time.monotonic() - begin)"
NODES = 10
SPEED = 0.05
QUOTA_US_MIN = 1000


def run(lab: str, tdf: str) -> tuple[dict[str, Any], list[float]]:
    """Runs a lab: its record, and what its programs printed, one number a line."""
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(lab)
        command = [sys.executable, "-m", "dilaton", "run", str(path), "--tdf", tdf, "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        record: dict[str, Any] = json.loads((out / "run.json").read_text())
        lines = [line for file in sorted(out.glob("nodes/*/*.stdout")) for line in file.read_text().splitlines()]
        return record, [float(line) for line in lines if re.fullmatch(r"[0-9.]+", line)]


def computing() -> str:
    """Ten nodes that do the same work."""
    nodes = {f"n{number}": {"cpu": SPEED} for number in range(NODES)}
    processes = [{"on": node, "name": node, "exec": ["python3", "-I", "-S", "-c", COMPUTES]} for node in nodes]
    return json.dumps({"name": "computing", "nodes": nodes, "run": processes})


def answering(tdf: str, with_quota: bool) -> str:
    """The server of the example, with shares or with a quota in their place."""
    text = (ROOT / "examples" / "cpu-shares" / "lab.yaml").read_text()
    if not with_quota:
        return text
    speeds = dict(re.findall(r"(\w+): \{cpu: ([0-9.]+)\}", text))
    text = re.sub(r"\{cpu: [0-9.]+\}", "{}", text)
    text = text.replace("    ready:", "    after: quota\n    ready:")
    orders = ["mkdir -p /tmp/cg", "mount -t cgroup2 cg /tmp/cg"]
    for node, speed in speeds.items():
        of_guest = float(speed) / float(tdf)
        period_us = 100_000 if of_guest * 100_000 >= QUOTA_US_MIN else 1_000_000
        orders.append(f"echo {round(of_guest * period_us)} {period_us} > /tmp/cg/nodes/{node}/cpu.max")
    quota = {"on": "switch", "name": "quota", "exec": ["sh", "-ec", "; ".join(orders)]}
    return text.replace("\nrun:\n", f"\nrun:\n  - {json.dumps(quota)}\n")


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--computing", default="1,5,10,50,100", help="TDFs")
    parser.add_argument("--answering", default="1,10,50", help="TDFs")
    parser.add_argument("--repeats", type=int, default=2)
    asked = parser.parse_args()
    print("| TDF | virtual s, mean of ten nodes | least | most | charged, of all work | lost |")
    print("| --- | --- | --- | --- | --- | --- |")
    for tdf in asked.computing.split(","):
        for _ in range(asked.repeats):
            record, times = run(computing(), tdf)
            shares = record["fidelity"]["shares"]
            charged = shares["charged_s"] / (shares["charged_s"] + shares["uncharged_s"])
            row = (
                f"{np.mean(times):.4f} | {min(times):.4f} | {max(times):.4f} | {charged:.1%} | {shares['lost_s']:.3f} s"
            )
            print(f"| {tdf} | {row} |", flush=True)
    print("\n| CPU | TDF | answers, ms: mean | 5 % | median | 95 % | KS | Wasserstein | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for name, with_quota in (("share", False), ("quota", True)):
        reference: list[float] | None = None
        for tdf in asked.answering.split(","):
            times = [time for _ in range(asked.repeats) for time in run(answering(tdf, with_quota), tdf)[1]]
            marks = " | ".join(f"{1e3 * value:.2f}" for value in (np.mean(times), *np.percentile(times, (5, 50, 95))))
            reference = reference or times
            apart = distance(reference, times)
            verdict = "different" if apart.relative > TOLERANCE else "indistinguishable"
            print(f"| {name} | {tdf} | {marks} | {apart.ks:.2f} | {apart.relative:.1%} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
