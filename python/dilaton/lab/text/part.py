"""What all parts of a lab have in common."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError

from dilaton.lab.text import syntax

Flag = Annotated[bool, BeforeValidator(syntax.parse_flag)]
Text = Annotated[str, BeforeValidator(syntax.parse_text)]


class Part(BaseModel):
    """Base of every part of a lab: immutable, and nothing unknown in it.

    Parts that are defaults of fields are made by `model_construct`: to be checked each would need a validator of its
    own, which takes some milliseconds to build and which no lab needs.
    """

    model_config = ConfigDict(
        frozen=True, extra="forbid", defer_build=True, validate_by_alias=True, validate_by_name=True
    )


AnyPart = TypeVar("AnyPart", bound=Part)


def made(model: type[AnyPart], fields: dict[str, Any], subject: str, context: dict[str, Any] | None = None) -> AnyPart:
    """A part with these fields, made from what a graph or a file says of `subject`; `context` is what validators get.

    Raises:
        ValueError: a field cannot be so; the text names the subject and the first such field.
    """
    try:
        return model.model_validate(fields, context=context)
    except ValidationError as error:
        detail = error.errors()[0]
        place = ".".join(str(step) for step in detail["loc"])
        what = detail.get("ctx", {}).get("error", detail["msg"])
        raise ValueError(f"{subject}: {place}: {what}") from error
