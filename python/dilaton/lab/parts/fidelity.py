"""What a lab asks of the fidelity of its runs, as users write it."""

from __future__ import annotations

from fractions import Fraction
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, InstanceOf, model_validator

from dilaton.lab.parts.impairments import duration
from dilaton.lab.text import units
from dilaton.lab.text.part import Flag, Part

TOLERANCE = Fraction(1, 20)


def _parse_tolerance(value: object) -> Fraction:
    tolerance = units.parse_ratio(value, "a tolerance")
    if not 0 < tolerance < 1:
        raise ValueError(f"{units.format_ratio(tolerance)}: a tolerance is more than 0% and less than 100%")
    return tolerance


class Fidelity(Part):
    """Whether runs are confirmed and what may differ for that, and which lateness does not matter.

    `fidelity: confirm` is short for `{confirm: true}`.
    """

    confirm: Flag = False
    """Whether the lab is run again with more time for the CPU, to see that its results do not depend on that."""
    tolerance: Annotated[InstanceOf[Fraction], BeforeValidator(_parse_tolerance)] = TOLERANCE
    """The relative change of a result that does not matter then, 0..1."""
    lateness_ns: Annotated[int, duration("a lateness")] | None = Field(default=None, validation_alias="lateness")
    """The lateness, in virtual time, up to which none matters to the verdict; None: what the lab's paths can notice."""

    @model_validator(mode="before")
    @classmethod
    def _from_word(cls, data: Any) -> Any:
        if isinstance(data, str):
            if data != "confirm":
                raise ValueError(f"{data}: not what can be asked of fidelity; write confirm, or a mapping of fields")
            return {"confirm": True}
        return data
