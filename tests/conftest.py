"""What all tests share: running labs as users do, through the command line, and keeping what a failed one left."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[1]


@dataclass
class Outcome:
    """What a command line left: exit status, terminal text, run directory and its record."""

    status: int
    terminal: str
    path: Path

    @property
    def record(self) -> dict[str, Any]:
        """The contents of run.json."""
        data: dict[str, Any] = json.loads((self.path / "run.json").read_text())
        return data

    @property
    def events(self) -> list[dict[str, Any]]:
        """The contents of events.jsonl."""
        return [json.loads(line) for line in (self.path / "events.jsonl").read_text().splitlines()]

    def process(self, name: str) -> dict[str, Any]:
        """The record of one process."""
        found: dict[str, Any] = next(process for process in self.record["processes"] if process["name"] == name)
        return found

    def stdout(self, node: str, process: str) -> str:
        """The standard output of a process."""
        return (self.path / "nodes" / node / f"{process}.stdout").read_text()


def environment() -> dict[str, str]:
    """The environment in which the command line runs."""
    return os.environ | {"PYTHONPATH": str(ROOT / "python")}


def command_line(*arguments: str | Path) -> list[str]:
    """`dilaton` with these arguments."""
    return [sys.executable, "-m", "dilaton", *map(str, arguments)]


RunLab = Callable[..., Outcome]


@pytest.fixture
def run_lab(tmp_path: Path) -> RunLab:
    """Runs a lab given as text or as a path, with further arguments of `dilaton run`."""

    def run(lab: str | Path, *arguments: str) -> Outcome:
        number = len(list(tmp_path.iterdir()))
        if isinstance(lab, str):
            path = tmp_path / f"{number}.yaml"
            path.write_text(lab)
        else:
            path = lab
        out = tmp_path / f"{number}-run"
        command = command_line("run", path, "--out", out, *arguments)
        done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
        # Shown by pytest when the test fails, with the command that repeats it.
        print("$", *command, done.stdout, done.stderr, sep="\n")
        return Outcome(done.returncode, done.stdout + done.stderr, out)

    return run
