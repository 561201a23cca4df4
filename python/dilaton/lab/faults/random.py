"""Faults that nobody names one by one: how often, for how long, of which kinds. `drawing.py` draws them."""

from __future__ import annotations

import random
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal, NamedTuple

from pydantic import BeforeValidator, Field, InstanceOf

from dilaton.lab.parts.impairments import count
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part, Text

EVERY_NS_MIN = 1_000_000
"""Faults that come faster than this are no faults but a state."""

AT_MOST_MAX = 1_000

_SPAN = re.compile(r"(exponential|uniform) +(\S.*)")


class Span(NamedTuple):
    """A duration that is drawn, in nanoseconds."""

    law: Literal["exponential", "uniform"]
    low_ns: int
    """The shortest; of `exponential` the mean."""
    high_ns: int

    def drawn(self, draw: random.Random) -> int:
        """One of them; at least 1 ns."""
        if self.law == "uniform":
            return draw.randint(self.low_ns, self.high_ns)
        return max(1, round(draw.expovariate(1 / self.low_ns)))

    @property
    def mean_ns(self) -> float:
        """The mean of many."""
        return self.low_ns if self.law == "exponential" else (self.low_ns + self.high_ns) / 2


def _parse_span(value: object) -> Span:
    if isinstance(value, Span):
        return value
    written = _SPAN.fullmatch(value.strip()) if isinstance(value, str) else None
    law, text = written.groups() if written else ("", str(value))
    if law == "uniform":
        low, dots, high = text.partition("..")
        if not dots:
            raise ValueError(f"{value!r}: write the shortest and the longest, as in uniform 1s..5s")
        low_ns, high_ns = (units.parse_duration(each.strip(), "a duration") for each in (low, high))
    else:
        low_ns = high_ns = units.parse_duration(text, "a duration")
    if not 0 < low_ns <= high_ns:
        raise ValueError(f"{units.shown(value)}: write a duration of more than 0, exponential 20s, or uniform 1s..5s")
    return Span("exponential" if law == "exponential" else "uniform", low_ns, high_ns)


def _parse_every(value: object) -> Span:
    span = _parse_span(value)
    if span.mean_ns < EVERY_NS_MIN:
        raise ValueError(f"{units.shown(value)}: must be at least {units.format_duration(EVERY_NS_MIN)}")
    return span


def _parse_kinds(value: object) -> object:
    kinds = [value] if isinstance(value, str | Mapping) else value
    if not isinstance(kinds, list | tuple) or not kinds or not all(isinstance(one, str | Mapping) for one in kinds):
        raise ValueError("needs kinds of faults, as in [pause, partition, {link: one of db*--*, loss: 30%}]")
    return tuple(kinds)


class Random(Part):
    """What faults are drawn."""

    every: Annotated[InstanceOf[Span], BeforeValidator(_parse_every)]
    """How long it is from one begin to the next."""
    lasts: Annotated[InstanceOf[Span], BeforeValidator(_parse_span)] = Field(validation_alias="for")
    """How long each of them lasts."""
    of: Annotated[tuple[Any, ...], BeforeValidator(_parse_kinds)]
    """Kinds of faults, all equally likely: a word, or a fault without its time, whose selectors draw anew each time."""
    on: Annotated[tuple[Text, ...], BeforeValidator(syntax.parse_names)] = ("*",)
    """The nodes that words are about, one of which is drawn each time; all unless written."""
    at_most: Annotated[int, count("how many at once", 1, AT_MOST_MAX)] = 1
    """So many last at once; one that would be one too many is left out."""

    def __str__(self) -> str:
        return f"of {', '.join(one if isinstance(one, str) else next(iter(one), '') for one in self.of)}"
