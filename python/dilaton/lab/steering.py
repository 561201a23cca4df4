"""Changes of a link as people type them while a lab runs: `delay=50ms b_to_a.loss=5%`."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import ValidationError

from dilaton.lab.checks.links import check_change, check_course, check_segment
from dilaton.lab.errors import Finding, LabError, Problem, field_name
from dilaton.lab.parts.links import Change, Link
from dilaton.lab.settings import Setting, apply_settings
from dilaton.lab.text.wording import message


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
        raise LabError([_problem(field_name(one["loc"][2:]), message(one)) for one in details]) from error
    _raise(check_change(change, ()), check_segment(change, ()) if len(link.endpoints) > 2 else ())
    return change.model_copy(update={"at_ns": at_ns})


def check_changed(link: Link, changes: Sequence[Change], faults: Iterable[Change] = ()) -> None:
    """Checks what a link becomes by all its changes, and under faults; of one instant, the later changes count.

    Raises:
        LabError: it could not be that.
    """
    in_order = sorted(changes, key=lambda one: one.at_ns)
    _raise(check_course(link, (), [((), one) for one in in_order], [((), one) for one in faults]))


def _raise(*findings: Iterable[Finding]) -> None:
    problems = [_problem(field_name(one.path), one.message) for one in itertools.chain(*findings)]
    if problems:
        raise LabError(problems)


def _problem(field: str, what: str) -> Problem:
    return Problem("", 0, 0, field, what)
