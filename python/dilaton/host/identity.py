"""Which kernel it was: beside the port, since kernels are also looked for where there is no guest."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Identity:
    """Which kernel the guests of a run ran, as its record says.

    Attributes:
        path: `debian`, or the file of one of our own; empty where none has run.
        sha256: of the file.
        has_seccomp: whether it did not trace its programs.
    """

    path: str = ""
    sha256: str = ""
    has_seccomp: bool = False
