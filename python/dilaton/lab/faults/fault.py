"""Faults: what a lab breaks on purpose at exact instants, and mends again.

A fault begins at an instant (`at`) or so long (`wait`) after a moment of a process or of another fault (`after`), does
one thing, and is undone `for` that long after it began, whatever has become meanwhile of what it waited for. What a lab
leaves to its seed is drawn before anything else is done with it (`drawing.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Self

from pydantic import BeforeValidator, Field, ModelWrapValidatorHandler, PrivateAttr, ValidationError, model_validator

from dilaton.lab.faults.clock import SetClock
from dilaton.lab.faults.disk import BrokenDisk
from dilaton.lab.faults.load import Load
from dilaton.lab.faults.machine import LessMemory, SlowCpu
from dilaton.lab.faults.partition import Partition
from dilaton.lab.faults.random import Random
from dilaton.lab.parts.impairments import duration
from dilaton.lab.parts.links import BothWays, Change, words_of
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part, Text

POWER = ("crash", "stop", "reboot", "start")
"""What becomes of a node as a whole; of these the last one says when it is on again."""

ACTIONS = ("pause", "kill", "link", "flap", "partition", "disk", "clock", "cpu", "memory", "load", *POWER, "random")
"""What a fault can do: fields of `Fault`, of which exactly one is written. The last stands for others."""

WORDS: Mapping[str, Mapping[str, Any]] = {
    "kill": {"kill": "a/a"},
    "link": {"link": "a--b", "down": True},
    "partition": {"partition": {"halves": ["a", "b"]}},
}
"""What `random` makes of a word that is not just done to a node, with names that stand for what is drawn."""

TURN_NS_MIN = 1_000_000
"""A link that comes and goes faster than this keeps the CPU busy and nothing else."""


class Subject(Part):
    """What a fault is about: a node, or one of its processes."""

    node: str
    process: str | None = None

    def __str__(self) -> str:
        return self.node if self.process is None else f"{self.node}/{self.process}"


def _parse_subject(value: object) -> object:
    if not isinstance(value, str):
        return value
    node, slash, process = syntax.parse_text(value).partition("/")
    if not node or (slash and not process):
        raise ValueError(f"{value!r}: write a node, such as db1, or one of its processes, such as db1/server")
    return Subject(node=node, process=process or None)


def _parse_turn(value: object) -> int:
    ns = units.parse_duration(value, "a duration")
    if ns < TURN_NS_MIN:
        raise ValueError(f"{units.shown(value)}: must be at least {units.format_duration(TURN_NS_MIN)}")
    return ns


class Flap(Part):
    """A link that is down for a while, then up for a while, and so on."""

    link: Text
    """The link's endpoints, written as in `changes`."""
    down_ns: Annotated[int, BeforeValidator(_parse_turn)] = Field(validation_alias="down")
    """So long it is down, with which it begins; at least 1 ms."""
    up_ns: Annotated[int, BeforeValidator(_parse_turn)] = Field(validation_alias="up")
    """So long it is up in between; at least 1 ms."""

    def __str__(self) -> str:
        return self.link


class Fault(BothWays):
    """Something that is broken on purpose. Fields of a link's directions say what `link` suffers."""

    name: Text = ""
    """The name by which others wait for it; `fault1`, `fault2`, … by its place in the list unless written."""
    at_ns: Annotated[int, duration("an instant")] | None = Field(default=None, validation_alias="at")
    after: Text | None = None
    """A moment of a process or another fault (`lab/text/moments.py`)."""
    wait_ns: Annotated[int, duration("a wait")] = Field(default=0, validation_alias="wait")
    """How long after that moment it begins."""
    for_ns: Annotated[int, duration("a duration")] | None = Field(default=None, validation_alias="for")
    """None: it stays."""
    pause: Annotated[Subject | None, BeforeValidator(_parse_subject)] = None
    """Whose programs stand still."""
    kill: Annotated[Subject | None, BeforeValidator(_parse_subject)] = None
    """The process that is killed."""
    restart_ns: Annotated[int, duration("a delay")] | None = Field(default=None, validation_alias="restart")
    """After the kill; None: it is dead, unless the process says when it is started again."""
    crash: Text | None = None
    """The node that loses its power."""
    stop: Text | None = None
    """The node that is shut down."""
    reboot: Text | None = None
    """The node that is shut down, and boots when it is off."""
    start: Text | None = None
    """The node that boots, being off."""
    link: Text | None = None
    """The link's endpoints, written as in `changes`."""
    down: Annotated[bool, BeforeValidator(syntax.parse_flag)] | None = None
    """Whether both interfaces of `link` are down."""
    flap: Flap | None = None
    """The link that goes down and up again and again."""
    partition: Partition | None = None
    """Who does not hear whom."""
    disk: BrokenDisk | None = None
    """What is wrong with the disk of a node."""
    clock: SetClock | None = None
    """By how much the date of a node is another one."""
    cpu: SlowCpu | None = None
    """How fast the CPU of a node is."""
    memory: LessMemory | None = None
    """How much memory a node has."""
    load: Load | None = None
    """What a node sends to another one."""
    random: Random | None = None
    """Faults that are drawn from the seed, from `at` on, or from a moment on, for so long."""
    _place: int = PrivateAttr(0)
    _mistake: tuple[tuple[str, ...], str] | None = PrivateAttr(None)
    _set: str = PrivateAttr("")
    _ports: tuple[Change, ...] | None = PrivateAttr(None)

    @model_validator(mode="wrap")
    @classmethod
    def _keep_words(cls, data: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        fault = handler(data)
        if isinstance(data, Mapping):
            fault._set = words_of(data, fault.down)
        return fault

    @model_validator(mode="after")
    def _one_beginning_and_one_action(self) -> Fault:
        begins_itself = self.random is not None and self.after is None
        if (self.at_ns is None) == (self.after is None) and not begins_itself:
            raise ValueError("needs either at, an instant, or after, a process or fault that it waits for")
        if self.after is None and "wait_ns" in self.model_fields_set:
            raise ValueError("wait goes with after; at says the instant itself")
        if sum(getattr(self, action) is not None for action in ACTIONS) != 1:
            raise ValueError(f"needs what it does, one of {', '.join(ACTIONS)}, as in pause: db1")
        if self.random is not None:
            _check_kinds(self.random.of)
        if self.restart_ns is not None and self.kill is None:
            raise ValueError("restart goes with kill: db1/server")
        if self.kill is not None and self.for_ns is not None:
            raise ValueError("a kill has no duration; restart: says how long after it the process is started again")
        if self.start is not None and self.for_ns is not None:
            raise ValueError("a start has no duration; the node is on from then on")
        if self.reboot is not None and self.for_ns is not None:
            raise ValueError("a reboot takes as long as the node's programs take to end; write stop: with for:")
        suffered = self.model_fields_set & {*BothWays.model_fields, "down"}
        if self.link is None and suffered:
            raise ValueError("says what becomes of a link, and not of which; write link: a--b")
        if self.link is not None and not suffered:
            raise ValueError(f"says not what becomes of link {self.link}; write for example loss: 30% or down: true")
        return self

    @property
    def place(self) -> int:
        """The place in the list of faults of what it was written as."""
        return self._place

    @property
    def mistake(self) -> tuple[tuple[str, ...], str] | None:
        """Why it could not be drawn, and where in it that is written."""
        return self._mistake

    @property
    def lasts_ns(self) -> int | None:
        """How long after its begin it ends; None: it does not."""
        return self.for_ns if self.kill is None else self.restart_ns

    @property
    def words(self) -> str:
        """What it does, as it was written: `pause db1`, `link a--b loss 30%`."""
        return f"{self.action} {getattr(self, self.action)}" + (f" {self._set}" if self.link else "")

    @property
    def action(self) -> str:
        """Which of `ACTIONS` it is."""
        return next(action for action in ACTIONS if getattr(self, action) is not None)

    @property
    def node(self) -> str | None:
        """The node that goes off or on by it."""
        return getattr(self, self.action) if self.action in POWER else None

    @property
    def changes(self) -> tuple[Change, ...]:
        """What links are under it, each as a change that counts over all others; the instant is not used."""
        if self._ports is not None:
            return self._ports
        if self.flap is not None:
            return (Change(at_ns=0, link=self.flap.link, down=True),)
        if self.link is None:
            return ()
        own = {name: getattr(self, name) for name in self.model_fields_set & BothWays.model_fields.keys()}
        return (Change(at_ns=0, link=self.link, down=self.down, **own).worded(self._set),)

    def is_there(self, since_ns: int) -> bool:
        """Whether it has its effect so long after its begin, before its end: one that comes and goes may have none."""
        return self.flap is None or since_ns % (self.flap.down_ns + self.flap.up_ns) < self.flap.down_ns

    def at_place(self, place: int) -> Fault:
        """The same fault, written there."""
        copy = self.model_copy()
        copy._place = place
        return copy

    def mistaken(self, path: tuple[str, ...], message: str) -> Fault:
        """The same fault, which cannot be drawn."""
        copy = self.model_copy()
        copy._mistake = (path, message)
        return copy

    def on_ports(self, ports: Sequence[Change]) -> Fault:
        """The same fault, of the ports of a segment."""
        copy = self.model_copy()
        copy._ports = tuple(ports)
        return copy


def name_faults(written: list[Fault]) -> list[Fault]:
    """Gives every fault its place, and one without a name a name by that."""
    return [
        (fault if fault.name else fault.model_copy(update={"name": f"fault{number}"})).at_place(number - 1)
        for number, fault in enumerate(written, 1)
    ]


def kind_of_fault(what: Mapping[str, Any], lasts_ns: int, when: Mapping[str, Any]) -> Fault:
    """A fault that is written without its time, at some time.

    Raises:
        ValidationError: It is none.
    """
    lasts = "restart" if "kill" in what else "for"
    return Fault.model_validate({**when, lasts: lasts_ns, **what}, by_name=False)


def _check_kinds(kinds: Sequence[Any]) -> None:
    """Refuses what is no kind of fault that `random` can draw."""
    for number, kind in enumerate(kinds):
        place = f"random.of[{number}]"
        if isinstance(kind, str):
            if kind not in ACTIONS or kind == "random":
                hint = syntax.did_you_mean(kind, ACTIONS) or f"; known: {', '.join(ACTIONS[:-1])}"
                raise ValueError(f"{place}: unknown kind of fault {kind}{hint}")
            what: Mapping[str, Any] = WORDS.get(kind, {kind: "a"})
        else:
            what = kind
            if timed := sorted({"at", "after", "wait", "for", "restart", "name", "random"} & set(kind)):
                said = "is not part of a kind of fault; when it is, and for how long, is drawn"
                raise ValueError(f"{place}: {timed[0]} {said}")
        try:
            kind_of_fault(what, 1, {"at": 0})
        except ValidationError as error:
            if isinstance(kind, str):
                raise ValueError(f"{place}: {kind} alone does not say what is done; write {{{kind}: …}}") from error
            # What knows the words for all fields of a lab imports us.
            from dilaton.lab.text.wording import message

            detail = error.errors()[0]
            known = _fields(what) | ({detail["loc"][-1]} if detail["type"] == "missing" else set())
            where = "".join(f".{step}" for step in detail["loc"] if step in known)
            detail["loc"] = ("faults", 0, *detail["loc"])
            raise ValueError(f"{place}{where}: {message(detail)}") from error


def _fields(what: object) -> set[object]:
    """All names that are written in a mapping and below it."""
    if isinstance(what, Mapping):
        return set(what).union(*map(_fields, what.values()))
    return set(range(len(what))).union(*map(_fields, what)) if isinstance(what, list | tuple) else set()
