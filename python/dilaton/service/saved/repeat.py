"""Handing over a state that a run was in before: `dilaton resume RUN --at T`.

On the event drive nothing that happens depends on the host, so a run that is begun anew with the same plan comes to
every instant in the same state, memory included. That is a promise of Dilaton's, and here it is not believed but looked
at: what the new run has told and written when it is held has to be, byte for byte, what the first one had by then.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.lab.text import units
from dilaton.measure import numbers
from dilaton.plan.model import Plan
from dilaton.run.control.errors import ControlError
from dilaton.run.files.directory import LAB_FILE, PLAN_FILE
from dilaton.run.files.outputs import read_output, read_output_bytes
from dilaton.run.record.record import RecordError, load
from dilaton.run.record.states import FINAL_STATES
from dilaton.service import live
from dilaton.service.errors import RequestError
from dilaton.service.request import LabText, Overrides, RunRequest

EVENTS = "events.jsonl"

WRITTEN = ("nodes/*/*", "measure/*/*.csv")
"""What guests write as virtual time goes on, each file from its begin to its end."""

BY_HAND = {
    "link-steered": "a link was changed by hand",
    "fault-steered": "a fault was begun or undone by hand",
    "session-began": "somebody worked in a node",
}
"""Events of a run that another has not by itself."""


@dataclass(frozen=True)
class Repeated:
    """A run that stands where another one was.

    Attributes:
        path: Its directory.
        events: How many events both had by then.
        bytes: How much their guests had written, which was compared.
    """

    path: Path
    events: int
    bytes: int


@dataclass(frozen=True)
class Repeatable:
    """What a run has to be asked for to be as another one, up to an instant.

    Attributes:
        at_ns: The instant.
        lab: Its lab.
        settings: What counts instead of what that says.
        stays: Whether it goes on when nothing is left to do.
    """

    at_ns: int
    lab: LabText
    settings: tuple[str, ...]
    stays: bool


async def repeat(first: Path, at: str, out: Path | None = None) -> Repeated:
    """Repeats a run up to an instant, where the new run is held; it goes on until it is ended.

    Args:
        first: The directory of a run that is over.
        at: The instant, as a lab would write it.
        out: The directory of the new run; None: one of its own below `runs`.

    Raises:
        RequestError: The run cannot be repeated, or not up to that instant.
        ControlError: The new run came to another state, and was ended.
        LabError: The lab's files are not what they were.
        HostLacksError: This machine lacks something that the run needs.
    """
    again = repeatable(first, at)
    request = RunRequest(
        lab=again.lab,
        overrides=Overrides(settings=again.settings, confirm=False),
        out=out,
        hold_at=at,
        stays=again.stays,
        repeats=first.absolute(),
    )
    run = await live.begin(request, detached=True)
    try:
        found = compared(first, run.path, again.at_ns)
    except BaseException:
        with contextlib.suppress(ControlError):
            await run.stop()
        raise
    return found


def repeatable(first: Path, at: str) -> Repeatable:
    """What is to be asked for so that a run is repeated up to an instant; see `repeat`.

    Raises:
        RequestError: The run cannot be repeated, or not up to that instant.
    """
    try:
        record, plan = load(first), _plan(first)
        at_ns = units.parse_duration(at)
    except (RecordError, ValueError, OSError) as error:
        raise RequestError(str(error)) from error
    if record.state not in FINAL_STATES:
        raise RequestError(f"{first}: the run is not over; end it, or repeat it later")
    if plan.time.drive != "event":
        raise RequestError(
            f"{first}: it was on the {plan.time.drive} drive; only on the event drive is a run repeated to the byte "
            "(time: {drive: event})"
        )
    if at_ns > record.time.virtual_s * 1e9:
        raise RequestError(f"{at}: the run ended at {numbers.duration(record.time.virtual_s)}")
    for event in _events(first):
        if event["t_ns"] <= at_ns and (what := BY_HAND.get(event["kind"])):
            raise RequestError(f"{first}: {what} at {numbers.duration(event['t_ns'] / 1e9)}, as it would not be again")
    file = None if record.lab_file is None else Path(record.lab_file)
    text = LabText(text=read_output(first / LAB_FILE), name=str(file or first / LAB_FILE), file=file)
    return Repeatable(at_ns, text, tuple(record.settings), plan.stays)


def refuse_another(plan: Plan, first: Path) -> None:
    """Refuses a plan that is not that of a run.

    Raises:
        RequestError: What the first difference is.
    """
    try:
        before = json.loads(read_output(first / PLAN_FILE))
    except (OSError, ValueError) as error:
        raise RequestError(f"{first}: its plan cannot be read: {error}") from error
    if place := _difference(before, json.loads(plan.model_dump_json())):
        raise RequestError(
            f"{first}: what it was made of has changed since: {place} in {PLAN_FILE} would be another; restore the "
            "files beside the lab and the images, and use the same version of Dilaton on the same machine"
        )


def compared(first: Path, again: Path, at_ns: int) -> Repeated:
    """Compares a run that is held at an instant with what another one had told and written by then.

    Raises:
        ControlError: They differ; it names the first difference.
    """
    before, now = _lines(first), _lines(again)
    # What happens at the instant itself may be yet to come.
    due = [line for line in before if line[0] < at_ns]
    for expected, found in zip(due, now, strict=False):
        if expected != found:
            raise ControlError(f"not the same state: {found[1]} instead of {expected[1]}")
    if len(now) < len(due):
        raise ControlError(f"not the same state: {due[len(now)][1]} did not happen")
    if rest := set(now[len(due) :]) - set(before):
        raise ControlError(f"not the same state: {min(rest)[1]} did not happen before")
    total = 0
    for pattern in WRITTEN:
        for path in sorted(again.glob(pattern)):
            name = path.relative_to(again)
            written = read_output_bytes(path)
            if not read_output_bytes(first / name).startswith(written):
                raise ControlError(f"not the same state: {name} is another")
            total += len(written)
    return Repeated(again, len(now), total)


def resumed(first: Path, at: str, out: Path | None = None) -> Repeated:
    """As `repeat`, for who has no event loop."""
    return asyncio.run(repeat(first, at, out))


def _plan(run_dir: Path) -> Plan:
    return Plan.model_validate_json(read_output(run_dir / PLAN_FILE))


def _events(run_dir: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in read_output(run_dir / EVENTS).splitlines()]


def _lines(run_dir: Path) -> list[tuple[int, str]]:
    """The events, in the order of virtual time; guests that are as far tell of theirs as the host is fast."""
    return sorted((json.loads(line)["t_ns"], line) for line in read_output(run_dir / EVENTS).splitlines())


def _difference(one: object, other: object, place: str = "") -> str:
    """Where two values of JSON differ first; empty: nowhere."""
    if isinstance(one, Mapping) and isinstance(other, Mapping) and one.keys() == other.keys():
        pairs = [(f"{place}.{key}" if place else key, one[key], other[key]) for key in one]
    elif isinstance(one, list) and isinstance(other, list) and len(one) == len(other):
        pairs = [(f"{place}.{number}", *both) for number, both in enumerate(zip(one, other, strict=True))]
    else:
        return "" if one == other else place or "all"
    return next((found for name, left, right in pairs if (found := _difference(left, right, name))), "")
