"""What a fault can do to the clock of a node."""

from __future__ import annotations

import re
from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part, Text

JUMP_NS_MAX = 50 * 365 * 24 * units.DURATIONS["h"]
"""A kernel has no date before 1970, nor one much later than 2200. Faults that last together keep within this, too
(`crates/agent/src/schedule/course.rs`)."""

DRIFT_EVERY_NS = 10_000_000
"""A date that drifts is moved so often. With a kernel's own way to do it, adjtimex, CLOCK_MONOTONIC and timers would
drift too, and they are virtual time."""

DRIFT_NS_MAX = DRIFT_EVERY_NS // 10
"""100,000 ppm: a second in ten. No clock of a machine that works is worse."""

_DRIFT = re.compile(r"([+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?) *ppm", re.ASCII)


def _parse_drift(value: object) -> int:
    """Reads parts per million with a sign, `500ppm`: nanoseconds in each `DRIFT_EVERY_NS`."""
    if isinstance(value, int) and not isinstance(value, bool):
        ns = Fraction(value)
    elif isinstance(value, str) and (written := _DRIFT.fullmatch(value.strip())):
        ns = Fraction(written[1]) * DRIFT_EVERY_NS / 10**6
    else:
        raise ValueError(f"{units.shown(value)}: a drift is in parts per million, as in 500ppm or -20ppm")
    if ns.denominator != 1 or ns == 0:
        raise ValueError(f"{units.shown(value)}: a drift is a multiple of 0.1ppm, and not 0")
    if abs(ns) > DRIFT_NS_MAX:
        raise ValueError(f"{units.shown(value)}: a drift can be at most 100000ppm")
    return int(ns)


def _parse_jump(value: object) -> int:
    """Reads a duration with a sign, `+2s`, nanoseconds."""
    text = syntax.parse_text(value) if isinstance(value, str) else value
    sign = -1 if isinstance(text, str) and text.startswith("-") else 1
    if isinstance(text, str):
        text = text[1:].strip() if text[:1] in ("+", "-") else text
    ns = units.parse_duration(text, "a jump")
    if ns == 0:
        raise ValueError(f"{units.shown(value)}: a jump is of more or less than 0")
    if ns > JUMP_NS_MAX:
        raise ValueError(f"{units.shown(value)}: a jump can be of at most 50 years, 438000h")
    return sign * ns


class SetClock(Part):
    """By how much the date of a node is another one while the fault lasts."""

    node: Text
    jump_ns: Annotated[int, BeforeValidator(_parse_jump)] | None = Field(default=None, validation_alias="jump")
    """Later by so much; less than 0: earlier."""
    back_ns: Annotated[int, BeforeValidator(_parse_jump)] | None = Field(default=None, validation_alias="back")
    """Earlier by so much."""
    drift_ns: Annotated[int, BeforeValidator(_parse_drift)] | None = Field(default=None, validation_alias="drift")
    """Later by so much in each `DRIFT_EVERY_NS`; less than 0: earlier."""

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> SetClock:
        if sum(way is not None for way in (self.jump_ns, self.back_ns, self.drift_ns)) != 1:
            raise ValueError(
                "needs one of jump: +2s, by how much the date is later, back: 2s, earlier, or drift: 500ppm, too fast"
            )
        if self.back_ns is not None and self.back_ns < 0:
            raise ValueError("back: is earlier already; write it without the sign")
        return self

    @property
    def by_ns(self) -> int:
        """Later by so much; less than 0: earlier."""
        if self.drift_ns is not None:
            return self.drift_ns
        return self.jump_ns if self.jump_ns is not None else -(self.back_ns or 0)

    @property
    def every_ns(self) -> int | None:
        """By so much after each of these, again and again; None: once."""
        return None if self.drift_ns is None else DRIFT_EVERY_NS

    def __str__(self) -> str:
        if self.drift_ns is not None:
            return f"{self.node} drift {self.drift_ns * 10**6 / DRIFT_EVERY_NS:+.12g}ppm"
        sign = "+" if self.by_ns > 0 else "-"
        return f"{self.node} {sign}{units.format_duration(abs(self.by_ns))}"
