"""What people type while a lab runs: changes of a link, `delay=50ms b_to_a.loss=5%`, and faults, `pause=db1 for=5s`."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from dilaton.lab.checks import course
from dilaton.lab.checks.links import check_change, check_course, check_faults, check_segment
from dilaton.lab.errors import Finding, LabError, Path, Problem, field_name
from dilaton.lab.faults.drawing import drawn
from dilaton.lab.faults.fault import Fault
from dilaton.lab.model import Lab, scene_of
from dilaton.lab.parts.links import Change, Link
from dilaton.lab.settings import Setting, apply_settings
from dilaton.lab.text import units
from dilaton.lab.text.document import MAIN_FIELDS
from dilaton.lab.text.wording import message

_ITEM = re.compile(r", faults\[\d+\]")
"""Where another fault is written, which need not be in the lab's file."""


def read_change(link: Link, settings: Sequence[Setting], at_ns: int, directory: str) -> Change:
    """Reads a change of a link, or of a segment.

    Args:
        link: As the lab has it.
        settings: What it sets, as fields of an item of `changes:`, with dots between a field and its parts.
        at_ns: When, nanoseconds since the run's virtual 0.
        directory: Where paths of files in it start.

    Raises:
        LabError: it has mistakes; it names them all.
    """
    data: dict[str, Any] = {}
    apply_settings(data, settings)
    misplaced = sorted({"at", "link"} & set(data))
    if misplaced:
        raise LabError(
            [_problem(name, "not something that a change sets; it is given with the link") for name in misplaced]
        )
    given = data | {"at": "0s", "link": link.name}
    try:
        change = Change.model_validate(given, by_name=False, context={"directory": directory})
    except ValidationError as error:
        details = [detail | {"loc": ("changes", 0, *detail["loc"])} for detail in error.errors()]
        raise LabError([_problem(_as_said(one["loc"][2:], data), message(one)) for one in details]) from error
    _raise(check_change(change, ()), check_segment(change, ()) if len(link.endpoints) > 2 else ())
    return change.model_copy(update={"at_ns": at_ns})


def read_faults(
    lab: Lab, written: Mapping[str, Any], name: str, now_ns: int, directory: str, core_ghz: float | None = None
) -> list[Fault]:
    """Reads a fault that begins now, or later: one of each thing that it means.

    Args:
        lab: In which; its faults with the instants at which they have begun and ended, as far as they have.
        written: Its fields, as of an item of `faults:`.
        name: What it is called unless that is written, and what is drawn for it follows from.
        now_ns: Nanoseconds since the run's virtual 0.
        directory: Where paths of files in it start.
        core_ghz: What CPU speeds in GHz are measured by.

    Raises:
        LabError: It has mistakes; it names them all.
    """
    when = {} if "at" in written or "after" in written else {"at": now_ns}
    context = {"directory": directory, "core_ghz": core_ghz}
    try:
        fault = Fault.model_validate({**_as_text(written), **when}, by_name=False, context=context)
    except ValidationError as error:
        details = [detail | {"loc": ("faults", 0, *detail["loc"])} for detail in error.errors()]
        raise LabError([_problem(_as_said(one["loc"][2:], written), message(one)) for one in details]) from error
    place = 1 + max((one.place for one in lab.faults), default=-1)
    name = fault.name or name
    made = drawn([fault.model_copy(update={"name": name}).at_place(place)], scene_of(lab), lab.faults)
    if not made:
        raise LabError([_problem("random", "draws no fault; have them more often, or for longer")])
    if fault.at_ns is not None and fault.at_ns < now_ns:
        at, now = units.format_duration(fault.at_ns), units.format_duration(now_ns)
        raise LabError([_problem("at", f"{at}: virtual time is already at {now}, and never goes back")])
    if taken := sorted(course.names(lab) & {name, *(one.name for one in made)}):
        raise LabError([_problem("name", f"{taken[0]} is the name of something else already")])
    whole = lab.model_copy(update={"faults": [*lab.faults, *made], "stop_after_ns": None})
    found = itertools.chain(course.check_course(whole), check_faults(whole))
    mistakes = [one for one in found if one.path[:2] == ("faults", place)]
    _raise([Finding(one.path[2:], _ITEM.sub("", one.message)) for one in mistakes])
    return made


def _as_text(value: Any) -> Any:
    """Values of Python or JSON as a lab's file has them, where numbers are text that still needs its unit."""
    match value:
        case Mapping():
            return {field: _as_text(part) for field, part in value.items()}
        case list():
            return [_as_text(part) for part in value]
        case int() | float():
            return json.dumps(value)
    return value


def check_changed(link: Link, changes: Sequence[Change], faults: Iterable[Change] = ()) -> None:
    """Checks what a link becomes by all its changes, and under faults; of one instant, the later changes count.

    Raises:
        LabError: it could not be that.
    """
    in_order = sorted(changes, key=lambda one: one.at_ns)
    _raise(check_course(link, (), [((), one) for one in in_order], [((), one) for one in faults]))


def _as_said(path: Path, said: Any) -> str:
    """The field at a path, by the name by which it was said: `delay=5` means `delay.mean`, and is told of `delay`."""
    if path[-1] not in MAIN_FIELDS:
        return field_name(path)
    for step in path[:-1]:
        said = said.get(step) if isinstance(said, Mapping) else None
    return field_name(path if isinstance(said, Mapping) else path[:-1])


def _raise(*findings: Iterable[Finding]) -> None:
    problems = [_problem(field_name(one.path), one.message) for one in itertools.chain(*findings)]
    if problems:
        raise LabError(problems)


def _problem(field: str, what: str) -> Problem:
    return Problem("", 0, 0, field, what)
