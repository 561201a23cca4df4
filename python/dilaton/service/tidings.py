"""What the process of a run says to who launched it, until the run has begun, and at its end: a line of JSON each.

What went wrong before a run began is told as what it is, so that whoever launched it can raise the same error.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, TypeAdapter

from dilaton.host.errors import HostLacksError
from dilaton.lab.errors import LabError, Problem
from dilaton.run.record.record import State
from dilaton.service.errors import RequestError
from dilaton.service.request import Value, from_json, to_json


class LabRefused(Value):
    """The lab has mistakes."""

    kind: Literal["lab-refused"] = "lab-refused"
    problems: tuple[Problem, ...]

    def error(self) -> LabError:
        """The error that this was."""
        return LabError(self.problems)


class RequestRefused(Value):
    """The request has a mistake."""

    kind: Literal["request-refused"] = "request-refused"
    message: str
    field: str

    def error(self) -> RequestError:
        """The error that this was."""
        return RequestError(self.message, self.field)


class HostLacks(Value):
    """This machine lacks something that the run needs."""

    kind: Literal["host-lacks"] = "host-lacks"
    what: str
    fix: str

    def error(self) -> HostLacksError:
        """The error that this was."""
        return HostLacksError(self.what, self.fix)


class Begun(Value):
    """The clock is released, or held where it was to be: from now on the run is steered by its control socket."""

    kind: Literal["begun"] = "begun"
    run_dir: Path


class Ended(Value):
    """The run is over, and all that follows a run; `is_well` as `conduct.went_well`."""

    kind: Literal["ended"] = "ended"
    run_dir: Path
    state: State
    reason: str | None
    is_well: bool


Refused = LabRefused | RequestRefused | HostLacks
Tiding = Annotated[Refused | Begun | Ended, Field(discriminator="kind")]

_TIDING: TypeAdapter[Tiding] = TypeAdapter(Tiding)


def refused(error: LabError | RequestError | HostLacksError) -> Refused:
    """What is said of an error by which a run was refused."""
    match error:
        case LabError():
            return LabRefused(problems=tuple(error.problems))
        case RequestError():
            return RequestRefused(message=error.message, field=error.field)
        case HostLacksError():
            return HostLacks(what=error.what, fix=error.fix)


def line_of(tiding: Tiding) -> bytes:
    """A tiding as it is sent."""
    return to_json(tiding) + b"\n"


def tiding_of(line: bytes) -> Tiding:
    """A tiding as it was sent.

    Raises:
        ValueError: the line is none.
    """
    return _TIDING.validate_python(from_json(line))
