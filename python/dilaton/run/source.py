"""What a run keeps of the lab that it runs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dilaton.lab.model import Lab


@dataclass(frozen=True)
class Source:
    """The lab that a plan was compiled from: as it was read, as it was written, and its file if it has one.

    What counts instead of what was written is in `settings`, as PATH=VALUE.
    """

    lab: Lab
    text: str
    file: Path | None = None
    settings: tuple[str, ...] = ()
