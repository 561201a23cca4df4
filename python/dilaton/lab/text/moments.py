"""Moments in the course of a run that something may wait for, as they are written.

`server` is what the process `server` is there for: its readiness if it has one, else its start if it is in the
background, else its end as expected. `server.begin` and `server.end` are its start and its end, however it ends. Of a
fault, whose begin is its first moment, `cut` is the same as `cut.begin`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal, NamedTuple

from dilaton.lab.errors import unknown

Moment = Literal["begin", "milestone", "end"]


class Awaited(NamedTuple):
    """A moment of an entry of the course: of a process or a fault."""

    name: str
    moment: Moment


def read_moment(text: str, known: Collection[str]) -> Awaited:
    """The moment that is written as `NAME`, `NAME.begin` or `NAME.end`.

    Args:
        text: As written.
        known: The names of all entries. They may have dots.

    Raises:
        ValueError: There is no such entry.
    """
    if text in known:
        return Awaited(text, "milestone")
    name, dot, last = text.rpartition(".")
    if dot and name in known:
        if last == "begin":
            return Awaited(name, "begin")
        if last == "end":
            return Awaited(name, "end")
        raise ValueError(f"{text}: {name} has no moment {last}; write {name}, {name}.begin or {name}.end")
    raise ValueError(unknown("process or fault", text, sorted(known)))
