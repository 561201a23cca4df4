"""What happens in a run, as it is recorded: a line of `events.jsonl` for each.

Most of it agents say, in the classes of `host/messages.py`, which are recorded as they are. The host adds the classes
here: what it asked for, and what a link has become, which only the host can put in words.

Whatever watches a run gets these values; JSON is made of them where they leave the program, and read into them where a
run is loaded.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from dilaton.host.messages import Began, Event, ExitStatus, Undone, by_tag, formed


class LinkBecame(Event, tag="link-changed"):
    """A link has the parameters that it was to have at `at_ns`: what changed then, in words, and whether it is up."""

    link: str
    at_ns: int
    what: str
    up: bool


class LinkSteered(Event):
    """Somebody changed a link while the run went on, from `at_ns` on; an agent has taken the file over."""

    link: str
    asked: str
    at_ns: int
    file: str
    host_s: float


class FaultSteered(Event):
    """Somebody began or undid faults while the run went on; an agent has taken the file over."""

    fault: str
    asked: str
    file: str
    host_s: float


class OfSession(Event):
    """Something happened to a program that somebody ran in a node while the run went on."""

    node: str
    program: str


class SessionBegan(OfSession):
    """It was asked for."""

    host_s: float


class PortReached(OfSession):
    """Somebody outside connects to a port of a node: what comes from there no other run would have."""

    port: int
    host_s: float


class TunnelOpened(OfSession):
    """A machine outside is in the network of a node from now on: what comes from it no other run would have."""

    host_s: float


class SessionEnded(OfSession):
    """It ended, with a status, or because somebody hung up or the run was over."""

    status: ExitStatus | None
    host_s: float


class Unknown(Event):
    """What another version of this program recorded: of a kind, or with fields, that this one does not know.

    Attributes:
        kind: What it is called there.
        fields: All that is said of it.
    """

    kind: str
    fields: Mapping[str, object]

    def record(self) -> dict[str, Any]:
        """As it was recorded."""
        return {"t_ns": self.t_ns, "kind": self.kind, **self.fields}


KINDS = {tag: forms for tag, forms in by_tag(Event).items() if tag != Unknown.tag}
"""The classes of events by the kind that is recorded."""


def event_of(row: object) -> Event:
    """The event that was recorded as `row`.

    Raises:
        ValueError: It is none.
    """
    if not isinstance(row, dict) or not isinstance(row.get("kind"), str) or type(row.get("t_ns")) is not int:
        raise ValueError("an event is an object with kind and t_ns")
    fields: dict[str, Any] = {name: value for name, value in row.items() if name != "kind"}
    if (known := formed(KINDS.get(row["kind"], []), fields)) is not None:
        return known
    return Unknown(kind=row["kind"], t_ns=fields.pop("t_ns"), fields=fields)


class Lasted(NamedTuple):
    """A fault that began: its name, what it did, and from when to when, virtual seconds; `end_s` None: to the end."""

    fault: str
    what: str
    begin_s: float
    end_s: float | None


def faults_of(events: Iterable[Event]) -> list[Lasted]:
    """The faults of a run, in the order in which they began; one that began again is there again."""
    found: list[Lasted] = []
    latest: dict[str, int] = {}
    for event in events:
        match event:
            case Began(fault=fault, what=what):
                latest[fault] = len(found)
                found.append(Lasted(fault, what, event.t_ns / 1e9, None))
            case Undone(fault=fault) if fault in latest:
                number = latest.pop(fault)
                found[number] = found[number]._replace(end_s=event.t_ns / 1e9)
    return found
