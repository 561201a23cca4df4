"""What a face asks for when it wants a run: one value, which is JSON on its way to another process."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from dilaton.lab.loader import read
from dilaton.lab.parts.fidelity import Confirm
from dilaton.lab.topology import KATHARA_FILE
from dilaton.run.files.directory import LAB_FILE
from dilaton.service.errors import RequestError

Engine = Literal["local", "slurm", "ray"]
"""What machines are had from: made of this one, or of a cluster that Slurm or Ray looks after."""

UNNAMED = "lab"
"""What stands for its file in messages about a lab that has none."""


class Value(BaseModel):
    """Base of all parts of a request: immutable, and nothing unknown in it."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


def to_json(value: Value) -> bytes:
    """A value as a line of JSON. Names of files need not be text, so what is none is escaped."""
    return json.dumps(value.model_dump(), default=os.fspath).encode()


def from_json(line: bytes) -> Any:
    """What `to_json` made of a value, to be validated.

    Raises:
        ValueError: it is no JSON.
    """
    return json.loads(line)


class LabText(Value):
    """A lab as it was written.

    Attributes:
        text: Its text, read once: whoever gets the request needs no file.
        name: What stands for its file in messages; files that it names are beside it.
        file: Its file; None: it has none.
    """

    text: str
    name: str
    file: Path | None = None

    @classmethod
    def read(cls, path: Path) -> LabText:
        """The lab at `path`, a file or a directory with a `lab.yaml`.

        Raises:
            LabError: it cannot be read.
        """
        file = lab_file(path)
        return cls(text=read(file), name=str(file), file=file)

    @classmethod
    def of(cls, contents: Mapping[str, Any]) -> LabText:
        """A lab that is a value of Python; files that it names are in the present directory."""
        return cls(text=json.dumps(contents, indent=1), name=UNNAMED)


class Overrides(Value):
    """What counts instead of what the lab says; None: what the lab says.

    Attributes:
        tdf, drive, max_speed: Of its time, as the lab would write them.
        settings: Of any field, as PATH=VALUE.
        confirm: Whether its runs are confirmed; `suspect`: where their verdicts would not have them believed.
    """

    tdf: str | None = None
    drive: str | None = None
    max_speed: str | None = None
    settings: tuple[str, ...] = ()
    confirm: Confirm | None = None

    def unconfirmed(self, why: str) -> RequestError:
        """That what is asked for cannot be confirmed as it is asked here."""
        return RequestError(why, "confirm", self.confirm if isinstance(self.confirm, str) else "")


class RunRequest(Value):
    """A run that is wanted.

    Attributes:
        lab: What is run.
        overrides: What counts instead of what it says.
        out: The run directory; None: one of its own below `runs`.
        hold_at: The virtual instant at which it holds its clock, as the lab would write it; None: at none.
        stays: Whether it goes on when nothing is left to do, until it is stopped.
        jailed: False only when the user has asked for no jail in so many words.
        max_disk: What the run directory may take, as the lab would write it; None: half of what is free.
        metrics: The port at which Prometheus is answered; None: at none.
        hidden: Directories of this machine that its guests are not to see.
        machines: How many it is spread over, of those that `engine` has; 1: of Slurm's, all that the job has.
        engine: What machines are had from: made of this one, or nodes of a cluster.
        onto: The hosts that it is spread over instead.
        saved: The saved lab that it goes on from, its name or its digest; None: it begins anew.
        saved_in: Where that one is; None: where those of the user are.
        repeats: The run that it has to be as, to the plan; None: none.
        behind: By how much nicer its guests are than its process, which is to answer while they compute.
    """

    lab: LabText
    overrides: Overrides = Overrides()
    out: Path | None = None
    hold_at: str | None = None
    stays: bool = False
    jailed: bool = True
    max_disk: str | None = None
    metrics: int | None = None
    hidden: tuple[Path, ...] = ()
    machines: int = 1
    engine: Engine = "local"
    onto: tuple[str, ...] = ()
    saved: str | None = None
    saved_in: Path | None = None
    repeats: Path | None = None
    behind: int = 0


def lab_file(path: Path) -> Path:
    """The lab file that `path` means: itself, or its `lab.yaml`, or else Kathará's `lab.conf`, if it is a directory."""
    if not path.is_dir():
        return path
    is_kathara = not (path / LAB_FILE).exists() and (path / KATHARA_FILE).exists()
    return path / (KATHARA_FILE if is_kathara else LAB_FILE)
