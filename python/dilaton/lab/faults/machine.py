"""What a fault can take away from a machine."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, Field, InstanceOf

from dilaton.lab.parts.cpus import parse_cpu
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part, Text


class SlowCpu(Part):
    """How fast the CPU of a node is while the fault lasts."""

    node: Text
    to: Annotated[InstanceOf[Fraction], BeforeValidator(parse_cpu)]
    """The speed that is left; that of a core of the host is 1, as at the node."""

    def __str__(self) -> str:
        return f"{self.node} to {float(self.to):g}"


class LessMemory(Part):
    """How much memory a node has while the fault lasts."""

    node: Text
    leave_bytes: Annotated[int, BeforeValidator(syntax.parse_node_memory)] = Field(validation_alias="leave")
    """What its programs may take, the files that it has in memory included."""

    def __str__(self) -> str:
        return f"{self.node} leave {units.format_size(self.leave_bytes)}"
