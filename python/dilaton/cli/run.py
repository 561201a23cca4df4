"""`dilaton run`."""

from __future__ import annotations

import asyncio
import contextlib
import signal
import sys
from pathlib import Path

from dilaton.cli.check import Overrides, lab_file, measures_nothing, read_source
from dilaton.cli.display import Display
from dilaton.cli.errors import BadInputError, refusing
from dilaton.cli.result import print_result
from dilaton.host.doctor import require
from dilaton.lab import units
from dilaton.plan.model import Plan, Speed
from dilaton.run.directory import RunDir, RunDirError, take_default
from dilaton.run.execute import Options, Source, execute
from dilaton.run.record import Record, RecordError


def run_lab(
    path: Path,
    out: Path | None,
    overrides: Overrides,
    options: Options,
    *,
    metrics: int | None = None,
    stays: bool = False,
    strict: bool = False,
) -> int:
    """Runs a lab and shows it; returns the exit status.

    Args:
        path: The lab.
        out: The run directory; None: one of its own below `runs`.
        overrides: What counts instead of what the lab says.
        options: How it is run.
        metrics: The port at which Prometheus is answered; None: at none.
        stays: Whether the run goes on when nothing is left to do, until it is stopped.
        strict: Whether only a run whose verdict is `valid` has status 0.

    Raises:
        BadInputError: the lab or the command line has a mistake, or the run would end before it measured anything.
        HostLacksError: when this machine cannot run guests.
    """
    with contextlib.ExitStack() as stack:
        lab, plan, text = read_source(path, overrides)
        if measures_nothing(lab) and not stays:
            raise BadInputError(
                f"{lab_file(path)}: measure: the run would end at once, as no program runs in the foreground; write "
                "how long to measure, as in stop_after: 10s, or use dilaton up"
            )
        plan = _staying(plan) if stays else plan
        require(jailed=options.jailed)
        with refusing(RunDirError):
            directory = out or take_default(lab.name)
            if out is None:
                # Nothing is left of a run that never began.
                stack.callback(_remove_empty, directory)
            if metrics is not None:
                _answer_prometheus(stack, directory, metrics)
            run_dir = RunDir(directory)
        source = Source(lab, text)
        record = None
        try:
            with asyncio.Runner() as runner:
                record = runner.run(execute_shown(plan, source, run_dir, options))
                # While signals still mean the end of the run: what became of it is said in any case.
                print_result(plan, record, run_dir.path)
            _report(run_dir.path)
        except KeyboardInterrupt:
            if record is None:
                raise
            print("there is no report: interrupted", file=sys.stderr)
        finally:
            # The run is over, and its status stands.
            signal.signal(signal.SIGINT, signal.SIG_IGN)
    return exit_status(record, strict=strict)


def _staying(plan: Plan) -> Plan:
    """The plan of a run that stays: its time passes at host speed at most, unless the lab says another."""
    time = plan.time.model_copy(update={"max_speed": plan.time.max_speed or Speed(numerator=1, denominator=1)})
    return plan.model_copy(update={"stays": True, "stop_after_ns": None, "time": time})


def _remove_empty(directory: Path) -> None:
    with contextlib.suppress(OSError):
        directory.rmdir()


def _answer_prometheus(stack: contextlib.ExitStack, run_dir: Path, port: int) -> None:
    """Answers Prometheus as long as `stack` lasts.

    Raises:
        BadInputError: the port cannot be used.
    """
    from dilaton.run.metrics import ADDRESS, serve_metrics

    try:
        port = stack.enter_context(serve_metrics(run_dir.absolute(), port))
    except OSError as error:
        raise BadInputError(f"--metrics {port}: cannot listen on {ADDRESS}: {error.strerror}") from error
    print(f"metrics: http://{ADDRESS}:{port}/metrics", file=sys.stderr, flush=True)


def hold_option(text: str | None) -> int | None:
    """The value of `--hold-at`, nanoseconds.

    Raises:
        BadInputError: it is no duration.
    """
    with refusing(ValueError, option="--hold-at"):
        return None if text is None else units.parse_duration(text)


def _report(path: Path) -> None:
    """Writes the report of a run.

    It has figures if the run measured something. Of others `dilaton report` draws them when they are wanted: to import
    what draws takes a second, as long as many runs.
    """
    from dilaton.report.page import write_report
    from dilaton.run.loading import load

    measured = any(path.glob("measure/*/*.csv")) or any(path.glob("captures/*"))
    try:
        print(f"report:             {write_report(load(path), with_figures=measured)}")
    except (RecordError, OSError) as error:
        print(f"there is no report: {error}", file=sys.stderr)


def exit_status(record: Record, *, strict: bool = False) -> int:
    """The exit status that a run's record means; strictly, only a verdict of `valid` is well."""
    if record.state == "aborted":
        return 130
    passed = all(check.passed for check in record.checks)
    believed = not strict or (record.verdict is not None and record.verdict.level == "valid")
    return 0 if record.state == "finished" and passed and believed else 1


async def execute_shown(plan: Plan, source: Source, run_dir: RunDir, options: Options) -> Record:
    """Executes a plan, shown in the terminal; signals that ask to end end it in good order."""
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, stop.set)
    with Display(plan, run_dir.path) as display:
        return await execute(plan, source, run_dir, display, options, stop=stop)
