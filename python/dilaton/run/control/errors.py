"""Why a request to a run is not done. A file of its own, since who refuses a request need not know how it travels."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

ErrorKind = Literal["request", "verb", "argument", "refused", "guest", "host"]
"""Why a request is not done: it is none, its verb is none of the run's (now), an argument is wrong, the run cannot do
it as it stands, a guest has failed, this machine has."""


class ControlError(Exception):
    """A request cannot be done, or there is no run to do it; the message says why.

    Attributes:
        message: why, for people, without the run's directory, which a server tells nobody.
        kind: why, for programs.
    """

    def __init__(self, message: str, kind: ErrorKind = "refused", *, run_dir: Path | None = None) -> None:
        super().__init__(message if run_dir is None else f"{run_dir}: {message}")
        self.message, self.kind = message, kind
