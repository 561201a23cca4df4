"""What a fault can take away from a machine."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated

from pydantic import BeforeValidator, InstanceOf

from dilaton.lab.parts.cpus import parse_cpu
from dilaton.lab.text.part import Part, Text


class SlowCpu(Part):
    """How fast the CPU of a node is while the fault lasts."""

    node: Text
    to: Annotated[InstanceOf[Fraction], BeforeValidator(parse_cpu)]
    """That of a core of the host being 1, as at the node."""

    def __str__(self) -> str:
        return f"{self.node} to {float(self.to):g}"
