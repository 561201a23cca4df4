"""The verbs of the control socket: what each takes and answers. This is the definition; `docs/control.schema.json`, by
which programs in other languages can speak to a run, is made of it.

What comes over the socket is checked here, before anybody acts on it. Fields in which people write durations or factors
are text as in a lab. A verb *takes over* when, from its reply on, the connection carries something else.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, PlainValidator, ValidationError
from pydantic_core import ErrorDetails

from dilaton.lab.text import units
from dilaton.plan.links.queues import Egress
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler, Request, Result, Takeover
from dilaton.run.record.model import LatenessRecord, ProcessOutcome, State


class Value(BaseModel):
    """Base of what is asked and answered: immutable, and nothing unknown in it."""

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


class Nothing(Value):
    """Nothing is asked, or answered."""


class Clock(Value):
    """The clock of a run."""

    virtual_s: float
    """Since the run's virtual 0."""
    host_s: float
    """Since the release of the clock."""
    tdf: float
    """Host seconds per virtual second; of a held clock, those with which it will go on."""
    held: bool
    """Whether virtual time stands still."""
    drive: str
    steered_by: str
    """The command that is under way; empty: none."""
    max_speed: float | None
    """Virtual seconds per host second at most; null: no bound."""


class RunState(Value):
    """What a run is, and how far it has come."""

    lab: str
    lab_file: str | None
    """The lab's file; null: it has none."""
    run_dir: str
    pid: int
    """The process of the run."""
    state: State
    clock: Clock | None
    """Null as long as it has not been released."""
    date_ns: int | None
    """The date at virtual 0, nanoseconds since 1970; null before that."""


class Timeliness(Value):
    """How well virtual time has been kept so far; as in `run.json`."""

    lateness_us: LatenessRecord
    lateness_ns_counts: list[int]
    timers: int
    busy: float | None


class ProcessShown(Value):
    """What has become of a process so far; as in `run.json`."""

    name: str
    node: str
    outcome: ProcessOutcome
    start_s: float | None
    end_s: float | None
    exit: int | None
    signal: int | None
    expected: bool


class Status(Value):
    """What `dilaton top` shows."""

    run: RunState
    fidelity: Timeliness
    processes: list[ProcessShown]


class Until(Value):
    """Where the clock is to be held."""

    at: Instant


class NewTdf(Value):
    """The TDF from now on."""

    tdf: Factor


class WhichLink(Value):
    """A link by its ends, or a segment by all of its nodes; null: all links."""

    link: str | None = None


class LinkEnd(Value):
    """An end of a link: what it does to the packets that leave by it."""

    node: str
    interface: str
    egress: Egress
    """As in `plan.json`."""
    wire_delay_ns: int
    """The part of the delay that a wire between guests makes."""


class LinkShown(Value):
    """A link, or a port of a segment, as it is now."""

    link: str
    up: bool
    faults: list[str]
    """Those under which it is so."""
    ends: list[LinkEnd]


class LinksShown(Value):
    """Links as they are now."""

    name: str | None
    """The name of the link or segment that was asked for; null: all links were."""
    links: list[LinkShown]


class LinkChange(Value):
    """A change of a link."""

    link: str
    settings: list[tuple[str, str]]
    """Each a path within the link, as `delay.jitter`, and its value, as in the lab."""
    at: Instant | None = None
    """When; null: now."""
    directory: str = "."
    """The directory at which paths of files start."""


class ChangeTaken(Value):
    """A change that the guests have taken over."""

    t_ns: int
    """When they did, virtual time since the run's virtual 0."""
    at_ns: int
    """When it has its effect."""
    links: list[LinkShown]


FaultState = Literal["waiting", "lasting", "over", "skipped"]
"""Of a fault: `waiting`, it has not begun; `skipped`, it never will."""


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


class FaultShown(Value):
    """A fault, and what has become of it; instants in virtual time since the run's virtual 0."""

    name: str
    what: str
    by_hand: bool
    state: FaultState
    began_ns: int | None
    ended_ns: int | None
    for_ns: int | None
    """How long it lasts if nobody undoes it earlier; null: it has no end of its own."""


class FaultsShown(Value):
    """All faults of the run."""

    faults: list[FaultShown]


class FaultsTaken(Value):
    """Faults that the guests have begun or undone."""

    t_ns: int
    """When they did, virtual time since the run's virtual 0."""
    faults: list[FaultShown]


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


class Saving(Value):
    """A run as it is kept for another one; virtual time stands still."""

    virtual_s: float
    """Where, since the run's virtual 0."""
    settings: list[str]
    """What counts instead of what the lab says, as PATH=VALUE: as the run was begun, and as it was steered since."""
    disks: dict[str, str]
    """Files with the contents of disks, by node."""


Asked = TypeVar("Asked", bound=Value)
Answered = TypeVar("Answered", bound=Value)


@dataclass(frozen=True)
class Verb(Generic[Asked, Answered]):
    """What can be asked of a run.

    Attributes:
        name: As requests have it.
        what: What it does, for the documentation.
        asked, answered: The types of a request's other fields, and of the reply's `result`.
        then: What the connection carries after the reply, of a verb that takes it over; empty: it does not.
    """

    name: str
    what: str
    asked: type[Asked]
    answered: type[Answered]
    then: str = ""

    def by(self, answer: Callable[[Asked], Awaitable[Answered | Takeover]]) -> dict[str, Handler]:
        """The verb with who answers it, for the control socket."""

        async def handle(request: Request) -> Result | Takeover:
            answered = await answer(self._read(request))
            return answered if isinstance(answered, Takeover) else answered.model_dump()

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


SHOW = Verb("show", "What the run is, and how far it has come.", Nothing, RunState)
STOP = Verb("stop", "Ends the run in good order; the connection is closed when it has ended.", Nothing, Nothing)
STATUS = Verb("status", "How well time is kept, and what has become of each process so far.", Nothing, Status)
FOLLOW = Verb(
    "follow",
    "Tells all that has happened in the run, and all that happens from now on.",
    Nothing,
    Nothing,
    "happenings, a line of JSON each, up to the end of the run",
)
CLOCK_SHOW = Verb("clock.show", "The clock, now.", Nothing, Clock)
CLOCK_HOLD = Verb("clock.hold", "Stops virtual time, and ends `until` and `step` if one is under way.", Nothing, Clock)
CLOCK_RELEASE = Verb("clock.release", "Lets virtual time go on.", Nothing, Clock)
CLOCK_UNTIL = Verb("clock.until", "Lets virtual time go on to an instant, and holds it there.", Until, Clock)
CLOCK_STEP = Verb(
    "clock.step", "Lets virtual time go on to the guests' next timer, and holds it there.", Nothing, Clock
)
CLOCK_TDF = Verb("clock.tdf", "Changes the TDF.", NewTdf, Clock)
CLOCK_PACE = Verb(
    "clock.pace",
    "Keeps virtual time from running faster than host time as long as the connection lasts.",
    Nothing,
    Clock,
    "nothing",
)
LINK_SHOW = Verb("link.show", "Links as they are now.", WhichLink, LinksShown)
LINK_CHANGE = Verb("link.change", "Changes a link, now or at a later instant.", LinkChange, ChangeTaken)
FAULT_BEGIN = Verb("fault.begin", "Begins a fault, now.", FaultBegin, FaultsTaken)
FAULT_LIST = Verb("fault.list", "All faults, of the lab and by hand.", Nothing, FaultsShown)
FAULT_UNDO = Verb("fault.undo", "Undoes faults that last, now.", FaultUndo, FaultsTaken)
SESSION_OPEN = Verb(
    "session.open",
    "Starts a program in a node.",
    SessionOpen,
    Clock,
    "the frames of that session, both ways (crates/agent/PROTOCOL.md)",
)

SAVE_OPEN = Verb(
    "save.open",
    "Stops virtual time as long as the connection lasts, and says what a saved lab keeps of the run.",
    Nothing,
    Nothing,
    "one reply more, once virtual time stands still: `Saving`",
)

VERBS: tuple[Verb[Any, Any], ...] = (
    SHOW,
    STATUS,
    FOLLOW,
    STOP,
    CLOCK_SHOW,
    CLOCK_HOLD,
    CLOCK_RELEASE,
    CLOCK_UNTIL,
    CLOCK_STEP,
    CLOCK_TDF,
    CLOCK_PACE,
    LINK_SHOW,
    LINK_CHANGE,
    FAULT_BEGIN,
    FAULT_LIST,
    FAULT_UNDO,
    SESSION_OPEN,
    SAVE_OPEN,
)
"""All of them."""
