"""`dilaton run`: a run in this very process, shown in the terminal."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Iterable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.cli.errors import BadInputError, failing, warn
from dilaton.cli.runs.display import Display, Quiet
from dilaton.cli.runs.result import print_confirmation, print_result
from dilaton.lab.errors import Problem
from dilaton.plan.model import Plan
from dilaton.run.files.directory import replace_file
from dilaton.run.observer import Observer
from dilaton.run.record.record import Record, RecordError
from dilaton.service.conduct import Watcher, conduct, went_well
from dilaton.service.request import RunRequest

if TYPE_CHECKING:
    from dilaton.run.timeline import Moment


def run_lab(request: RunRequest, *, strict: bool = False, junit: Path | None = None) -> int:
    """Runs a lab and shows it; returns the exit status.

    Args:
        request: What is run.
        strict: Whether only a run whose verdict is `confirmed` or `valid` has status 0.
        junit: The file that gets a report of JUnit; None: none is written.

    Raises:
        BadInputError: the report cannot be where it is to be.
        LabError, RequestError, HostLacksError: as of `conduct`.
    """
    if junit is not None and not junit.absolute().parent.is_dir():
        raise BadInputError(f"--junit {junit}: there is no directory {junit.parent}")
    shown = Shown()
    record = conduct(request, shown)
    if junit is not None:
        write_junit(record, shown.run_dir, junit, strict=strict)
    return exit_status(record, strict=strict)


class Shown(Watcher):
    """Shows a run in the terminal.

    Attributes:
        run_dir: Of the run that has ended last.
    """

    run_dir: Path | None = None

    def doubted(self, problem: Problem) -> None:
        """See `Watcher`."""
        warn(problem)

    def noted(self, what: str) -> None:
        """See `Watcher`."""
        print(what, file=sys.stderr, flush=True)

    def watching(self, plan: Plan, run_dir: Path, *, is_beside: bool) -> AbstractContextManager[Observer]:
        """See `Watcher`."""
        return Quiet(plan, run_dir) if is_beside else Display(plan, run_dir)

    def concluded(self, plan: Plan, record: Record, run_dir: Path) -> None:
        """See `Watcher`."""
        self.run_dir = run_dir
        print_result(plan, record, run_dir)

    def confirmed(self, record: Record) -> None:
        """See `Watcher`."""
        print_confirmation(record)

    def reported(self, report: Path) -> None:
        """See `Watcher`."""
        print(f"report:             {report}")


def write_junit(record: Record, run_dir: Path | None, path: Path, *, strict: bool) -> None:
    """Writes a report of JUnit.

    Args:
        record: Of the run.
        run_dir: Where it is; None: it has left none.
        path: Of the report.
        strict: As of `junit`.

    Raises:
        FailedError: the file cannot be written.
    """
    from dilaton.report.junit import junit
    from dilaton.run.loading import load
    from dilaton.run.timeline import timeline

    happened: Iterable[Moment] = ()
    with contextlib.suppress(RecordError):
        happened = timeline(load(run_dir)) if run_dir else ()
    with failing(OSError, RecordError):
        replace_file(path, junit(record, happened, strict=strict).encode())


def exit_status(record: Record, *, strict: bool = False) -> int:
    """The exit status that a run's record means; strictly, only a verdict of `confirmed` or `valid` is well."""
    return 130 if record.state == "aborted" else int(not went_well(record, strict=strict))
