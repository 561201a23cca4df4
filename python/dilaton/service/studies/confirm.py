"""Confirming a run: the lab is run again with more time for its CPUs, and its results are compared.

The run itself is over by then, and its record is written: whatever becomes of what follows, it stays. The further runs
have directories of their own below it, `confirm/<TDF>/<seed>`. Only when all is compared, the record gets what has come
out. A run that is interrupted leaves no directory.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import shutil
import time
from collections.abc import Awaitable, Callable
from fractions import Fraction
from pathlib import Path

from dilaton.lab.errors import LabError
from dilaton.lab.model import Lab
from dilaton.lab.text.units import TDF_MAX
from dilaton.measure import numbers
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.confirm import again, with_more_time
from dilaton.plan.model import Plan
from dilaton.report.confirmation import EnoughError, Measured, confirm
from dilaton.report.confirming import record_of, verdict_of
from dilaton.report.results import results_of
from dilaton.run import here
from dilaton.run.execute import Options
from dilaton.run.files.directory import RunDir
from dilaton.run.loading import Run, load
from dilaton.run.record import record as records
from dilaton.run.record.events import FaultSteered, LinkSteered, PortReached, SessionBegan, TunnelOpened
from dilaton.run.record.model import Level, Record
from dilaton.run.record.record import RecordError
from dilaton.run.source import Source

DIRECTORY = "confirm"
"""Below the run directory: the runs by which it is confirmed."""

RUNS_MAX = 40
"""The most runs that are made beside the run itself."""

HOST_FACTOR, HOST_S_MIN = 40, 600.0
"""Host time that they may take: so many times that of the run itself, or so long if that is more."""

STEPS = {"work": 2, "wall": 1}
"""Doublings of the TDF that more time is: on the work drive they cost hardly any host time, on the wall drive all."""

BY_HAND = {
    LinkSteered: "a link was changed by hand",
    FaultSteered: "a fault was begun or undone by hand",
    SessionBegan: "somebody worked in a node",
    PortReached: "somebody outside connected to a node",
    TunnelOpened: "a machine outside was in the lab's network",
}
"""Events of a run that another would not have."""


Execute = Callable[[Plan, Source, RunDir, Options], Awaitable[Record]]
"""Executes a plan beside the run that is confirmed, watched as that was."""


def confirmed(source: Source, path: Path, options: Options, execute: Execute, note: Callable[[str], None]) -> Record:
    """Confirms a run that has finished; returns its record, which then says so.

    Args:
        source: Its lab.
        path: Its directory.
        options: How it was executed.
        execute: Executes each further run.
        note: Is told what came of each.

    Raises:
        KeyboardInterrupt: it was interrupted; the record is as it was.
    """
    run = load(path)
    bench = _Bench(source, run, options, execute, note)
    tolerance = float(source.lab.fidelity.tolerance)
    found = confirm(bench, STEPS[source.lab.time.drive], tolerance)
    verdict = run.record.verdict
    assert verdict is not None, "a run that has finished has a verdict"
    confirmation = record_of(found, verdict, bench.tdf, bench.place, tolerance, len(bench.made), math.fsum(bench.made))
    references = [bench.levels.get(name) for each in confirmation.comparisons[:1] for name in each.reference_runs]
    verdict = verdict_of(confirmation, verdict, references, is_adaptive=bench.is_adaptive)
    record = run.record.model_copy(update={"verdict": verdict, "confirmation": confirmation})
    records.write(path, record)
    return record


class _Bench:
    """Makes the runs; see `dilaton.report.confirmation.Bench`."""

    def __init__(
        self, source: Source, run: Run, options: Options, execute: Execute, note: Callable[[str], None]
    ) -> None:
        assert run.plan is not None
        watch = run.plan.time.watch
        self.lab = source.lab
        self.text = source.text
        self.run = run
        self.options = Options(jailed=options.jailed, disk_bytes=options.disk_bytes, machine=options.machine)
        self.execute = execute
        self.note = note
        self.is_adaptive = watch is not None and watch.least != watch.most
        self.tdf = _tdf_of(run, run.plan, self.is_adaptive)
        self.made: list[float] = []
        """Host seconds of the runs so far."""
        self.levels: dict[str, Level | None] = {}
        """The verdicts on them."""
        self._measured: dict[tuple[int, int], Measured] = {}
        times = run.record.time
        self._host_s_max = max(HOST_S_MIN, HOST_FACTOR * (times.host_s + times.boot_host_s))

    def place(self, rung: int, repeat: int) -> str:
        """Where a run is, from the directory of the run itself."""
        if rung == repeat == 0:
            return "."
        tdf = "auto" if rung == 0 and self.is_adaptive else numbers.tdf(self.tdf * 2**rung).replace("/", "-")
        return f"{DIRECTORY}/tdf-{tdf}/seed-{self.lab.seed + repeat}"

    def measure(self, rung: int, repeat: int) -> Measured:
        """See `Bench`; what was measured is kept."""
        if (rung, repeat) not in self._measured:
            self._measured[rung, repeat] = self._measure(rung, repeat)
        return self._measured[rung, repeat]

    def _measure(self, rung: int, repeat: int) -> Measured:
        if rung == repeat == 0:
            self._check_untouched()
            return self._results(self.run)
        place = self.place(rung, repeat)
        self._check_bounds(rung)
        lab = self._lab(rung, repeat)
        try:
            plan = compile_plan(lab, here.for_plans())
        except LabError as error:
            raise EnoughError(f"at TDF {numbers.tdf(self.tdf * 2**rung)} the lab is wrong: {error}") from error
        begun = time.monotonic()
        record = _execute(plan, Source(lab, self.text), self.run.path / place, self.options, self.execute)
        self.made.append(time.monotonic() - begun)
        self.note(f"confirm: {place}: {record.state}, in {self.made[-1]:.1f} s of host time")
        if record.state != "finished":
            raise EnoughError(f"{place}: the run {record.state}: {record.reason}")
        self.levels[place] = record.verdict.level if record.verdict else None
        return self._results(load(self.run.path / place))

    def _results(self, run: Run) -> Measured:
        """The results of a run, parts of which programs in guests wrote."""
        try:
            return results_of(run, float(self.lab.fidelity.tolerance))
        except (RecordError, OSError) as error:
            raise EnoughError(str(error)) from error

    def _lab(self, rung: int, repeat: int) -> Lab:
        seed = self.lab.seed + repeat
        if rung == 0 and self.is_adaptive:
            return again(self.lab, seed)
        return with_more_time(self.lab, self.tdf * 2**rung, Fraction(2**rung), seed)

    def _check_bounds(self, rung: int) -> None:
        if self.tdf * 2**rung > TDF_MAX:
            raise EnoughError(f"a TDF is at most {TDF_MAX}")
        if len(self.made) >= RUNS_MAX:
            raise EnoughError(f"{RUNS_MAX} runs were made")
        if (spent_s := math.fsum(self.made)) > self._host_s_max:
            raise EnoughError(f"the runs took {spent_s:.0f} s of host time, and may take {self._host_s_max:.0f} s")

    def _check_untouched(self) -> None:
        for event in self.run.happened:
            if type(event) in BY_HAND:
                raise EnoughError(f"{BY_HAND[type(event)]} while the run went on, as it would not be in another")


def _tdf_of(run: Run, plan: Plan, is_adaptive: bool) -> Fraction:
    """The TDF of a run; of one that followed the load, the highest."""
    trace = run.record.fidelity.tdf_trace if run.record.fidelity else []
    if not is_adaptive:
        return plan.time.tdf.ratio
    highest = max((change.tdf for change in trace if change.tdf is not None), default=float(plan.time.tdf.ratio))
    return Fraction(math.ceil(highest))


def _execute(plan: Plan, source: Source, path: Path, options: Options, execute: Execute) -> Record:
    """Executes a plan beside the run.

    Raises:
        KeyboardInterrupt: it was interrupted; nothing of the run is left.
    """

    async def executed() -> Record:
        return await execute(plan, source, RunDir(path), options)

    with asyncio.Runner() as runner:
        record = runner.run(executed())
    if record.state == "aborted":
        shutil.rmtree(path)
        for parent in (path.parent, path.parent.parent):
            with contextlib.suppress(OSError):
                parent.rmdir()  # where no run is left in it
        raise KeyboardInterrupt
    return record
