"""What can be asked of a run by its control socket, and what is answered, as whoever asks sees it.

An answer is a dictionary, as JSON has it, with the types that are told here; whoever asks a run of his own user trusts
it, and loads nothing to check it: that would take longer than the answer. Who answers uses the same types, by way of
`verbs.py`, which says what each verb takes, and makes the published schema of both.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Annotated, Any, Generic, Literal, TypeVar

from typing_extensions import TypedDict

from dilaton.run.record.states import ProcessOutcome, State

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler
    from pydantic_core import CoreSchema

Answer = TypeVar("Answer")


class Name(str, Generic[Answer]):
    """The name of a verb, as requests have it, and the type of what is answered."""

    answered: type[Answer]

    def __new__(cls, text: str, answered: type[Answer]) -> Name[Answer]:
        """The name `text`."""
        name = super().__new__(cls, text)
        name.answered = answered
        return name


class As:
    """Marks JSON that has the form of a model, which whoever asks need not load."""

    def __init__(self, model: str) -> None:
        """Of the model that is named so, with its module."""
        self._model = model

    def __get_pydantic_core_schema__(self, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """For the published schema: that of the model."""
        module, _, name = self._model.rpartition(".")
        return handler.generate_schema(getattr(import_module(module), name))


Lateness = Annotated[dict[str, float], As("dilaton.run.record.model.LatenessRecord")]
Egress = Annotated[dict[str, Any], As("dilaton.plan.links.queues.Egress")]


class Done(TypedDict):
    """It is done, and there is nothing to say of it."""


class Clock(TypedDict):
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


class RunState(TypedDict):
    """What a run is, and how far it has come."""

    lab: str
    lab_file: str | None
    """The lab's file; null: it has none."""
    run_dir: str
    pid: int
    """The process of the run."""
    state: State
    suspended: bool
    """Whether it is put away, until it is resumed."""
    notice: str | None
    """What keeps it from getting on, said of virtual time; null: nothing that is known."""
    clock: Clock | None
    """Null as long as it has not been released."""
    date_ns: int | None
    """The date at virtual 0, nanoseconds since 1970; null before that."""


class PutAway(TypedDict):
    """A run that is put away."""

    virtual_s: float
    """Where virtual time stands, since the run's virtual 0."""
    memory_bytes: int
    """The memory of guests that went to disk."""


class Timeliness(TypedDict):
    """How well virtual time has been kept so far; as in `run.json`."""

    lateness_us: Lateness
    lateness_ns_counts: list[int]
    timers: int
    busy: float | None


class ProcessShown(TypedDict):
    """What has become of a process so far; as in `run.json`."""

    name: str
    node: str
    outcome: ProcessOutcome
    start_s: float | None
    end_s: float | None
    exit: int | None
    signal: int | None
    expected: bool


class Reason(TypedDict):
    """Why results may not be trusted; as in `run.json`."""

    level: str
    what: str
    advice: str


class Standing(TypedDict):
    """The verdict as it stands. What only results of programs and tables of samples say is not in it."""

    level: str
    reasons: list[Reason]
    """The worst first; none as long as it is valid."""


class GuestShown(TypedDict):
    """How much a guest works, and how long it waits for others; both only ever grow."""

    name: str
    machine: str | None
    """On which of several machines it is; null: the run is on one."""
    busy_s: float
    """Virtual seconds in which it worked and did not idle."""
    waited_host_s: float | None
    """Host seconds in which others kept it from going on, also where it had nothing to do; null: it has no others, or
    they have not told."""


class Status(TypedDict):
    """What `dilaton top` shows."""

    run: RunState
    fidelity: Timeliness
    verdict: Standing | None
    """Null in the first virtual second, which programs that start keep busy."""
    processes: list[ProcessShown]
    guests: list[GuestShown]
    """In the order of the plan."""


class LinkEnd(TypedDict):
    """An end of a link: what it does to the packets that leave by it."""

    node: str
    interface: str
    egress: Egress
    """As in `plan.json`."""
    wire_delay_ns: int
    """The part of the delay that a wire between guests makes."""


class LinkShown(TypedDict):
    """A link, or a port of a segment, as it is now."""

    link: str
    up: bool
    faults: list[str]
    """Those under which it is so."""
    ends: list[LinkEnd]


class LinksShown(TypedDict):
    """Links as they are now."""

    name: str | None
    """The name of the link or segment that was asked for; null: all links were."""
    links: list[LinkShown]


class ChangeTaken(TypedDict):
    """A change that the guests have taken over."""

    t_ns: int
    """When they did, virtual time since the run's virtual 0."""
    at_ns: int
    """When it has its effect."""
    links: list[LinkShown]


FaultState = Literal["waiting", "lasting", "over", "skipped"]
"""Of a fault: `waiting`, it has not begun; `skipped`, it never will."""


class FaultShown(TypedDict):
    """A fault, and what has become of it; instants in virtual time since the run's virtual 0."""

    name: str
    what: str
    by_hand: bool
    state: FaultState
    began_ns: int | None
    ended_ns: int | None
    for_ns: int | None
    """How long it lasts if nobody undoes it earlier; null: it has no end of its own."""


class FaultsShown(TypedDict):
    """All faults of the run."""

    faults: list[FaultShown]


class FaultsTaken(TypedDict):
    """Faults that the guests have begun or undone."""

    t_ns: int
    """When they did, virtual time since the run's virtual 0."""
    faults: list[FaultShown]


class Saving(TypedDict):
    """A run as it is kept for another one; virtual time stands still."""

    virtual_s: float
    """Where, since the run's virtual 0."""
    settings: list[str]
    """What counts instead of what the lab says, as PATH=VALUE: as the run was begun, and as it was steered since."""
    disks: list[str]
    """Nodes that have disks: by the name of each one gets an open file with its contents."""


SHOW = Name("show", RunState)
STOP = Name("stop", Done)
STATUS = Name("status", Status)
FOLLOW = Name("follow", Done)
SUSPEND = Name("suspend", PutAway)
RESUME = Name("resume", Clock)
CLOCK_SHOW = Name("clock.show", Clock)
CLOCK_HOLD = Name("clock.hold", Clock)
CLOCK_RELEASE = Name("clock.release", Clock)
CLOCK_UNTIL = Name("clock.until", Clock)
CLOCK_STEP = Name("clock.step", Clock)
CLOCK_TDF = Name("clock.tdf", Clock)
CLOCK_SPEED = Name("clock.speed", Clock)
CLOCK_PACE = Name("clock.pace", Clock)
LINK_SHOW = Name("link.show", LinksShown)
LINK_CHANGE = Name("link.change", ChangeTaken)
FAULT_BEGIN = Name("fault.begin", FaultsTaken)
FAULT_LIST = Name("fault.list", FaultsShown)
FAULT_UNDO = Name("fault.undo", FaultsTaken)
SESSION_OPEN = Name("session.open", Clock)
PORT_OPEN = Name("port.open", Clock)
TUNNEL_OPEN = Name("tunnel.open", Clock)
SAVE_OPEN = Name("save.open", Done)
