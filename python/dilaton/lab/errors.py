"""What is wrong with a lab, and where."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from dilaton.lab.text.syntax import did_you_mean

_LENGTH_MAX = 500
"""Characters of a message; what was written may be of any length, the line that reports it not."""

Path = tuple[str | int, ...]
"""The way to a part of the lab file: field names, keys and list positions, as `("links", 0, "rate")`."""


@dataclass(frozen=True)
class Finding:
    """Something wrong, at a path of the lab file: at its value, or at its key."""

    path: Path
    message: str
    at_key: bool = False


@dataclass(frozen=True, order=True)
class Problem:
    """One mistake. Lines and columns count from 1; line 0: the file as a whole."""

    file: str
    line: int
    column: int
    field: str
    message: str

    def __str__(self) -> str:
        """One line: `file:line:column: field: what is wrong, what would be right`."""
        place = f"{self.file}:{self.line}:{self.column}" if self.line else self.file
        return _one_line(": ".join(part for part in (place, self.field, self.message) if part))


class LabError(Exception):
    """A lab that cannot be used; `problems` holds every mistake found, in the order of the file."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = sorted(set(problems))
        super().__init__("\n".join(str(problem) for problem in self.problems))


def unknown(what: str, name: str, known: Sequence[str]) -> str:
    """Says that there is no such thing, with the closest one or those that there are."""
    hint = did_you_mean(name, known)
    if not hint:
        listed = ", ".join(known[:10]) + (", …" if len(known) > 10 else "")
        hint = f"; known: {listed}" if known else f"; there is no {what} at all"
    return f"unknown {what} {name}{hint}"


def field_name(path: Path) -> str:
    """A path as users read it: `links[0].endpoints[1]`."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in path)
    return text.removeprefix(".")


def path_of(field: str) -> Path:
    """The path that `field_name` wrote."""
    steps = re.findall(r"[^.\[\]]+", field)
    return tuple(int(step) if step.isdecimal() else step for step in steps)


def _one_line(text: str) -> str:
    escaped = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return escaped if len(escaped) <= _LENGTH_MAX else f"{escaped[:_LENGTH_MAX]}…"
