"""The life of a run in the process that is the run: from a request to the report, with all of it told to a watcher.

Whatever comes after the run itself, its record is written and stands: to confirm it, to write its report, and whatever
interrupts these.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import signal
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

from dilaton.host.here.doctor.doctor import require
from dilaton.lab.errors import Problem
from dilaton.lab.text import units
from dilaton.plan.model import Plan
from dilaton.run import machines
from dilaton.run.execute import Options, execute
from dilaton.run.files.directory import RunDir, RunDirError, take_default
from dilaton.run.observer import Observer
from dilaton.run.record.record import Record, RecordError
from dilaton.run.source import Source
from dilaton.service import prepare
from dilaton.service.errors import RequestError, refusing
from dilaton.service.prepare import Prepared
from dilaton.service.request import RunRequest

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
"""Signals that ask a run to end in good order."""

FIGURES = "DILATON_FIGURES"
"""A variable by which no run draws figures at its end, whatever it measured: `later`."""


class Watcher(Protocol):
    """Who is told of a run, from its request to its report."""

    def doubted(self, problem: Problem) -> None:
        """Something in the lab is likely to be a mistake."""

    def noted(self, what: str) -> None:
        """Something is to be known of the run that is no part of its results."""

    def watching(self, plan: Plan, run_dir: Path, *, is_beside: bool) -> AbstractContextManager[Observer]:
        """Who observes an execution of `plan`: of the run, or of another beside it, by which it is confirmed."""

    def concluded(self, plan: Plan, record: Record, run_dir: Path) -> None:
        """The run is over, and this became of it."""

    def confirmed(self, record: Record) -> None:
        """The run was compared with others, and this came out."""

    def reported(self, report: Path) -> None:
        """The report of the run is there."""


def conduct(request: RunRequest, watcher: Watcher) -> Record:
    """Runs what is asked for, in this process, whose signals it hears from then on; returns the record.

    Raises:
        LabError: the lab has mistakes.
        RequestError: the request has.
        HostLacksError: this machine lacks something that the run needs.
        KeyboardInterrupt: it was interrupted before it began.
    """
    with refusing(ValueError, field="onto"):
        if request.machines == 1 and (at_hand := machines.at_hand(request.engine)):
            request = request.model_copy(update={"machines": at_hand})
        machine = machines.chosen(request.hidden, request.machines, request.onto, request.engine, request.behind)
    options = Options(request.jailed, _hold_at_ns(request), prepare.disk_bytes(request.max_disk), machine)
    with contextlib.ExitStack() as stack:
        return _conducted(request, options, stack, watcher)


def _conducted(request: RunRequest, options: Options, stack: contextlib.ExitStack, watcher: Watcher) -> Record:
    prepared = _prepared(request, stack, watcher)
    if request.repeats is not None:
        from dilaton.service.saved.repeat import refuse_another

        refuse_another(prepared.plan, request.repeats)
    prepare.refuse_division(prepared.plan, request.machines, request.onto, request.engine)
    require(jailed=request.jailed)
    for doubt in prepare.doubts(prepared):
        watcher.doubted(doubt)
    prepare.refuse_hopeless(prepared)
    if cost := "" if request.stays else prepare.says_cost(prepared, prepare.TOLD_HOST_S):
        watcher.noted(cost)
    run_dir = stack.enter_context(_directory(request, prepared, watcher))
    record = None
    try:
        with asyncio.Runner() as runner:
            record = runner.run(executed(prepared.plan, prepared.source, run_dir, options, watcher))
            # While signals still mean the end of the run: what became of it is said in any case.
            watcher.concluded(prepared.plan, record, run_dir.path)
        if prepared.lab.fidelity.is_proof_due(is_believed=record.is_believed):
            record = _confirmed(record, prepared, run_dir.path, options, watcher)
        _report(run_dir.path, watcher)
    except KeyboardInterrupt:
        if record is None:
            raise
        watcher.noted("there is no report: interrupted")
    finally:
        # The run is over, and its status stands.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return record


def went_well(record: Record, *, strict: bool = False) -> bool:
    """Whether all is well with a run; strictly, only one whose verdict is `confirmed` or `valid`."""
    passed = all(check.passed for check in record.checks)
    return record.state == "finished" and passed and (record.is_believed or not strict)


async def executed(
    plan: Plan, source: Source, run_dir: RunDir, options: Options, watcher: Watcher, *, is_beside: bool = False
) -> Record:
    """Executes a plan, watched; signals that ask to end end it in good order."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in ENDING:
        loop.add_signal_handler(number, stop.set)
    with watcher.watching(plan, run_dir.path, is_beside=is_beside) as observer:
        return await execute(plan, source, run_dir, observer, options, stop=stop)


def _prepared(request: RunRequest, stack: contextlib.ExitStack, watcher: Watcher) -> Prepared:
    """What is run: the lab, with an end if it does not stay; a saved one is kept for as long as `stack` lasts."""
    if request.saved is None:
        prepared = prepare.prepare(request.lab, request.overrides)
    else:
        from dilaton.service.saved.restore import reading, restored

        prepared = restored(request, stack.enter_context(reading(request.saved, request.saved_in)))
    if request.stays:
        if request.overrides.confirm:
            raise request.overrides.unconfirmed("a run that stays has no end of its own; leave out --stay")
        return prepare.staying(prepared)
    if prepare.measures_nothing(prepared.lab):
        raise RequestError(
            f"{request.lab.name}: measure: the run would end at once, as no program runs in the foreground; write "
            "how long to measure, as in stop_after: 10s, or use dilaton up"
        )
    if without_end := prepare.says_no_end(prepared.lab):
        watcher.noted(without_end)
        return prepare.ending(prepared)
    return prepared


def _hold_at_ns(request: RunRequest) -> int | None:
    with refusing(ValueError, field="hold_at"):
        return None if request.hold_at is None else units.parse_duration(request.hold_at)


@contextlib.contextmanager
def _directory(request: RunRequest, prepared: Prepared, watcher: Watcher) -> Iterator[RunDir]:
    """The directory of the run, and who answers Prometheus as long as it goes on."""
    with contextlib.ExitStack() as stack:
        with refusing(RunDirError):
            directory = request.out or take_default(prepared.lab.name)
            if request.out is None:
                # Nothing is left of a run that never began.
                stack.callback(_remove_empty, directory)
            if request.metrics is not None:
                _answer_prometheus(stack, directory, request.metrics, watcher)
            run_dir = RunDir(directory)
        yield run_dir


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()


def _answer_prometheus(stack: contextlib.ExitStack, run_dir: Path, port: int, watcher: Watcher) -> None:
    """Answers Prometheus as long as `stack` lasts.

    Raises:
        RequestError: the port cannot be used.
    """
    from dilaton.run.control.metrics import ADDRESS, serve_metrics

    try:
        port = stack.enter_context(serve_metrics(run_dir.absolute(), port))
    except OSError as error:
        raise RequestError(f"{port}: cannot listen on {ADDRESS}: {error.strerror}", "metrics") from error
    watcher.noted(f"metrics: http://{ADDRESS}:{port}/metrics")


def _confirmed(record: Record, prepared: Prepared, path: Path, options: Options, watcher: Watcher) -> Record:
    """The record of a run that was to be confirmed, with what has come of that."""
    if record.state != "finished" or prepared.plan.stays:
        why = "it stayed, for people to work in" if prepared.plan.stays else f"it {record.state}"
        watcher.noted(f"the run is not confirmed, as {why}")
        return record
    # What compares takes a second to import.
    from dilaton.service.studies.confirm import confirmed

    beside = functools.partial(executed, watcher=watcher, is_beside=True)
    try:
        record = confirmed(prepared.source, path, options, beside, watcher.noted)
    except KeyboardInterrupt:
        watcher.noted("the run is not confirmed: interrupted; its record is as it was")
        return record.model_copy(update={"state": "aborted"})
    watcher.confirmed(record)
    return record


def _report(path: Path, watcher: Watcher) -> None:
    """Writes the report of a run.

    It has figures if the run measured something. Of others `dilaton report` draws them when they are wanted: to import
    what draws takes a second, as long as many runs, and to draw takes as long again. Who makes many runs may want none.
    """
    from dilaton.report.page import write_report
    from dilaton.run.loading import load

    measured = any(path.glob("measure/*/*.csv")) or any(path.glob("captures/*"))
    drawn = measured and os.environ.get(FIGURES) != "later"
    try:
        watcher.reported(write_report(load(path), with_figures=drawn))
    except (RecordError, OSError) as error:
        watcher.noted(f"there is no report: {error}")
