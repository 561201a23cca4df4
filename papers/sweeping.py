"""What the reproductions share: running a lab or a sweep of it, and loading the runs."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

import dilaton
from dilaton.host.processes import ending_with_us
from dilaton.run.loading import Run

CONFIRM = ["--confirm"] if os.environ.get("PAPERS_CONFIRM") else []
"""What runs are told where `./dev papers --confirm` makes them."""


def options(description: str, repeat: int, **lists: str) -> argparse.Namespace:
    """The command line of a reproduction: `out`, which is there then, `repeat`, `jobs`, lists with their defaults."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--out", type=Path, required=True, help="where runs, tables and figures go")
    parser.add_argument("--repeat", type=int, default=repeat, help="runs of each point (default %(default)s)")
    parser.add_argument("--drives", default="work", help="work, wall, or work,wall (default %(default)s)")
    for name, default in lists.items():
        parser.add_argument(f"--{name.replace('_', '-')}", default=default, help="a part of it (default %(default)s)")
    parser.add_argument("--jobs", type=int, default=1, help="runs side by side (default %(default)s)")
    chosen = parser.parse_args()
    chosen.out.mkdir(parents=True, exist_ok=True)
    return chosen


def run(lab: dict[str, Any], out: Path) -> dict[str, Any]:
    """Runs a lab, unless that was done already, and returns its record; ends the program when the run fails.

    A run that did not come to its end is run again. One of another lab is not taken for this one's.
    """
    path, text = out.with_suffix(".yaml"), json.dumps(lab, indent=1)
    if not has_finished(out):
        shutil.rmtree(out, ignore_errors=True)
        out.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        command = [sys.executable, "-m", "dilaton", "run", str(path), "--out", str(out), *CONFIRM]
        with out.with_suffix(".log").open("w") as log:
            subprocess.run(command, stdout=log, stderr=log, check=False, preexec_fn=ending_with_us())
    elif path.read_text() != text:
        sys.exit(f"{out}: is a run of another lab, {path}; give another --out")
    if not has_finished(out):
        sys.exit(f"{out}: did not come to its end; see {out.with_suffix('.log')}")
    record: dict[str, Any] = json.loads((out / "run.json").read_text())
    return record


def has_finished(out: Path) -> bool:
    """Whether there is a run in that directory which has come to its end, and is confirmed if that is wanted."""
    path = out / "run.json"
    record = json.loads(path.read_text()) if path.is_file() else {"state": "never"}
    return record["state"] == "finished" and bool(not CONFIRM or record["confirmation"])


def sweep(lab: Path, out: Path, values: Sequence[str], repeat: int, jobs: int, machines: int = 1) -> None:
    """Runs a sweep, or what is left of it, each run over so many machines; ends the program when a run fails."""
    command = [sys.executable, "-m", "dilaton", "sweep", str(lab), "--out", str(out)]
    command += ["--repeat", str(repeat), "--jobs", str(jobs), "--machines", str(machines), *CONFIRM]
    for value in values:
        command += ["--set", value]
    if status := subprocess.run(command, check=False, preexec_fn=ending_with_us()).returncode:
        sys.exit(status)


def runs(out: Path) -> Iterator[tuple[pd.Series, Run]]:
    """The runs of a sweep, with their rows of its table."""
    for _, row in pd.read_csv(out / "sweep.csv", dtype={"time.tdf": str}).iterrows():
        yield row, dilaton.load(out / row["run"])
