"""CPUs of nodes, in a plan."""

from __future__ import annotations

from fractions import Fraction

from pydantic import Field

from dilaton.plan.links.queues import Part


class Cpu(Part):
    """The CPU of a node that is a share of its guest's."""

    number: int = Field(ge=1)
    """Among those of its guest."""
    numerator: int = Field(gt=0)
    denominator: int = Field(gt=0)
    """Speed in cores of the host, as the exact ratio numerator / denominator."""

    @classmethod
    def of(cls, number: int, speed: Fraction) -> Cpu:
        """The CPU of that number and speed."""
        return cls(number=number, numerator=speed.numerator, denominator=speed.denominator)
