"""Expectations that speak of a part of a run: `client.errors == 0 after 20s`, `web.latency.p99 < 200ms during cut`.

What they are about is single operations of a process, or its throughput in the course of time
(`dilaton.measure.operations`). A span is the time before, during or after a fault, or before or after an instant. It
may be cut into windows, in each of which the expectation has to hold, as service-level agreements want it:
`client.availability > 99% in every 10s`. An average over all of a run would hide a bad minute in a good hour.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

from dilaton.lab.text import units

RUN = "run"
"""`during run`: all of it."""

RATIO, DURATION, COUNT, RATE = "1", "s", "", "bit/s"

TIMED = {
    "operations": COUNT,
    "errors": COUNT,
    "availability": RATIO,
    "rate": COUNT,
    "throughput": RATE,
    **{f"latency.{name}": DURATION for name in ("avg", "max", "p50", "p95", "p99")},
}
"""What can be told of a part of a run, with its unit; a rate is operations a second."""

RECOVERING = ("rate", "throughput")
"""What a time to recover can be of."""

DIP = Fraction(1, 5)
"""By this share of its mean before the fault a metric may be lower and still count as recovered, unless written."""

WINDOW_NS_MIN = 100_000_000
"""Shorter windows hold too little to say anything of it."""

_SPAN = re.compile(r"(.+\S)\s+(after|before|during)\s+(\S+)")
_WINDOWS = re.compile(r"(.+\S)\s+in\s+every\s+(\S+)")
_RECOVERY = re.compile(
    r"time\s+to\s+recover\s+of\s+(\S+)\s+after\s+(\S+?)(?:\s+within\s+(\S+))?\s*((?:>=|<=|==|!=|>|<).*)"
)


@dataclass(frozen=True)
class Span:
    """A part of a run.

    Attributes:
        relation: Of that part to the fault or the instant.
        fault: Its name; empty: an instant is meant, or with `during` all of the run.
        at_ns: The instant, if one is meant.
        every_ns: How long each window of it is; None: it is one.
    """

    relation: Literal["after", "before", "during"]
    fault: str = ""
    at_ns: int = 0
    every_ns: int | None = None


@dataclass(frozen=True)
class Recovery:
    """How long something takes, from the begin of a fault on, until it stays as high as its mean before; less `dip`."""

    fault: str
    dip: Fraction = DIP


def split_span(text: str) -> tuple[str, Span | None]:
    """An expectation without its span, and that; None: it is of the whole run.

    Raises:
        ValueError: It is during an instant, or its windows are too short, or no duration.
    """
    rest, span = _without_windows(text)
    match = _WINDOWS.fullmatch(rest)
    if match is None:
        return rest, span
    every_ns = units.parse_duration(match[2], "a window")
    if every_ns < WINDOW_NS_MIN:
        raise ValueError(f"{match[2]}: a window must be at least {units.format_duration(WINDOW_NS_MIN)}")
    return match[1], replace(span or Span("during"), every_ns=every_ns)


def _without_windows(text: str) -> tuple[str, Span | None]:
    match = _SPAN.fullmatch(text)
    if match is None:
        return text, None
    rest, relation, when = match.groups()
    is_instant = when[0].isdigit()
    if relation == "during":
        if is_instant:
            raise ValueError(f"{text}: during wants the name of a fault, or run; write after {when} or before {when}")
        return rest, Span("during", "" if when == RUN else when)
    at_ns = units.parse_duration(when, "an instant") if is_instant else 0
    return rest, Span("after" if relation == "after" else "before", "" if is_instant else when, at_ns)


def split_recovery(text: str) -> tuple[str, Recovery, str] | None:
    """`PROCESS.METRIC`, the recovery, and the comparison, of an expectation that speaks of a time to recover.

    Raises:
        ValueError: A tolerance is none.
    """
    match = _RECOVERY.fullmatch(text)
    if match is None:
        return None
    subject, fault, within, comparison = match.groups()
    dip = DIP if within is None else units.parse_ratio(within, "a tolerance")
    return subject, Recovery(fault, dip), comparison
