"""Files that administrators write: YAML, read as labs are, so that a mistake has its line and column."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, ValidationError

from dilaton.lab.errors import LabError, Problem
from dilaton.lab.text.document import read_document


class Written(BaseModel):
    """Base of what such a file holds: nothing unknown in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)


SomeWritten = TypeVar("SomeWritten", bound=Written)


def read_written(model: type[SomeWritten], path: Path) -> SomeWritten:
    """What a file holds.

    Raises:
        LabError: it cannot be read, or has mistakes.
    """
    try:
        text = path.read_text()
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "not UTF-8"
        raise LabError([Problem(str(path), 0, 0, "", f"cannot be read: {why}")]) from error
    document = read_document(text, str(path))
    if document.problems:
        raise LabError(document.problems)
    try:
        return model.model_validate(document.data)
    except ValidationError as error:
        raise LabError(
            [
                document.problem(one["loc"], str(one["msg"]), at_key=one["type"] == "extra_forbidden")
                for one in error.errors()
            ]
        ) from error
