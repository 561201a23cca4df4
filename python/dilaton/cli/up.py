"""`dilaton up` and `down`: a lab that stays, to work in by hand."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

from dilaton.cli.check import Overrides, lab_file, parsed_times
from dilaton.cli.control import stop_run
from dilaton.cli.errors import refusing
from dilaton.cli.run import hold_option
from dilaton.lab.loader import load
from dilaton.run.control import ControlError
from dilaton.run.live import LiveRun, NotBegunError, start


@dataclass(frozen=True)
class Options:
    """What the command line says of a lab that stays; None: what the lab says.

    Attributes:
        out: The run directory.
        tdf, drive, max_speed, hold_at: As of `dilaton run`.
        settings: Fields instead of the lab's, as PATH=VALUE.
    """

    out: Path | None = None
    tdf: str | None = None
    drive: str | None = None
    max_speed: str | None = None
    hold_at: str | None = None
    settings: tuple[str, ...] = ()


def bring_up(lab: Path, options: Options, *, detached: bool) -> int:
    """Starts a lab that stays, and gives its prompt; the lab ends with it. Detached: it goes on. Returns the status."""
    from dilaton.cli.prompt import converse

    # Which the run would refuse too, in a process of its own.
    parsed_times(Overrides(options.tdf, options.drive, options.max_speed))
    hold_option(options.hold_at)
    with refusing(ControlError, ValueError):
        try:
            run = _started(lab, options, detached)
        except NotBegunError as error:
            # It has said what is wrong as we would.
            print(error, file=sys.stderr)
            return error.status
        if detached:
            print(f"{run.path} is up; dilaton cli {run.path} for its prompt, dilaton down {run.path} to end it")
            return 0
        with run:
            status = converse(run)
    print(f"outputs and record: {run.path}")
    return status


def _started(lab: Path, options: Options, detached: bool) -> LiveRun:
    return start(
        lab,
        out=options.out,
        hold_at=options.hold_at,
        tdf=options.tdf,
        drive=options.drive,
        max_speed=options.max_speed,
        settings=dict(_pair(text) for text in options.settings),
        stay=True,
        detached=detached,
    )


def _pair(text: str) -> tuple[str, str]:
    path, _, value = text.partition("=")
    return path, value


def take_down(run: str) -> int:
    """Ends a run, named as for `find` or by its lab's file; returns the exit status."""
    path = Path(run)
    if path.is_file() or ((path / "lab.yaml").is_file() and not (path / "run.json").is_file()):
        run = load(lab_file(path)).name
    return stop_run(run)
