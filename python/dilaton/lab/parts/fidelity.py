"""What a lab asks of the fidelity of its runs, as users write it."""

from __future__ import annotations

import contextlib
from fractions import Fraction
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, InstanceOf, model_validator

from dilaton.lab.parts.impairments import duration
from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import Part

TOLERANCE = Fraction(1, 20)

Confirm = bool | Literal["suspect"]
"""Which runs are confirmed: all, none, or only those whose verdict alone would not have them believed."""


def _parse_confirm(value: object) -> Confirm:
    if value == "suspect":
        return "suspect"
    with contextlib.suppress(ValueError):
        return syntax.parse_flag(value)
    raise ValueError(f"{units.shown(value)}: must be true, false or suspect")


def _parse_tolerance(value: object) -> Fraction:
    tolerance = units.parse_ratio(value, "a tolerance")
    if not 0 < tolerance < 1:
        raise ValueError(f"{units.format_ratio(tolerance)}: a tolerance is more than 0% and less than 100%")
    return tolerance


class Fidelity(Part):
    """Whether runs are confirmed and what may differ for that, and which lateness does not matter.

    `fidelity: confirm` is short for `{confirm: true}`.
    """

    confirm: Annotated[Confirm, BeforeValidator(_parse_confirm)] = False
    """Whether the lab is run again with more time for the CPU, to see that its results do not depend on that; suspect:
    only if the verdict on the run is suspect or invalid."""
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

    def is_proof_due(self, *, is_believed: bool) -> bool:
        """Whether a run is to be confirmed; `is_believed`: whether its verdict alone would have it believed."""
        return not is_believed if self.confirm == "suspect" else self.confirm
