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

import numpy as np

from dilaton.measure.statistics import distance
from dilaton.report.comparison import TOLERANCE

ROOT = Path(__file__).resolve().parents[1]
COMPUTES = "import time\nbegin = time.monotonic()\nfor _ in range(5000000): pass\nprint(time.monotonic() - begin)"
NODES = 10
SPEED = 0.05
QUOTA_US_MIN = 1000


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
    rows: dict[str, list[tuple[dict[str, float], list[float]]]] = {}
    for _ in range(asked.repeats):
        # In turn, so that what the host does meanwhile is shared by all.
        for tdf in asked.computing.split(","):
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
    answers: dict[tuple[str, str], list[float]] = {}
    for _ in range(asked.repeats):
        for name in ("share", "quota"):
            for tdf in asked.answering.split(","):
                answers.setdefault((name, tdf), []).extend(run(answering(tdf, name == "quota"), tdf)[1])
    print("\n| CPU | TDF | answers, ms: mean | 5 % | median | 95 % | KS | Wasserstein | |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- | --- |")
    for (name, tdf), times in answers.items():
        marks = " | ".join(f"{1e3 * value:.2f}" for value in (np.mean(times), *np.percentile(times, (5, 50, 95))))
        apart = distance(answers[name, asked.answering.split(",")[0]], times)
        verdict = "different" if apart.relative > TOLERANCE else "indistinguishable"
        print(f"| {name} | {tdf} | {marks} | {apart.ks:.2f} | {apart.relative:.1%} | {verdict} |", flush=True)


if __name__ == "__main__":
    main()
