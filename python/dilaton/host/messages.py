"""What host and agent say to each other, as `crates/agent/PROTOCOL.md` has it: a class for each message.

Root of a guest can write on the agent's line. What is said there is therefore checked before anybody acts on it, by its
shape here and, once a run goes on, by the names of its plan. `crates/agent/messages.jsonl` has an example of each
message, by which the agent's types and these are held to each other.

A class has its fields by its annotations alone, whose names are those of checks. Data classes would do that, too, but
take a third of a millisecond each to make, for which `dilaton exec` would wait.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, TypeVar, dataclass_transform

if TYPE_CHECKING:
    from dilaton.plan.model import Plan  # `dilaton exec` needs no models

COUNT_MAX = (1 << 63) - 1

Signed = int
ExitStatus = int
SignalNumber = int
Outcome = Literal["done", "stopped", "failed"]
Memory = Literal["tcp", "udp", "node", "guest"]
Table = Literal["interfaces", "tcp", "nodes", "outputs", "sampler"]


class Check(NamedTuple):
    """What a field may be."""

    is_good: Callable[[object], bool]
    schema: Mapping[str, Any]
    """The same as a JSON schema, for those who read events elsewhere."""


def _text(value: object) -> bool:
    # JSON can say halves of surrogate pairs, which no file and no terminal takes.
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _count(most: int = COUNT_MAX) -> Check:
    bounds = {"type": "integer", "minimum": 0, "maximum": most}
    return Check(lambda value: type(value) is int and 0 <= value <= most, bounds)


def _one_of(*values: str) -> Check:
    return Check(lambda value: isinstance(value, str) and value in values, {"enum": values})


def _or_null(check: Check) -> Check:
    either = {"anyOf": [check.schema, {"type": "null"}]}
    return Check(lambda value: value is None or check.is_good(value), either)


STATUS = _count(255)

CHECKS: Mapping[str, Check] = {
    "int": _count(),
    "Signed": Check(
        lambda value: type(value) is int and abs(value) <= COUNT_MAX,
        {"type": "integer", "minimum": -COUNT_MAX, "maximum": COUNT_MAX},
    ),
    "str": Check(_text, {"type": "string"}),
    "bool": Check(lambda value: isinstance(value, bool), {"type": "boolean"}),
    "float": Check(lambda value: type(value) in (int, float), {"type": "number"}),
    "ExitStatus": STATUS,
    "ExitStatus | None": _or_null(STATUS),
    "SignalNumber": _count(64),
    "Outcome": _one_of("done", "stopped", "failed"),
    "Memory": _one_of("tcp", "udp", "node", "guest"),
    "Table": _one_of("interfaces", "tcp", "nodes", "outputs", "sampler"),
    "Mapping[str, object]": Check(lambda value: isinstance(value, Mapping), {"type": "object"}),
}
"""What a field of each type may be, by the type's name."""


@dataclass_transform(frozen_default=True, kw_only_default=True)
class Message:
    """A message, or an event, which is a message of the type `event`; each class is one, called as it is."""

    tag: ClassVar[str]
    """The `type` of a message; of an event, its `kind`."""
    shape: ClassVar[Mapping[str, Check]] = {}
    """The checks of its fields, those of its base classes first."""

    def __init_subclass__(cls, tag: str = "") -> None:
        """A class of messages; its tag is its name, unless that of another form of the same message is given."""
        cls.tag = tag or re.sub("(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()
        cls.shape = {**cls.shape, **{name: CHECKS[of] for name, of in cls.__annotations__.items()}}

    def __init__(self, **fields: Any) -> None:
        """A message of these fields, which are all that it has."""
        assert fields.keys() == self.shape.keys(), f"{self.tag} has {', '.join(self.shape)}"
        self.__dict__.update(fields)

    def __eq__(self, other: object) -> bool:
        """Whether it says the same."""
        return type(self) is type(other) and self.__dict__ == other.__dict__

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        """As it would be written in Python."""
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in self.__dict__.items())})"

    def json(self) -> dict[str, Any]:
        """As it goes over the line."""
        return {"type": self.tag, **self.__dict__}


class ToAgent(Message):
    """What the host says."""


class Build(ToAgent):
    """Make the nodes and links of a guest; of the plan in a directory, as the guest sees it.

    It `goes_on` with a run that the kernel before it has left to it.
    """

    run_dir: str
    guest: str
    goes_on: bool


class Arm(ToAgent):
    """Virtual 0 of the run is now plus `lead_ns`, and then it is `date_ns` since 1970; the clock is held.

    If it `awaits_program`, virtual time stands still at virtual 0 until the host asks for one.
    """

    lead_ns: Signed
    date_ns: int
    awaits_program: bool


class WhoComputes(ToAgent):
    """Say which program computes."""


class Update(ToAgent):
    """Change the course by hand, as a file in the run directory says."""

    file: str


class UpdateLink(Update):
    """Take over what a link becomes."""


class UpdateFaults(Update):
    """Begin and undo faults."""


class Stop(ToAgent):
    """End the run early."""

    reason: str


class Halt(ToAgent):
    """Flush and power off."""


class FromAgent(Message):
    """What the agent says."""


class Hello(FromAgent):
    """The agent is up."""

    protocol: int
    version: str
    kernel: str


class Progress(FromAgent):
    """So many of `what` are up."""

    done: int
    total: int
    what: str


class Ready(FromAgent):
    """Everything is up, and nothing runs yet."""


class Armed(FromAgent):
    """The schedule waits for virtual 0, an instant of the guest's monotonic clock."""

    zero_ns: Signed


class OfUpdate(FromAgent):
    """What has become of an update, by its file."""

    file: str


class Updated(OfUpdate):
    """The course is what the file says, since this instant."""

    t_ns: int


class Refused(OfUpdate):
    """It cannot be."""

    reason: str


class HandsOver(FromAgent):
    """The node boots that has the kernel to itself: another one is to go on from `t_ns` with the run.

    `date_ns` is what the guest's date is now, at virtual 0; `heard` is how many messages it has taken since `arm`.
    """

    t_ns: int
    date_ns: int
    heard: int


class Finished(FromAgent):
    """The schedule is over and all processes are gone."""

    t_ns: int
    outcome: Outcome
    reason: str


class Fatal(FromAgent):
    """The agent cannot go on."""

    reason: str


class Event(Message):
    """Something happened, at an instant since the run's virtual 0."""

    t_ns: int

    def json(self) -> dict[str, Any]:
        """As it goes over the line."""
        return {"type": "event", **self.record()}

    def record(self) -> dict[str, Any]:
        """As in `events.jsonl`."""
        return {"t_ns": self.t_ns, "kind": self.tag, **self.__dict__}


class OfProcess(Event):
    """Something happened to a process."""

    process: str
    node: str


class Started(OfProcess):
    """The program was executed."""

    pid: int


class StartFailed(OfProcess):
    """It could not be."""

    reason: str


class ProcessReady(OfProcess, tag="ready"):
    """The process became ready."""


class ReadyTimeout(OfProcess):
    """It did not come in time."""

    reason: str


class Ended(OfProcess):
    """It ended."""

    expected: bool
    timed_out: bool
    stopped: bool


class Exited(Ended):
    """It ended by itself, with a status."""

    status: ExitStatus


class Signalled(Ended, tag="exited"):
    """A signal ended it."""

    signal: SignalNumber


class Skipped(OfProcess):
    """It can never start."""

    reason: str


class OfFault(Event):
    """Something happened to a fault, or another entry of the course that has a name."""

    fault: str


class Began(OfFault):
    """It has its effect from now on."""

    what: str


class Undone(OfFault):
    """It has none any more."""

    what: str


class FaultUndone(Undone, tag="undone"):
    """There is nothing more to say of it."""


class LoadUndone(Undone, tag="undone"):
    """A load is sent no more. So much was sent; so much was not taken by the node's own kernel; so many requests were
    answered well, and so many failed."""

    sent: int
    refused: int
    answered: int
    failed: int


class FaultSkipped(OfFault, tag="skipped"):
    """It can never begin."""

    reason: str


class LinkChanged(Event):
    """A link has the parameters that it was to have at `at_ns`; 0: at once."""

    link: str
    at_ns: int


class CaptureEnded(Event):
    """The disk takes no more of a capture."""

    node: str
    interface: str
    reason: str


class Spinning(Event):
    """A program computes, or waits in a loop, without entering the kernel."""

    node: str
    program: str


class MemoryShort(Event):
    """Memory was short, so many times."""

    node: str
    memory: Memory
    times: int


class SamplingEnded(Event):
    """The disk takes no more of a table of samples."""

    table: Table
    reason: str


Kind = TypeVar("Kind", bound=Message)


def _all(kind: type[Kind]) -> Iterator[type[Kind]]:
    """The classes below one that have none below them."""
    for each in kind.__subclasses__():
        yield from _all(each) if each.__subclasses__() else (each,)


def by_tag(kind: type[Kind]) -> dict[str, list[type[Kind]]]:
    """The classes below one by their tags, all forms of a tag together."""
    found: dict[str, list[type[Kind]]] = {}
    for each in _all(kind):
        found.setdefault(each.tag, []).append(each)
    return found


TO_AGENT, FROM_AGENT, EVENTS = by_tag(ToAgent), by_tag(FromAgent), by_tag(Event)
"""All messages of each direction, and all events, by their tags; one that has several forms has a class for each."""


def parse(line: bytes) -> FromAgent | Event:
    """What an agent says in a line.

    Raises:
        ValueError: It is no message; the text says why.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("no JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ValueError("no object with a type")
    known: Mapping[str, Sequence[type[FromAgent | Event]]] = FROM_AGENT
    tag = message.pop("type")
    if tag == "event":
        tag, known = message.pop("kind", None), EVENTS
    forms = known.get(tag, []) if isinstance(tag, str) else []
    if not forms:
        raise ValueError("of no known kind")
    if (said := formed(forms, message)) is None:
        raise ValueError("its fields are not those of its kind")
    return said


def formed(forms: Sequence[type[Kind]], fields: Mapping[str, object]) -> Kind | None:
    """The message of these fields, in the form that has them; None: none has."""
    return next((form(**fields) for form in forms if _fits(fields, form.shape)), None)


def _fits(fields: Mapping[str, object], shape: Mapping[str, Check]) -> bool:
    return fields.keys() == shape.keys() and all(check.is_good(fields[name]) for name, check in shape.items())


class Names:
    """What there is in a plan for events to be about."""

    def __init__(self, planned: Plan) -> None:
        """Takes the names of a plan."""
        self._nodes = {node.name for node in planned.nodes}
        self._processes = {(process.name, process.node) for process in planned.processes}
        self._links = {link.name for link in planned.links}

    def check(self, said: Message) -> None:
        """Refuses an event about what is not in the plan. Which faults there are the run knows, as some come by hand.

        Raises:
            ValueError: It is; the text says what is not there.
        """
        match said:
            case OfProcess(process=process, node=node) if (process, node) not in self._processes:
                raise ValueError(f"there is no process {process} of {node}")
            case CaptureEnded(node=node) | Spinning(node=node) | MemoryShort(node=node) if node not in self._nodes:
                raise ValueError(f"there is no node {node}")
            case LinkChanged(link=link) if link not in self._links:
                raise ValueError(f"there is no link {link}")
