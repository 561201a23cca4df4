"""`dilaton sweep`: many runs of one lab, and what they show together."""

from __future__ import annotations

import asyncio
import sys

from rich import box
from rich.table import Table

from dilaton.cli.errors import complain
from dilaton.cli.output import visible
from dilaton.cli.terminal import Output
from dilaton.measure.numbers import counted
from dilaton.run.points import Point
from dilaton.service.conduct import ENDING
from dilaton.service.studies.sweep import Concluded, HostLost, PointAgain, PointEnded, Sweep, SweepRequest

PLAIN_COLUMNS = 160
ROWS_MAX = 48
"""More rows than these are read in a file."""


def sweep_lab(request: SweepRequest) -> int:
    """Runs a sweep; returns the exit status: 1 when a run did not finish or a check failed, 130 when interrupted.

    Raises:
        LabError, RequestError, HostLacksError: as of `Sweep`.
    """
    sweep = Sweep(request)
    done_before = len(sweep.work) - len(sweep.waiting)
    print(f"{counted(len(sweep.work), 'run')} in {sweep.directory}, {done_before} done already")
    if len(sweep.work) == 1:
        print("nothing varies: --set FIELD=VALUE,VALUE gives a field several values, --repeat N runs each N times")
    if asyncio.run(_run(sweep)):
        print(f"interrupted; the same command goes on with what is left in {sweep.directory}", file=sys.stderr)
        return 130
    return tell(sweep.conclude())


def tell(done: Concluded) -> int:
    """Says what a sweep came to; returns the exit status."""
    for why in done.lost:
        complain(why)
    if done.means:
        _show(done.heads, done.means)
    print(f"table: {done.table}; {counted(done.figures, 'figure')} beside it")
    if done.page:
        print(f"report: {done.page}")
    if doubted := " and ".join(f"{count} {level}" for level, count in done.doubted.items() if count):
        of_how_many = counted(done.runs, "run")
        print(f"not valid: {doubted} of {of_how_many}; {done.table.name} says which, the log of each says why")
    return 0 if done.is_well else 1


def _show(heads: list[str], means: list[list[str]]) -> None:
    """The means of what the lab expects something of."""
    table = Table(box=box.SIMPLE_HEAD)
    for head in heads:
        table.add_column(visible(head), overflow="fold")
    for row in means[:ROWS_MAX]:
        table.add_row(*map(visible, row))
    console = Output()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    console.print(table)
    if len(means) > ROWS_MAX:
        print(f"and {counted(len(means) - ROWS_MAX, 'row')} more")


async def _run(sweep: Sweep) -> bool:
    """Runs what is left of a sweep; returns whether it was interrupted."""
    stop = asyncio.Event()
    for number in ENDING:
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    async for happened in sweep.run(stop):
        match happened:
            case PointEnded() as ended:
                said = f"{ended.number}/{len(sweep.waiting)} {_named(ended.point)}: {_ending(ended)}"
            case PointAgain(point=point, why=why):
                said = f"{_named(point)}: {why}; it is run again"
            case HostLost(name=name, why=why):
                said = f"{name} gets no runs any more: {why}"
        print(visible(said), flush=True)
    return stop.is_set()


def _named(point: Point) -> str:
    return " ".join([*(f"{name}={value}" for name, value in point.settings), f"#{point.repeat}"])


def _ending(ended: PointEnded) -> str:
    if not ended.why:
        return f"well, on {', '.join(ended.hosts)}" if ended.hosts else "well"
    return "interrupted" if ended.was_interrupted else f"{ended.why}; see {ended.log}"
