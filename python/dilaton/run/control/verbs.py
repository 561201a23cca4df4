"""The verbs of the control socket: what each takes; `answers.py` has what it answers. These are the definition;
`docs/control.schema.json`, by which programs in other languages can speak to a run, is made of them.

What comes over the socket is checked here, before anybody acts on it. Fields in which people write durations or factors
are text as in a lab. A verb *takes over* when, from its reply on, the connection carries something else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from ipaddress import IPv4Address, IPv6Address
from typing import Annotated, Any, Generic, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError, field_validator
from pydantic_core import ErrorDetails

from dilaton.lab.text import units
from dilaton.run.control import answers
from dilaton.run.control.answers import Name
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler, Request, Result, Takeover


class Value(BaseModel):
    """Base of what is asked, and of what is told: immutable, and nothing unknown in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def _words(value: object) -> list[str]:
    if (
        not isinstance(value, list)
        or not value
        or not all(isinstance(word, str) and "\0" not in word for word in value)
    ):
        raise ValueError("a program and its arguments are strings")
    return value


def _variables(value: object) -> dict[str, str]:
    if not isinstance(value, dict) or any(not isinstance(text, str) or "\0" in text for text in value.values()):
        raise ValueError("an environment is an object of strings")
    return value


def _size(value: object) -> tuple[int, int] | None:
    match value:
        case None:
            return None
        case [int(rows), int(columns)] if rows >= 0 and columns >= 0:
            return rows, columns
    raise ValueError("a terminal's size is its rows and columns")


Instant = Annotated[int, PlainValidator(units.parse_duration, json_schema_input_type=str)]
"""Virtual time since the run's virtual 0, as the lab writes durations; nanoseconds once it is read."""

Factor = Annotated[Fraction, PlainValidator(units.parse_tdf, json_schema_input_type=str)]
"""A time dilation factor, as the lab writes it."""


def _speed(value: object) -> Fraction | None:
    return None if value in (None, NO_SPEED) else units.parse_factor(value, "the highest speed")


NO_SPEED = "none"
"""What is asked for where virtual time may run as fast as it can."""

Speed = Annotated[Fraction | None, PlainValidator(_speed, json_schema_input_type=str | None)]
"""Virtual seconds per host second at most, as the lab writes them; null, or `none`: no bound."""


class Nothing(Value):
    """Nothing more is asked."""


class Until(Value):
    """Where the clock is to be held."""

    at: Instant


class NewTdf(Value):
    """The TDF from now on."""

    tdf: Factor


class NewSpeed(Value):
    """How fast virtual time may run from now on."""

    max_speed: Speed


class WhichLink(Value):
    """A link by its ends, or a segment by all of its nodes; null: all links."""

    link: str | None = None


class LinkChange(Value):
    """A change of a link."""

    link: str
    settings: list[tuple[str, str]]
    """Each a path within the link, as `delay.jitter`, and its value, as in the lab."""
    at: Instant | None = None
    """When; null: now."""
    directory: str = "."
    """The directory at which paths of files start."""


class FaultBegin(Value):
    """A fault that begins now, or later."""

    fault: dict[str, Any]
    """Its fields, as of an item of a lab's `faults:`; without `at` and `after` it begins now."""
    directory: str = "."
    """At which paths of files start."""


class FaultUndo(Value):
    """Faults that end now, or do not begin any more."""

    names: list[str] = Field(default_factory=list)
    """None: all that were asked for by hand and last, or are yet to begin."""


class SessionOpen(Value):
    """A program that somebody outside starts in a node."""

    node: str
    argv: Annotated[list[str], PlainValidator(_words, json_schema_input_type=list[str])]
    """The program, and its arguments."""
    env: Annotated[dict[str, str], PlainValidator(_variables, json_schema_input_type=dict[str, str])] = Field(
        default_factory=dict
    )
    """Variables beside those that all programs of the node have."""
    terminal: Annotated[
        tuple[int, int] | None, PlainValidator(_size, json_schema_input_type=tuple[int, int] | None)
    ] = None
    """Rows and columns; null: its streams are pipes."""


class PortOpen(Value):
    """A connection of somebody outside to a port of a node."""

    node: str
    port: Annotated[int, Field(strict=True, ge=1, le=65_535)]


class TunnelOpen(Value):
    """A machine outside that is to be in the network of a node."""

    node: str
    addresses: Annotated[tuple[IPv4Address | IPv6Address, ...], Field(min_length=1, max_length=2)]
    """By which it is known there, of IPv4, IPv6 or one of each; the lab has them not."""

    @field_validator("addresses")
    @classmethod
    def _one_of_each(cls, addresses: tuple[IPv4Address | IPv6Address, ...]) -> tuple[IPv4Address | IPv6Address, ...]:
        if len({address.version for address in addresses}) < len(addresses):
            raise ValueError("at most one address of IPv4 and one of IPv6")
        return addresses


Asked = TypeVar("Asked", bound=Value)
Answered = TypeVar("Answered", bound=Mapping[str, Any])


@dataclass(frozen=True)
class Verb(Generic[Asked, Answered]):
    """What can be asked of a run.

    Attributes:
        name: As requests have it, with the type of the reply's `result`.
        what: What it does, for the documentation.
        asked: The type of a request's other fields.
        then: What the connection carries after the reply, of a verb that takes it over; empty: it does not.
    """

    name: Name[Answered]
    what: str
    asked: type[Asked]
    then: str = ""

    def by(self, answer: Callable[[Asked], Awaitable[Answered | Takeover]]) -> dict[str, Handler]:
        """The verb with who answers it, for the control socket."""

        async def handle(request: Request) -> Result | Takeover:
            answered = await answer(self._read(request))
            return answered if isinstance(answered, Takeover) else dict(answered)

        return {self.name: handle}

    def _read(self, request: Request) -> Asked:
        try:
            return self.asked.model_validate(request)
        except ValidationError as error:
            raise ControlError(self._wrong(error.errors()[0]), "argument") from error

    def _wrong(self, error: ErrorDetails) -> str:
        name = ".".join(map(str, error["loc"]))
        match error["type"]:
            case "missing":
                return f"{name} is missing"
            case "extra_forbidden":
                takes = ", ".join(self.asked.model_fields) or "nothing"
                return f"{name}: nothing that {self.name} takes; it takes {takes}"
            case "value_error":
                return f"{name}: {error['ctx']['error']}"
        return f"{name}: {error['msg'][:1].lower()}{error['msg'][1:]}"


SHOW = Verb(answers.SHOW, "What the run is, and how far it has come.", Nothing)
STOP = Verb(answers.STOP, "Ends the run in good order; the connection is closed when it has ended.", Nothing)
STATUS = Verb(answers.STATUS, "How well time is kept, and what has become of each process so far.", Nothing)
FOLLOW = Verb(
    answers.FOLLOW,
    "Tells all that has happened in the run, and all that happens from now on.",
    Nothing,
    "happenings, a line of JSON each, up to the end of the run",
)
SUSPEND = Verb(
    answers.SUSPEND,
    "Holds virtual time, and puts the run away: memory of guests to disk, cores free. Until `resume`, nobody gets more "
    "than `show`, `status`, `follow`, `clock.show`, `link.show`, `fault.list`, `resume` and `stop`.",
    Nothing,
)
RESUME = Verb(answers.RESUME, "Goes on where `suspend` came; a clock that was held before stays so.", Nothing)
CLOCK_SHOW = Verb(answers.CLOCK_SHOW, "The clock, now.", Nothing)
CLOCK_HOLD = Verb(answers.CLOCK_HOLD, "Stops virtual time, and ends `until` and `step` if one is under way.", Nothing)
CLOCK_RELEASE = Verb(answers.CLOCK_RELEASE, "Lets virtual time go on.", Nothing)
CLOCK_UNTIL = Verb(answers.CLOCK_UNTIL, "Lets virtual time go on to an instant, and holds it there.", Until)
CLOCK_STEP = Verb(answers.CLOCK_STEP, "Lets virtual time go on to the guests' next timer, and holds it there.", Nothing)
CLOCK_TDF = Verb(answers.CLOCK_TDF, "Changes the TDF.", NewTdf)
CLOCK_SPEED = Verb(answers.CLOCK_SPEED, "Changes how fast virtual time may run at most, by the host's clock.", NewSpeed)
CLOCK_PACE = Verb(
    answers.CLOCK_PACE,
    "Keeps virtual time from running faster than host time as long as the connection lasts.",
    Nothing,
    "nothing",
)
LINK_SHOW = Verb(answers.LINK_SHOW, "Links as they are now.", WhichLink)
LINK_CHANGE = Verb(answers.LINK_CHANGE, "Changes a link, now or at a later instant.", LinkChange)
FAULT_BEGIN = Verb(answers.FAULT_BEGIN, "Begins a fault, now.", FaultBegin)
FAULT_LIST = Verb(answers.FAULT_LIST, "All faults, of the lab and by hand.", Nothing)
FAULT_UNDO = Verb(answers.FAULT_UNDO, "Undoes faults that last, now.", FaultUndo)
SESSION_OPEN = Verb(
    answers.SESSION_OPEN,
    "Starts a program in a node.",
    SessionOpen,
    "the frames of that session, both ways (crates/agent/PROTOCOL.md)",
)

PORT_OPEN = Verb(
    answers.PORT_OPEN,
    "Connects to a TCP port of a node from outside, at host speed at most; the record says so.",
    PortOpen,
    "the frames of a session whose input and output are the connection's, both ways (crates/agent/PROTOCOL.md)",
)
TUNNEL_OPEN = Verb(
    answers.TUNNEL_OPEN,
    "Has a machine outside in the network of a node, at host speed at most; the record says so.",
    TunnelOpen,
    "the frames of a session whose input and output are packets of IP, each after its length in two bytes, the most "
    "significant first, both ways (crates/agent/PROTOCOL.md)",
)
SAVE_OPEN = Verb(
    answers.SAVE_OPEN,
    "Stops virtual time as long as the connection lasts, and says what a saved lab keeps of the run.",
    Nothing,
    "one reply more, once virtual time stands still: `Saving`; then, for each line with a node's name, an empty one, "
    "and with it (SCM_RIGHTS) an open file: the contents of its disk",
)

VERBS: tuple[Verb[Any, Any], ...] = (
    SHOW,
    STATUS,
    FOLLOW,
    STOP,
    SUSPEND,
    RESUME,
    CLOCK_SHOW,
    CLOCK_HOLD,
    CLOCK_RELEASE,
    CLOCK_UNTIL,
    CLOCK_STEP,
    CLOCK_TDF,
    CLOCK_SPEED,
    CLOCK_PACE,
    LINK_SHOW,
    LINK_CHANGE,
    FAULT_BEGIN,
    FAULT_LIST,
    FAULT_UNDO,
    SESSION_OPEN,
    PORT_OPEN,
    TUNNEL_OPEN,
    SAVE_OPEN,
)
"""All of them."""
