"""What an agent may say: the shapes of its messages, as `crates/agent/PROTOCOL.md` has them.

Root of a guest can write on the agent's line. What is said there is therefore checked before anybody acts on it, by its
shape here and, once a run goes on, by the names of its plan.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dilaton.plan.model import Plan  # `dilaton exec` needs no models

Message = dict[str, Any]
Shape = Mapping[str, Callable[[object], bool]]

COUNT_MAX = (1 << 63) - 1


def _text(value: object) -> bool:
    # JSON can say halves of surrogate pairs, which no file and no terminal takes.
    return isinstance(value, str) and not any("\ud800" <= letter <= "\udfff" for letter in value)


def _count(most: int = COUNT_MAX) -> Callable[[object], bool]:
    return lambda value: type(value) is int and 0 <= value <= most


def _flag(value: object) -> bool:
    return isinstance(value, bool)


def _one_of(*values: str) -> Callable[[object], bool]:
    return lambda value: isinstance(value, str) and value in values


SHAPES: dict[str, Shape] = {
    "hello": {"protocol": _count(), "version": _text, "kernel": _text},
    "progress": {"done": _count(), "total": _count(), "what": _text},
    "ready": {},
    "armed": {"zero_ns": _count()},
    "link-updated": {"file": _text, "t_ns": _count()},
    "link-refused": {"file": _text, "reason": _text},
    "finished": {"t_ns": _count(), "outcome": _one_of("done", "stopped", "failed"), "reason": _text},
    "fatal": {"reason": _text},
}
"""The fields of each type of message but events."""

_PROCESS: Shape = {"process": _text, "node": _text}
_ENDED: Shape = {"expected": _flag, "timed_out": _flag, "stopped": _flag, **_PROCESS}

EVENTS: dict[str, tuple[Shape, ...]] = {
    "started": ({"pid": _count(), **_PROCESS},),
    "start-failed": ({"reason": _text, **_PROCESS},),
    "ready": (_PROCESS,),
    "ready-timeout": ({"reason": _text, **_PROCESS},),
    "exited": ({"status": _count(255), **_ENDED}, {"signal": _count(64), **_ENDED}),
    "skipped": ({"reason": _text, **_PROCESS},),
    "link-changed": ({"at_ns": _count(), "link": _text},),
    "capture-ended": ({"node": _text, "interface": _text, "reason": _text},),
    "spinning": ({"node": _text, "program": _text},),
    "memory-short": ({"node": _text, "memory": _one_of("tcp", "udp", "node", "guest"), "times": _count()},),
    "sampling-ended": ({"table": _one_of("interfaces", "tcp", "nodes", "sampler"), "reason": _text},),
}
"""The fields of each kind of event besides `t_ns`, in all forms that it has."""


def parse(line: bytes) -> Message:
    """The message of a line.

    Raises:
        ValueError: It is none; the text says why.
    """
    try:
        message = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError("no JSON") from error
    if not isinstance(message, dict) or not isinstance(message.get("type"), str):
        raise ValueError("no object with a type")
    fields = {name: value for name, value in message.items() if name != "type"}
    if message["type"] != "event":
        shapes: tuple[Shape, ...] = (SHAPES[message["type"]],) if message["type"] in SHAPES else ()
    else:
        kind = fields.pop("kind", None)
        forms = EVENTS.get(kind, ()) if isinstance(kind, str) else ()
        shapes = tuple({"t_ns": _count(), **form} for form in forms)
    if not shapes:
        raise ValueError("of no known kind")
    if not any(_fits(fields, shape) for shape in shapes):
        raise ValueError("its fields are not those of its kind")
    return message


def _fits(fields: Message, shape: Shape) -> bool:
    return fields.keys() == shape.keys() and all(is_good(fields[name]) for name, is_good in shape.items())


class Names:
    """What there is in a plan for events to be about."""

    def __init__(self, planned: Plan) -> None:
        """Takes the names of a plan."""
        self._nodes = {node.name for node in planned.nodes}
        self._processes = {(process.name, process.node) for process in planned.processes}
        self._links = {link.name for link in planned.links}

    def check(self, message: Message) -> None:
        """Refuses an event about what is not in the plan.

        Raises:
            ValueError: It is; the text says what is not there.
        """
        node, process, link = (message.get(name) for name in ("node", "process", "link"))
        if process is not None and (process, node) not in self._processes:
            raise ValueError(f"there is no process {process} of {node}")
        if node is not None and node not in self._nodes:
            raise ValueError(f"there is no node {node}")
        if link is not None and link not in self._links:
            raise ValueError(f"there is no link {link}")
