"""What the reproductions share: running a sweep of the paper's lab, and loading its runs."""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pandas as pd

import dilaton
from dilaton.run.loading import Run


def options(description: str, repeat: int) -> argparse.Namespace:
    """The command line of a reproduction: `out`, `repeat` and `jobs`."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, required=True, help="where runs, tables and figures go")
    parser.add_argument("--repeat", type=int, default=repeat, help="runs of each point (default %(default)s)")
    parser.add_argument("--drives", default="work", help="work, wall, or work,wall (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side (default %(default)s)")
    return parser.parse_args()


def sweep(lab: Path, out: Path, values: Sequence[str], repeat: int, jobs: int) -> None:
    """Runs a sweep, or what is left of it; ends the program when a run fails."""
    command = [sys.executable, "-m", "dilaton", "sweep", str(lab), "--out", str(out)]
    command += ["--repeat", str(repeat), "--jobs", str(jobs)]
    for value in values:
        command += ["--set", value]
    if status := subprocess.run(command, check=False).returncode:
        sys.exit(status)


def runs(out: Path) -> Iterator[tuple[pd.Series, Run]]:
    """The runs of a sweep, with their rows of its table."""
    for _, row in pd.read_csv(out / "sweep.csv", dtype={"time.tdf": str}).iterrows():
        yield row, dilaton.load(out / row["run"])
