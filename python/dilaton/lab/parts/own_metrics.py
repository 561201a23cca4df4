"""Metrics of a lab's own: what to read from the output of a process that no parser knows.

`results: {failover: {regex: 'new leader after ([0-9.]+) s', unit: s}}` makes `load.failover` a metric like those of
iperf3: for expectations, in the record, in sweeps and comparisons.
"""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, model_validator

from dilaton.lab.text import syntax
from dilaton.lab.text.part import Part

Take = Literal["last", "first", "min", "max", "mean", "sum", "count"]

UNITS: dict[str, tuple[str, Fraction]] = {
    "": ("", Fraction(1)),
    "%": ("1", Fraction(1, 100)),
    "ns": ("s", Fraction(1, 10**9)),
    "us": ("s", Fraction(1, 10**6)),
    "ms": ("s", Fraction(1, 1000)),
    "s": ("s", Fraction(1)),
    "min": ("s", Fraction(60)),
    "bit/s": ("bit/s", Fraction(1)),
    "kbit/s": ("bit/s", Fraction(10**3)),
    "Mbit/s": ("bit/s", Fraction(10**6)),
    "Gbit/s": ("bit/s", Fraction(10**9)),
    "B/s": ("bit/s", Fraction(8)),
    "kB/s": ("bit/s", Fraction(8 * 10**3)),
    "MB/s": ("bit/s", Fraction(8 * 10**6)),
}
"""What a program may print its numbers in: the unit in which the results have them, and how many of it one is."""

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_STEP = re.compile(r"\.?([^.\[\]]+)|\[(-?[0-9]+)\]")


def _parse_unit(value: object) -> str:
    text = syntax.parse_text(value)
    if text not in UNITS:
        raise ValueError(
            f"{text}: not a unit; write one of {', '.join(filter(None, UNITS))}, or none for a plain number"
        )
    return text


def _parse_take(value: object) -> str:
    known = Take.__args__  # type: ignore[attr-defined]
    text = syntax.parse_text(value)
    if text not in known:
        raise ValueError(f"{text}: must be one of {', '.join(known)}{syntax.did_you_mean(text, known)}")
    return text


def _parse_group(value: object) -> str:
    text = syntax.parse_regex(value)
    if re.compile(text).groups != 1:
        raise ValueError(f"{text}: needs exactly one group in parentheses, which is the number, as in took ([0-9.]+) s")
    return text


def _parse_json_path(value: object) -> list[str | int]:
    if isinstance(value, list):
        return value
    text = syntax.parse_text(value)
    steps: list[str | int] = []
    # As JSONPath begins, by what most people know of paths in JSON.
    position = 1 if text.startswith(("$.", "$[")) else 0
    while match := _STEP.match(text, position):
        steps.append(match[1] if match[1] is not None else int(match[2]))
        position = match.end()
    if not steps or position != len(text):
        raise ValueError(f"{text}: not a path to a number in JSON; write for example end.streams[0].seconds")
    return steps


class OwnMetric(Part):
    """Where a number is in the output of a process, and in which unit."""

    regex: Annotated[str, BeforeValidator(_parse_group)] | None = None
    """Its only group is the number; every match in the output counts."""
    json_path: Annotated[list[str | int], BeforeValidator(_parse_json_path)] | None = Field(
        default=None, validation_alias="json"
    )
    """The way to it in the output, which is one JSON document, or has one on each line."""
    unit: Annotated[str, BeforeValidator(_parse_unit)] = ""
    take: Annotated[Take, BeforeValidator(_parse_take)] = "last"
    """Which of several numbers, or what of them."""

    @model_validator(mode="before")
    @classmethod
    def _from_regex_alone(cls, data: Any) -> Any:
        return {"regex": data} if isinstance(data, str) else data

    @model_validator(mode="after")
    def _one_place(self) -> OwnMetric:
        if (self.regex is None) == (self.json_path is None):
            raise ValueError("needs either regex, as in took ([0-9.]+) s, or json, as in end.seconds")
        return self


def parse_own_name(value: object) -> str:
    """Reads the name of a metric of a lab's own."""
    text = syntax.parse_text(value)
    if not NAME.fullmatch(text):
        raise ValueError(f"{text!r}: a metric's name has letters, digits and underscores, and no digit first")
    return text
