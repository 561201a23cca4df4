"""`dilaton clock`, `ps` and `stop`: runs that go on, seen from another terminal."""

from __future__ import annotations

from pathlib import Path

from rich import box
from rich.table import Table

from dilaton.cli.errors import complain, refusing
from dilaton.cli.output import from_here
from dilaton.cli.terminal import Output
from dilaton.measure import numbers
from dilaton.run.control.actions import CLOCK_ACTIONS
from dilaton.run.control.answers import STOP, Clock, Name, RunState
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from dilaton.service.catalogue import find, going, left

PLAIN_COLUMNS = 1000
"""Width of the table of runs where there is no terminal to ask: the reader may be a script, and wants whole paths."""


@refusing(ControlError)
def steer(run: str, action: str, value: str | None) -> int:
    """Does `action` with the clock of `run`, and shows the clock; returns the exit status."""
    try:
        argument = argument_of(action, value)
        with Client(find(run)) as client:
            print_clock(client.request(Name(f"clock.{action}", Clock), **argument))
    except KeyboardInterrupt:
        # The order stands; only nobody waits for it any more.
        return 130
    return 0


def argument_of(action: str, value: str | None) -> dict[str, str]:
    """What an action takes.

    Raises:
        ControlError: there is no such action, or it takes something else.
    """
    if action not in CLOCK_ACTIONS:
        raise ControlError(f"{action}: not something to do with a clock; use {', '.join(CLOCK_ACTIONS)}")
    name = CLOCK_ACTIONS[action]
    if name is None and value is not None:
        raise ControlError(f"{value}: {action} takes no value")
    if name is not None and value is None:
        example = "5s" if action == "until" else "10"
        raise ControlError(f"{action} wants a value, such as {action} {example}")
    return {name: value} if name and value else {}


def list_runs(*, also_left: bool = False) -> int:
    """Prints the runs of this user that go on, and those that have left a record in `runs`; returns the exit status."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("lab", "state", "virtual", "host", "TDF", "drive", "run directory"):
        table.add_column(column, overflow="fold" if column == "run directory" else "ellipsis")
    runs = going()
    for run in runs.shown:
        clock = run["clock"]
        drive = clock["drive"] if clock else ""
        table.add_row(run["lab"], _state(run), *_times(clock), drive, from_here(Path(run["run_dir"])))
    for over in left() if also_left else ():
        time = over.record.time
        state = f"killed while {over.record.state}" if over.was_killed else over.record.state
        verdict = f", {over.record.verdict.level}" if over.record.verdict else ""
        times = _written(time.virtual_s, time.host_s, float(time.tdf))
        table.add_row(over.record.lab, f"{state}{verdict}", *times, time.drive, str(over.run_dir))
    console = Output()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    console.print(table if table.rows else "nothing runs" + (", and nothing has" if also_left else ""))
    for run in runs.shown:
        if notice := run.get("notice"):
            complain(f"{run['lab']}: virtual time {notice}")
    for why in runs.silent:
        complain(why)
    return 0


@refusing(ControlError)
def stop_run(run: str) -> int:
    """Ends a run, and waits for that; returns the exit status."""
    with Client(find(run)) as client:
        client.request(STOP)
        client.wait_for_end()
    return 0


def print_clock(state: Clock) -> None:
    """Prints a clock as a run shows it."""
    virtual, host, tdf = _times(state)
    bound = "" if state["max_speed"] is None else f", at most {numbers.significant(state['max_speed'])}x"
    pace = f"{'held' if state['held'] else 'running'} at TDF {tdf}, {state['drive']} drive{bound}"
    Output().print(f"virtual {virtual}  host {host}  {pace}")


def _state(run: RunState) -> str:
    if run["suspended"]:
        return "suspended"
    return "held" if run["clock"] and run["clock"]["held"] else str(run["state"])


def _times(clock: Clock | None) -> tuple[str, str, str]:
    if clock is None:
        return "", "", ""
    return _written(clock["virtual_s"], clock["host_s"], clock["tdf"])


def _written(virtual_s: float, host_s: float, tdf: float) -> tuple[str, str, str]:
    return f"{virtual_s:.6f} s", f"{host_s:.2f} s", numbers.significant(tdf, 6)
