"""The table at the end of a run: what was asked, what was measured, in virtual time."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from rich import box
from rich.table import Table
from rich.text import Text

from dilaton.cli.output import visible
from dilaton.cli.terminal import Output
from dilaton.host.port import LEFT_OUT_FILE
from dilaton.lab.checks.course import CONVERGED
from dilaton.measure import numbers
from dilaton.measure.expect import quantity
from dilaton.plan.kinds.daemon import AGENT
from dilaton.plan.model import Plan, Time
from dilaton.run.record.link_words import links_of
from dilaton.run.record.model import (
    Adaptation,
    ComparisonRecord,
    LatenessRecord,
    ProcessRecord,
    SharesRecord,
    VerdictRecord,
)
from dilaton.run.record.record import Record
from dilaton.run.record.words import command, from_outside, outcome

LINKS_SHOWN = 8
PROCESSES_SHOWN = 16
CHANGES_SHOWN = 12

VERDICT_STYLES = {"confirmed": "bold green", "valid": "green", "suspect": "bold yellow", "invalid": "bold red"}

PLAIN_COLUMNS = 120
"""Width of the table where there is no terminal to ask."""


def print_result(plan: Plan, record: Record, path: Path) -> None:
    """Prints the outcome: the reason first if there is one, then the table, then where everything is."""
    console = Output()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    if record.reason:
        reason = Text(f"{record.state}: ", style="bold red").append(record.reason, style="not bold default")
        console.print(reason, soft_wrap=True)
    console.print(_table(plan, record))
    console.print(Text(f"outputs and record: {path}"), soft_wrap=True)
    if record.left_out:
        console.print(Text(f"files not here:     {record.left_out}, named in {path / LEFT_OUT_FILE}"), soft_wrap=True)
    if record.state == "failed":
        console.print(Text(f"kernel console:     {path / 'guest'}"), soft_wrap=True)


def print_confirmation(record: Record) -> None:
    """Prints what has come of confirming a run: the verdict, and its results beside those with more time."""
    confirmation = record.confirmation
    assert confirmation is not None and record.verdict is not None
    console = Output()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    for comparison in confirmation.comparisons:
        console.print(_comparison(comparison))
    style = VERDICT_STYLES[record.verdict.level]
    verdict = Text("verdict: ").append(record.verdict.level, style=style).append(f"\n{visible(confirmation.what)}")
    for reason in record.verdict.reasons:
        if reason.what == confirmation.what:
            verdict.append(f"; {reason.advice}")
    if confirmation.gave_up and confirmation.gave_up not in confirmation.what:
        verdict.append(f"\nno more runs were made: {visible(confirmation.gave_up)}")
    console.print(verdict, soft_wrap=True)


def _comparison(comparison: ComparisonRecord) -> Table:
    """The results that differ, and the first of the others."""
    here, there, runs = f"{comparison.tdf:g}", f"{comparison.reference_tdf:g}", len(comparison.runs)
    title = f"TDF {here} beside TDF {there}, {numbers.counted(runs, 'run')} of each: {comparison.outcome}"
    table = Table(box=box.SIMPLE_HEAD, title=title, title_style="bold", title_justify="left")
    table.add_column("result", overflow="fold")
    for heading in (f"TDF {here}", f"TDF {there}", "apart", "by chance"):
        table.add_column(heading, justify="right")
    table.add_column("")
    for change in comparison.told(CHANGES_SHOWN):
        table.add_row(
            visible(change.metric),
            numbers.quantity(change.value, change.unit),
            numbers.quantity(change.reference, change.unit),
            numbers.apart(change.change),
            "" if change.by_chance is None else numbers.apart(change.by_chance),
            Text("changed", style="bold red") if change.is_different else "",
        )
    return table


def _table(plan: Plan, record: Record) -> Table:
    table = Table(box=box.SIMPLE_HEAD, title=f"{plan.lab}: {record.state}", title_style="bold", title_justify="left")
    table.add_column("")
    table.add_column("asked")
    table.add_column("measured, in virtual time")
    table.add_row("time", f"TDF {_tdf(plan.time)}, {plan.time.drive} drive", _times(record))
    if record.fidelity and record.fidelity.adaptation and record.fidelity.adaptation.tdf_mean:
        attempt = f", attempt {record.attempts}" if record.attempts > 1 else ""
        seen = record.fidelity.adaptation
        table.add_row("watch", f"{seen.epochs} epochs{attempt}", _adaptation(seen))
    if record.fidelity and record.fidelity.timers:
        table.add_row("timers", f"{record.fidelity.timers}", _lateness(record.fidelity.lateness_us))
    if record.fidelity and record.fidelity.frames:
        frames = record.fidelity.frames
        table.add_row("frames between guests", f"{frames.received}", _lateness(frames.lateness_us))
    if record.fidelity and record.fidelity.measuring_share is not None:
        table.add_row("measuring", "", f"{numbers.ratio(record.fidelity.measuring_share)} of the guests' work")
    if record.fidelity and record.fidelity.shares:
        table.add_row("CPU shares", "", _shares(record.fidelity.shares))
    if record.verdict:
        table.add_row("verdict", "", _verdict(record.verdict, from_outside(record)))
    for link, asked in links_of(plan)[:LINKS_SHOWN]:
        table.add_row(f"link {link.name}", asked, "")
    if len(plan.links) > LINKS_SHOWN:
        table.add_row(f"links: {len(plan.links) - LINKS_SHOWN} more", "see plan.json", "")
    processes = [process for process in record.processes if not (process.argv[0] == AGENT and process.expected)]
    routing = {process.name: process for process in record.processes}.get(CONVERGED)
    if routing and routing.expected and routing.end_s is not None:
        table.add_row("routing", "", f"converged at {numbers.duration(routing.end_s)}")
    shown = _telling(processes)
    for process in shown:
        table.add_row(f"{process.node}/{process.name}", Text(_command(process)), _ended(process))
    if more := len(processes) - len(shown):
        table.add_row(numbers.counted(more, "more process"), "", "see run.json")
    for check in record.checks:
        mark = Text("passed  ", style="green") if check.passed else Text("failed  ", style="bold red")
        table.add_row("check", Text(check.text), mark.append(quantity(check.text, check.value), style="default"))
    return table


def _telling(processes: Sequence[ProcessRecord]) -> Sequence[ProcessRecord]:
    """All; of many those that tell something: what failed before what measured, and no daemon that did well."""
    if len(processes) <= PROCESSES_SHOWN:
        return processes
    failed = [process for process in processes if not process.expected]
    measured = [process for process in processes if process.expected and process.result]
    return (failed + measured)[:PROCESSES_SHOWN]


def _command(process: ProcessRecord) -> str:
    """A command in one line: of a script, the first of its lines."""
    first, *rest = command(process).splitlines()
    return f"{first} …" if rest else first


def _ended(process: ProcessRecord) -> Text:
    # Here already, so that the table leaves room for it.
    return Text(visible("\n".join(filter(None, [outcome(process), process.reason]))))


def _tdf(time: Time) -> str:
    watch = time.watch
    if watch is None or watch.least == watch.most:
        return numbers.tdf(time.tdf.ratio)
    return f"auto, {numbers.tdf(watch.least.ratio)} to {numbers.tdf(watch.most.ratio)}"


def _adaptation(seen: Adaptation) -> str:
    text = f"TDF {seen.tdf_mean:.3g} in the mean, {numbers.ratio(seen.out_of_bounds_share)} of the time out of bounds"
    return text if seen.tdf_needed is None else f"{text}; TDF {seen.tdf_needed:g} would be enough"


def _times(record: Record) -> str:
    times = record.time
    return f"{times.virtual_s:.3f} s, in {times.host_s:.1f} s of host time"


def _lateness(late: LatenessRecord) -> str:
    return f"99 % at most {numbers.duration(late.p99 / 1e6)} late, all at most {numbers.duration(late.max / 1e6)}"


def _shares(shares: SharesRecord) -> str:
    """How much of the work of shared guests is in nobody's CPU, and what nodes missed."""
    uncharged, lost = numbers.ratio(shares.uncharged_share), numbers.ratio(shares.lost_share)
    return f"{uncharged} of the work charged to no node; nodes missed {lost} of their CPUs"


def _verdict(verdict: VerdictRecord, outside: str) -> Text:
    text = Text(verdict.level, style=VERDICT_STYLES[verdict.level])
    for reason in verdict.reasons:
        text.append(f"\n{reason.what}; {reason.advice}", style="not bold default")
    if outside:
        text.append(f"\n{visible(outside)}", style="not bold default")
    return text
