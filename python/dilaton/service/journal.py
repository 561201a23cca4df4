"""A run in plain text, for where no terminal shows it: what happened, and what was made of that, a line each."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TextIO

from dilaton.host.messages import Event
from dilaton.host.port import Progress
from dilaton.lab.errors import Problem
from dilaton.measure import numbers
from dilaton.measure.expect import quantity
from dilaton.plan.model import Plan
from dilaton.run.observer import Observer, RunClock
from dilaton.run.record import words
from dilaton.run.record.model import ClockChange
from dilaton.run.record.record import Record, State
from dilaton.service.conduct import Watcher


class Journal(Watcher):
    """Writes what happens in a run; see `Watcher` and `Observer`."""

    def __init__(self, file: TextIO) -> None:
        """Writes to `file`, which may be gone: the run goes on."""
        self._file: TextIO | None = file

    def write(self, line: str) -> None:
        """Writes a line."""
        if self._file is None:
            return
        try:
            print(line, file=self._file, flush=True)
        except OSError:
            self._file = None

    def doubted(self, problem: Problem) -> None:
        """See `Watcher`."""
        self.write(f"{problem} (a warning)")

    def noted(self, what: str) -> None:
        """See `Watcher`."""
        self.write(what)

    @contextlib.contextmanager
    def watching(self, plan: Plan, run_dir: Path, *, is_beside: bool) -> Iterator[Observer]:
        """See `Watcher`; of runs beside the run itself only their end is worth a line, which is noted."""
        yield Silent() if is_beside else self.observer(run_dir)

    def observer(self, run_dir: Path) -> Observer:
        """Who observes the run itself."""
        return Lines(self.write)

    def concluded(self, plan: Plan, record: Record, run_dir: Path) -> None:
        """See `Watcher`."""
        self.write(f"{plan.lab}: {record.state}" + (f": {record.reason}" if record.reason else ""))
        for process in record.processes:
            self.write(f"{process.node}/{process.name}: {words.outcome(process)}")
        for check in record.checks:
            self.write(
                f"check {'passed' if check.passed else 'failed'}: {check.text}: {quantity(check.text, check.value)}"
            )
        self._verdict(record)

    def confirmed(self, record: Record) -> None:
        """See `Watcher`."""
        self._verdict(record)

    def reported(self, report: Path) -> None:
        """See `Watcher`."""
        self.write(f"report: {report}")

    def _verdict(self, record: Record) -> None:
        if record.verdict:
            self.write(f"verdict: {record.verdict.level}")
            for reason in record.verdict.reasons:
                self.write(f"  {reason.what}; {reason.advice}")


class Silent(Observer):
    """An observer that tells nobody."""

    def state(self, state: State) -> None:
        """See `Observer`."""

    def progress(self, progress: Progress) -> None:
        """See `Observer`."""

    def released(self, clock: Callable[[], RunClock]) -> None:
        """See `Observer`."""

    def stopped(self) -> None:
        """See `Observer`."""

    def event(self, event: Event) -> None:
        """See `Observer`."""

    def clock_changed(self, change: ClockChange) -> None:
        """See `Observer`."""

    def begun_again(self, why: str, plan: Plan) -> None:
        """See `Observer`."""


class Lines(Silent):
    """An observer that writes a line for what is worth one."""

    def __init__(self, write: Callable[[str], None]) -> None:
        """Writes by `write`."""
        self.write = write

    def event(self, event: Event) -> None:
        """See `Observer`."""
        self.write(f"{event.t_ns / 1e9:12.6f} s  {words.subject(event)} {words.happened(event)}")

    def clock_changed(self, change: ClockChange) -> None:
        """See `Observer`."""
        self.write(f"{change.virtual_s:12.6f} s  clock {change.reason}")

    def begun_again(self, why: str, plan: Plan) -> None:
        """See `Observer`."""
        self.write(f"begun again with TDF {numbers.tdf(plan.time.tdf.ratio)}: {why}")
