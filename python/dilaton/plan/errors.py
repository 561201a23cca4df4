"""What only planning can find wrong with a lab."""

from __future__ import annotations

from dilaton.lab.errors import LabError, Problem


def lab_error(field: str, message: str) -> LabError:
    """A mistake of the lab as a whole, at no line of its file."""
    return LabError([Problem(file="", line=0, column=0, field=field, message=message)])
