"""What a fault can do to the disk of a node."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from dilaton.lab.parts.impairments import duration, percentage
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part, Text

EFFECTS = ("errors", "corrupt", "delay", "stall", "read_only", "full")
"""What can be wrong with a disk, as users write it."""


class BrokenDisk(Part):
    """What is wrong with the disk of a node while the fault lasts."""

    node: Text
    errors: Annotated[float, percentage("a share of errors")] = 0.0
    """The share of reads and writes that fail."""
    corrupt: Annotated[float, percentage("a share of corrupted reads")] = 0.0
    """The share of reads in which one bit is wrong."""
    delay_ns: Annotated[int, duration("a delay")] = Field(default=0, validation_alias="delay")
    """So much longer each request takes."""
    stall_ns: Annotated[int, duration("a duration")] = Field(default=0, validation_alias="stall")
    """So long from the begin on nothing is answered."""
    read_only: Annotated[bool, BeforeValidator(syntax.parse_flag)] = False
    """Whether writes fail."""
    full: Annotated[bool, BeforeValidator(syntax.parse_flag)] = False
    """Whether writes fail for want of room."""

    @model_validator(mode="after")
    def _agree(self) -> BrokenDisk:
        if not any((self.errors, self.corrupt, self.delay_ns, self.stall_ns, self.read_only, self.full)):
            raise ValueError(f"says not what is wrong with it; write one or more of {', '.join(EFFECTS)}")
        if self.read_only and self.full:
            raise ValueError("read_only and full: a write fails for one reason; leave one of them out")
        return self

    def __str__(self) -> str:
        shares = {"errors": self.errors, "corrupt": self.corrupt}
        durations = {"delay": self.delay_ns, "stall": self.stall_ns}
        flags: Mapping[str, Any] = {"read_only": self.read_only, "full": self.full}
        words = [f"{name} {100 * share:.6g}%" for name, share in shares.items() if share]
        words += [f"{name} {units.format_duration(ns)}" for name, ns in durations.items() if ns]
        return " ".join([self.node, *words, *(name for name, flag in flags.items() if flag)])
