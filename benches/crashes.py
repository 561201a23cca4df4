"""What crashes at random instants take of a database, by how it syncs and what its disk does at a loss of power.

    PYTHONPATH=python:. .venv/bin/python benches/crashes.py [--crashes 50] [--seed 1]

Each node counts in an SQLite database (`tests/sqlite_store.py`), one transaction after the other, and all lose their
power about so often, at the same instants. A transaction that was reported as committed and is missing at the next boot
is lost. docs/disks.md quotes the table.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.sqlite_store import losses

STORE = Path(__file__).resolve().parents[1] / "tests" / "sqlite_store.py"

NODES = {
    "full-kept": ("FULL", "kept"),
    "full-volatile": ("FULL", "volatile"),
    "full-torn": ("FULL", "torn"),
    "off-torn": ("OFF", "torn"),
}
"""PRAGMA synchronous, and the cache of the disk."""

DISK = "fixed: {read_latency: 200us, write_latency: 2ms}, size: 64MB, mount: /srv"

EVERY_S = 0.4
"""From one crash to the next, on average."""


def lab(crashes: int, seed: int) -> str:
    """A lab whose nodes crash about so often."""
    nodes = [f"  {name}: {{disk: {{{DISK}, cache: {cache}}}}}" for name, (_, cache) in NODES.items()]
    run = [
        f"  - {{on: {name}, name: {name}, background: true, exec: [{sys.executable}, {STORE}, '{synchronous}']}}"
        for name, (synchronous, _) in NODES.items()
    ]
    chance = 'random: {every: uniform 200ms..600ms, for: 50ms, of: [{crash: "*"}]}'
    lasts_s = crashes * EVERY_S
    return "\n".join(
        [
            f"name: crashes\nseed: {seed}\ntime: {{drive: event}}\nnodes:",
            *nodes,
            f"links: [{{endpoints: [{', '.join(NODES)}], delay: 1ms}}]\nrun:",
            *run,
            f"stop_after: {lasts_s + 1:.0f}s",
            f"faults: [{{at: 200ms, for: {lasts_s:.1f}s, {chance}}}]\n",
        ]
    )


def main() -> None:
    """Prints the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--crashes", type=int, default=50)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        written, out = Path(directory) / "lab.yaml", Path(directory) / "run"
        written.write_text(lab(asked.crashes, asked.seed))
        subprocess.run([sys.executable, "-m", "dilaton", "run", written, "--out", out], check=True, capture_output=True)
        verdict = json.loads((out / "run.json").read_text())["verdict"]["level"]
        print(f"verdict: {verdict}\n")
        print("| synchronous | cache | crashes | transactions | crashes with a loss | lost at most | unreadable |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for name, (synchronous, cache) in NODES.items():
            text = (out / "nodes" / name / f"{name}.stdout").read_text()
            lost = losses(text)
            counts = [len(lost), text.count("committed"), sum(one > 0 for one in lost), max(lost), text.count("broken")]
            print("|", " | ".join([synchronous, cache, *map(str, counts)]), "|")


if __name__ == "__main__":
    main()
