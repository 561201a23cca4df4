"""CPUs of packed nodes at several TDFs: the time of a computation. docs/cpu.md quotes the table.

PYTHONPATH=python .venv/bin/python benches/cpus.py [--tdfs 1,5,10,50,100] [--repeats 2]
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

COMPUTES = "import time\nbegin = time.monotonic()\nfor _ in range(5000000): pass\nprint(time.monotonic() - begin)"
NODES = 10
SPEED = 0.05


def run(lab: str, tdf: str) -> tuple[dict[str, float], list[float]]:
    """Runs a lab: its shares, with for how long its programs were there, and what they printed, one number a line."""
    with tempfile.TemporaryDirectory() as directory:
        path, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        path.write_text(lab)
        command = [sys.executable, "-m", "dilaton", "run", str(path), "--tdf", tdf, "--out", str(out)]
        subprocess.run(command, check=True, capture_output=True)
        shares: dict[str, float] = json.loads((out / "run.json").read_text())["fidelity"]["shares"] or {}
        shares["lives_s"] = lives_s(out)
        lines = [line for file in sorted(out.glob("nodes/*/*.stdout")) for line in file.read_text().splitlines()]
        return shares, [float(line) for line in lines if re.fullmatch(r"[0-9.]+", line)]


def lives_s(out: Path) -> float:
    """For how long the programs of a run were there, virtual seconds, summed."""
    events = [json.loads(line) for line in (out / "events.jsonl").read_text().splitlines()]
    signs = {"started": -1, "exited": 1}
    return float(sum(signs[event["kind"]] * event["t_ns"] for event in events if event["kind"] in signs)) / 1e9


def computing() -> str:
    """Ten nodes that do the same work."""
    nodes = {f"n{number}": {"cpu": SPEED} for number in range(NODES)}
    processes = [{"on": node, "name": node, "exec": ["python3", "-I", "-S", "-c", COMPUTES]} for node in nodes]
    return json.dumps({"name": "computing", "nodes": nodes, "run": processes})


def main() -> None:
    """Prints the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tdfs", default="1,5,10,50,100")
    parser.add_argument("--repeats", type=int, default=2)
    asked = parser.parse_args()
    rows: dict[str, list[tuple[dict[str, float], list[float]]]] = {}
    for _ in range(asked.repeats):
        # In turn, so that what the host does meanwhile is shared by all.
        for tdf in asked.tdfs.split(","):
            rows.setdefault(tdf, []).append(run(computing(), tdf))
    print(
        "| TDF | virtual s, mean of the nodes | least | most | life over work at speed | charged of all work | lost |"
    )
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for tdf, runs in rows.items():
        times = [time for _, of_run in runs for time in of_run]
        names = ("charged_s", "uncharged_s", "busy_s", "lost_s", "lives_s")
        charged, other, busy, lost, lives = (sum(shares[name] for shares, _ in runs) for name in names)
        marks = f"{np.mean(times):.4f} | {min(times):.4f} | {max(times):.4f} | {lives / busy:.4f}"
        print(f"| {tdf} | {marks} | {charged / (charged + other):.1%} | {lost / (busy + lost):.2%} |")


if __name__ == "__main__":
    main()
