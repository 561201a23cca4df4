"""`dilaton clock`, `ps` and `stop`: runs that go on, seen from another terminal."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich import box
from rich.table import Table

from dilaton.cli.errors import refusing
from dilaton.cli.terminal import Output
from dilaton.measure import numbers
from dilaton.run.control import Client, ControlError, find, running

ACTIONS = {"show": None, "hold": None, "release": None, "until": "at", "step": None, "tdf": "tdf"}
"""What can be done with a clock, and the argument that it takes."""

PLAIN_COLUMNS = 1000
"""Width of the table of runs where there is no terminal to ask: the reader may be a script, and wants whole paths."""


@refusing(ControlError)
def steer(run: str, action: str, value: str | None) -> int:
    """Does `action` with the clock of `run`, and shows the clock; returns the exit status."""
    try:
        argument = _argument(action, value)
        with Client(find(run)) as client:
            _print_clock(client.request(f"clock.{action}", **argument))
    except KeyboardInterrupt:
        # The order stands; only nobody waits for it any more.
        return 130
    return 0


def _argument(action: str, value: str | None) -> dict[str, str]:
    if action not in ACTIONS:
        raise ControlError(f"{action}: not something to do with a clock; use {', '.join(ACTIONS)}")
    name = ACTIONS[action]
    if name is None and value is not None:
        raise ControlError(f"{value}: {action} takes no value")
    if name is not None and value is None:
        example = "5s" if action == "until" else "10"
        raise ControlError(f"{action} wants a value, such as {action} {example}")
    return {name: value} if name and value else {}


def list_runs() -> int:
    """Prints the runs of this user that go on; returns the exit status."""
    table = Table(box=box.SIMPLE_HEAD)
    for column in ("lab", "state", "virtual", "host", "TDF", "drive", "run directory"):
        table.add_column(column, overflow="fold" if column == "run directory" else "ellipsis")
    for run in running():
        table.add_row(run["lab"], _state(run), *_times(run), run.get("drive", ""), _short(Path(run["run_dir"])))
    console = Output()
    if not console.is_terminal:
        console.width = PLAIN_COLUMNS
    console.print(table if table.rows else "nothing runs")
    return 0


@refusing(ControlError)
def stop_run(run: str) -> int:
    """Ends a run, and waits for that; returns the exit status."""
    with Client(find(run)) as client:
        client.request("stop")
        client.wait_for_end()
    return 0


def _print_clock(state: dict[str, Any]) -> None:
    virtual, host, tdf = _times(state)
    bound = "" if state["max_speed"] is None else f", at most {numbers.significant(state['max_speed'])}x"
    pace = f"{'held' if state['held'] else 'running'} at TDF {tdf}, {state['drive']} drive{bound}"
    Output().print(f"virtual {virtual}  host {host}  {pace}")


def _state(run: dict[str, Any]) -> str:
    return "held" if run.get("held") else str(run["state"])


def _times(run: dict[str, Any]) -> tuple[str, str, str]:
    if "virtual_s" not in run:
        return "", "", ""
    return f"{run['virtual_s']:.6f} s", f"{run['host_s']:.2f} s", numbers.significant(run["tdf"], 6)


def _short(path: Path) -> str:
    """The path as it is shortest from here."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
