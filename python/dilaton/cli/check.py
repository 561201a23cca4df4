"""`dilaton check` and `dilaton plan`; and the reading of labs for all verbs."""

from __future__ import annotations

import sys
from fractions import Fraction
from pathlib import Path

from dilaton.lab import units
from dilaton.lab.errors import LabError
from dilaton.lab.loader import load
from dilaton.lab.model import Lab
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan


class BadInputError(Exception):
    """What the user gave cannot be used; the text says why, a line per problem."""


def lab_file(path: Path) -> Path:
    """The lab file that `path` means: itself, or its `lab.yaml` if it is a directory."""
    return path / "lab.yaml" if path.is_dir() else path


def read_lab(path: Path, tdf: str | None) -> tuple[Lab, Plan]:
    """Reads and plans the lab at `path`, with the TDF of the command line if there is one.

    Raises:
        BadInputError: with a line for every problem.
    """
    try:
        lab = load(lab_file(path))
        if tdf is not None:
            time = lab.time.model_copy(update={"tdf": _tdf(tdf)})
            lab = lab.model_copy(update={"time": time})
        return lab, compile_plan(lab)
    except LabError as error:
        raise BadInputError(str(error)) from error


def _tdf(text: str) -> Fraction:
    try:
        return units.parse_tdf(text)
    except ValueError as error:
        raise BadInputError(f"--tdf: {error}") from error


def check_labs(paths: list[Path]) -> int:
    """Checks labs; returns the exit status."""
    bad = 0
    for path in paths:
        try:
            lab, plan = read_lab(path, None)
        except BadInputError as error:
            print(error, file=sys.stderr)
            bad = 2
        else:
            counts = f"{len(plan.nodes)} nodes, {len(plan.links)} links, {len(plan.processes)} processes"
            print(f"{lab_file(path)}: {lab.name}: {counts}: good")
    return bad


def print_plan(path: Path, tdf: str | None) -> int:
    """Prints the plan of a lab; returns the exit status."""
    try:
        _, plan = read_lab(path, tdf)
    except BadInputError as error:
        print(error, file=sys.stderr)
        return 2
    print(plan.model_dump_json(indent=1))
    return 0
