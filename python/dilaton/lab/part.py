"""What all parts of a lab have in common."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, BeforeValidator, ConfigDict

from dilaton.lab import syntax

Flag = Annotated[bool, BeforeValidator(syntax.parse_flag)]
Text = Annotated[str, BeforeValidator(syntax.parse_text)]


class Part(BaseModel):
    """Base of every part of a lab: immutable, and nothing unknown in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", validate_by_alias=True, validate_by_name=True)
