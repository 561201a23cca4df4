"""What happens in a run, as it is told to who follows it: one of these, a line of JSON each."""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from dilaton.run.control.verbs import Value
from dilaton.run.record.model import ClockChange
from dilaton.run.record.states import State


class Entered(Value):
    """The run has entered a state; the last one is `finished`, `failed` or `aborted`."""

    kind: Literal["state"] = "state"
    state: State


class Built(Value):
    """While the run is built: so many of `what` are up."""

    kind: Literal["progress"] = "progress"
    done: int
    total: int
    what: str


class Happened(Value):
    """Something happened in a guest, or was done to one."""

    kind: Literal["event"] = "event"
    event: dict[str, Any]
    """As in `events.jsonl`; of several guests in the order in which the host heard of them."""


class ClockTurned(Value):
    """The clock was released, held, or got another pace."""

    kind: Literal["clock"] = "clock"
    change: ClockChange


class BegunAgain(Value):
    """The run was ended, and begins again from the start with another TDF."""

    kind: Literal["again"] = "again"
    why: str
    tdf: float


Happening = Annotated[Entered | Built | Happened | ClockTurned | BegunAgain, Field(discriminator="kind")]

_HAPPENING: TypeAdapter[Happening] = TypeAdapter(Happening)


def line_of(happening: Happening) -> bytes:
    """A happening as it is sent. What programs are called need not be text, so what is none is escaped."""
    return json.dumps(happening.model_dump()).encode() + b"\n"


def happening_of(line: bytes) -> Happening:
    """A happening as it was sent.

    Raises:
        ValueError: the line is none.
    """
    return _HAPPENING.validate_python(json.loads(line))
