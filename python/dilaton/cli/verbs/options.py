"""Arguments and options that several verbs share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

if TYPE_CHECKING:
    from dilaton.lab.parts.fidelity import Confirm
    from dilaton.service.request import LabText, Overrides


def completing(*values: str) -> Callable[[str], list[str]]:
    """What the Tab key offers where one of these is wanted."""
    return lambda incomplete: [value for value in values if value.startswith(incomplete)]


LabFile = Annotated[Path, typer.Argument(metavar="LAB", help="The lab: a YAML file, or a directory with a lab.yaml.")]
LabOrSaved = Annotated[
    Path, typer.Argument(metavar="LAB", help="A YAML file, a directory with a lab.yaml, or the name of a saved lab.")
]
RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="A run in progress: its directory, or its lab's file, directory or name.")
]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Run directory (default: runs/<lab>-<UTC>-<n>).")
]
TdfOption = Annotated[
    str | None,
    typer.Option(
        "--tdf",
        metavar="N|auto",
        help="Time dilation factor, such as 10 or 1/2, instead of the lab's.",
        autocompletion=completing("auto", "1", "10", "100"),
    ),
]
DriveOption = Annotated[
    str | None,
    typer.Option(
        "--drive",
        metavar="wall|work|event",
        help="What drives virtual time, instead of the lab's.",
        autocompletion=completing("wall", "work", "event"),
    ),
]
MaxSpeedOption = Annotated[
    str | None,
    typer.Option(
        "--max-speed", metavar="N", help="At most so many virtual seconds per host second, instead of the lab's."
    ),
]
HoldAtOption = Annotated[
    str | None, typer.Option("--hold-at", metavar="T", help="Hold the clock at this virtual instant, such as 5s.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option(
        "--set", metavar="PATH=VALUE", help="Any field, such as links.0.rate=1Gbit, instead of the lab's. Repeatable."
    ),
]
TerminalOption = Annotated[
    bool | None,
    typer.Option("-t/-T", "-it", "--terminal/--no-terminal", help="Give it a terminal (default: if there is one)."),
]
ConfirmOption = Annotated[
    bool | None,
    typer.Option(
        "--confirm/--no-confirm",
        help="Run again with more time for the CPU, and compare results (default: as the lab says).",
    ),
]
ConfirmSuspectOption = Annotated[
    bool,
    typer.Option("--confirm-suspect", help="Confirm the run, but only if its verdict is suspect or invalid."),
]
MachinesOption = Annotated[
    int,
    typer.Option(
        "--machines",
        metavar="N",
        min=1,
        max=1000,
        help="Spread its guests over so many machines, made of this one or the engine's.",
    ),
]
OntoOption = Annotated[
    str | None,
    typer.Option("--onto", metavar="HOST,…", help="Spread its guests over these hosts, reached by ssh."),
]
EngineOption = Annotated[
    Literal["local", "slurm", "ray"],
    typer.Option("--engine", help="What has the machines: this one, or a cluster of Slurm's or Ray's."),
]
MaxDisk = Annotated[
    str | None,
    typer.Option(
        "--max-disk",
        metavar="SIZE",
        help="What the run directory may take, such as 100GiB (default: half of what is free).",
    ),
]
NoJail = Annotated[
    bool,
    typer.Option("--no-jail", help="Run guests without a jail: what runs in them can write your files."),
]


def read_lab(lab: Path, *, is_here: bool) -> tuple[LabText, str | None]:
    """The text of a lab, and its name if it is a saved one, of this machine or of a server, which then has its text."""
    from dilaton.service.request import LabText

    if not lab.exists() and lab.suffix not in (".yaml", ".yml") and len(lab.parts) == 1:
        if not is_here:
            return LabText(text="", name=str(lab)), str(lab)
        from dilaton.service.saved.restore import is_meant, named

        if is_meant(lab):
            return named(str(lab)), str(lab)
    return LabText.read(lab), None


def hosts(onto: str | None) -> tuple[str, ...]:
    """The hosts that `--onto` names."""
    return () if onto is None else tuple(onto.split(","))


def overridden(
    tdf: str | None = None,
    drive: str | None = None,
    max_speed: str | None = None,
    settings: Sequence[str] | None = None,
    confirm: Confirm | None = None,
) -> Overrides:
    """What counts instead of what a lab says, from the values of these options."""
    from dilaton.service.request import Overrides

    return Overrides(tdf=tdf, drive=drive, max_speed=max_speed, settings=tuple(settings or ()), confirm=confirm)


def which_confirmed(confirm: bool | None, confirm_suspect: bool) -> Confirm | None:
    """Which runs are confirmed, from the values of both options; None: as the lab says.

    Raises:
        BadInputError: Both say something.
    """
    if not confirm_suspect:
        return confirm
    if confirm is not None:
        from dilaton.cli.errors import BadInputError

        raise BadInputError("--confirm-suspect: --confirm and --no-confirm say otherwise; leave out one")
    return "suspect"
