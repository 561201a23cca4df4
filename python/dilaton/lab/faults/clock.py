"""What a fault can do to the clock of a node."""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator, Field, model_validator

from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part, Text

JUMP_NS_MAX = 50 * 365 * 24 * units.DURATIONS["h"]
"""A kernel has no date before 1970, nor one much later than 2200. Faults that last together keep within this, too
(`crates/agent/src/schedule/course.rs`)."""


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

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> SetClock:
        if (self.jump_ns is None) == (self.back_ns is None):
            raise ValueError("needs either jump: +2s, by how much the date is later, or back: 2s, earlier")
        if self.back_ns is not None and self.back_ns < 0:
            raise ValueError("back: is earlier already; write it without the sign")
        return self

    @property
    def by_ns(self) -> int:
        """Later by so much; less than 0: earlier."""
        return self.jump_ns if self.jump_ns is not None else -(self.back_ns or 0)

    def __str__(self) -> str:
        sign = "+" if self.by_ns > 0 else "-"
        return f"{self.node} {sign}{units.format_duration(abs(self.by_ns))}"
