"""`dilaton check` and `dilaton plan`; and the reading of labs for all verbs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dilaton.cli.errors import BAD_INPUT, BadInputError, complain, refusing
from dilaton.lab import syntax
from dilaton.lab.checks import check_time
from dilaton.lab.errors import LabError, field_name
from dilaton.lab.loader import loads, locate, read
from dilaton.lab.model import Lab
from dilaton.lab.settings import parse_setting
from dilaton.lab.topology import ENDINGS
from dilaton.measure import numbers
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan
from dilaton.run import machine

NETWORKS = tuple(ending for ending in ENDINGS if ending != ".json")
"""How names of files end that describe networks; JSON may be a lab too, as YAML knows it."""


@dataclass(frozen=True)
class Overrides:
    """What the command line says instead of the lab; None: what the lab says."""

    tdf: str | None = None
    drive: str | None = None
    max_speed: str | None = None
    settings: tuple[str, ...] = ()
    """Of any field, as PATH=VALUE."""


def lab_file(path: Path) -> Path:
    """The lab file that `path` means: itself, or its `lab.yaml` if it is a directory."""
    return path / "lab.yaml" if path.is_dir() else path


def read_lab(path: Path, overrides: Overrides) -> tuple[Lab, Plan]:
    """As `read_source`, where the text is not wanted."""
    return read_source(path, overrides)[:2]


def read_source(path: Path, overrides: Overrides) -> tuple[Lab, Plan, str]:
    """Reads and plans the lab at `path`, with what the command line says instead; and its text, which is read once.

    Raises:
        LabError: with a line for every mistake in the lab.
        BadInputError: the command line has one.
    """
    if path.name.endswith(NETWORKS):
        raise BadInputError(f"{path}: a network, not a lab; write a lab with topology: {{file: {path.name}}}")
    with refusing(ValueError):
        settings = [parse_setting(text) for text in overrides.settings]
    file = lab_file(path)
    text = read(file)
    lab = loads(text, str(file), settings, machine.core_ghz())
    lab = lab.model_copy(update={"time": lab.time.model_copy(update=parsed_times(overrides))})
    if found := [f"{field_name(finding.path)}: {finding.message}" for finding in check_time(lab.time)]:
        raise BadInputError("\n".join(found))
    try:
        return lab, compile_plan(lab, machine.for_plans()), text
    except LabError as error:
        raise locate(error, text, str(file), settings) from error


def measures_nothing(lab: Lab) -> bool:
    """Whether a run of the lab would be over before it has measured anything that it is asked to."""
    measure = lab.measure
    is_asked = measure.interfaces_ns or measure.tcp_ns or measure.nodes_ns or measure.capture
    return bool(is_asked) and lab.stop_after_ns is None and all(process.background for process in lab.run)


def parsed_times(overrides: Overrides) -> dict[str, object]:
    """The fields of a lab's `time` that the command line gives.

    Raises:
        BadInputError: one cannot be read.
    """
    readers = {"tdf": syntax.parse_tdf, "drive": syntax.parse_drive, "max_speed": syntax.parse_max_speed}
    given = {name: getattr(overrides, name) for name in readers if getattr(overrides, name) is not None}
    fields: dict[str, object] = {}
    for name, text in given.items():
        with refusing(ValueError, option=f"--{name.replace('_', '-')}"):
            fields[name] = readers[name](text)
    return fields


def check_labs(paths: list[Path], overrides: Overrides) -> int:
    """Checks labs, with what the command line says instead; returns the exit status."""
    bad = 0
    for path in paths:
        try:
            lab, plan = read_lab(path, overrides)
        except (LabError, BadInputError) as error:
            complain(error)
            bad = BAD_INPUT
        else:
            counts = {"node": len(plan.nodes), "link": len(plan.links), "process": len(plan.processes)}
            shown = ", ".join(numbers.counted(count, what) for what, count in counts.items())
            good = "good for dilaton up; dilaton run needs a stop_after" if measures_nothing(lab) else "good"
            print(f"{lab_file(path)}: {lab.name}: {shown}: {good}")
    return bad


def print_plan(path: Path, overrides: Overrides) -> None:
    """Prints the plan of a lab."""
    _, plan = read_lab(path, overrides)
    print(plan.model_dump_json(indent=1))
