"""`dilaton top`: a run that goes on, at a glance."""

from __future__ import annotations

import time
from pathlib import Path

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dilaton.cli.errors import refusing
from dilaton.cli.terminal import Output
from dilaton.measure import numbers
from dilaton.measure.recent import Row
from dilaton.run.control.requests import Client, ControlError, Result
from dilaton.run.control.status import recent_samples
from dilaton.service.catalogue import find

REFRESH_HOST_S = 0.5

LINES_BESIDE = 10
"""Of a screen: what is not a row of a table."""


@refusing(ControlError)
def show_top(run: str, *, once: bool) -> int:
    """Shows a run until it ends or Ctrl-C comes; or once, as without a terminal. Returns the exit status."""
    console = Output()
    try:
        run_dir = find(run)
        with Client(run_dir) as client:
            status = client.request("status")
            if once or not console.is_terminal:
                console.print(_page(run_dir, status, 0.0, None))
                return 0
            _follow(console, client, run_dir, status)
    except KeyboardInterrupt:
        pass
    return 0


def _follow(console: Console, client: Client, run_dir: Path, status: Result) -> None:
    """Refreshes the page until the run has ended."""
    before = status
    with Live(_page(run_dir, status, 0.0, None), console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(REFRESH_HOST_S)
            try:
                now = client.request("status")
            except ControlError:
                break
            passed_s = now["run"]["clock"]["host_s"] - before["run"]["clock"]["host_s"]
            went_s = now["run"]["clock"]["virtual_s"] - before["run"]["clock"]["virtual_s"]
            speed = went_s / passed_s if passed_s > 0 else 0.0
            live.update(_page(run_dir, now, speed, max(console.height - LINES_BESIDE, 2)), refresh=True)
            before = now
    console.print(f"{run_dir}: the run has ended")


def _page(run_dir: Path, status: Result, speed: float, rows_max: int | None) -> RenderableType:
    """The whole of it; with at most so many rows of tables."""
    interfaces, nodes = recent_samples(run_dir, "interfaces"), recent_samples(run_dir, "nodes")
    processes = status["processes"]
    room = None if rows_max is None else max(rows_max - len(processes), 2)
    parts: list[RenderableType] = [_head(status, speed)]
    if interfaces:
        parts.append(_interfaces(sorted(interfaces, key=_busiest_first), room))
    else:
        parts.append(Text("no samples of interfaces; for some, write measure: {interfaces: 100ms}", style="dim"))
    if nodes:
        parts.append(_nodes(nodes, room))
    parts.append(_processes(processes))
    return Group(*parts)


def _head(status: Result, speed: float) -> Text:
    run, fidelity = status["run"], status["fidelity"]
    clock = run["clock"]
    late = fidelity["lateness_us"]
    average = clock["virtual_s"] / clock["host_s"] if clock["host_s"] else 0.0
    pace = "held" if clock["held"] else f"{numbers.significant(speed or average)}x"
    line = Text(f"{run['lab']}  ", style="bold")
    parts = [
        f"virtual {clock['virtual_s']:.3f} s",
        f"host {clock['host_s']:.1f} s",
        pace,
        f"TDF {numbers.significant(clock['tdf'], 6)}, {clock['drive']} drive",
        f"timers 99 % within {numbers.duration(late['p99'] / 1e6)}, worst {numbers.duration(late['max'] / 1e6)}",
    ]
    if fidelity["busy"] is not None:
        parts.append(f"busy {numbers.ratio(fidelity['busy'])}")
    return line.append("  ".join(parts), style="not bold")


def _busiest_first(row: Row) -> tuple[float, str, str]:
    return -(row["tx_bit_per_s"] or 0.0), row["node"], row["interface"]


def _interfaces(rows: list[Row], rows_max: int | None) -> Table:
    shown = rows[:rows_max]
    table = _table("sends", "rate", "packets/s", "queue", "drops", "lost")
    for row in shown:
        table.add_row(
            f"{row['node']}:{row['interface']}",
            _rate(row["tx_bit_per_s"]),
            _number(row["tx_packet_per_s"]),
            _number(row["queue_packets"]),
            _number(row["queue_drops"]),
            _number(row["lost_packets"]),
        )
    at_s = max(row["t_s"] for row in rows)
    hidden = len(rows) - len(shown)
    table.caption = f"sampled at {at_s:.3f} s" + (f"; {hidden} more interfaces send less" if hidden else "")
    return table


def _nodes(rows: list[Row], rows_max: int | None) -> Table:
    table = _table("node", "CPU", "memory", "processes")
    for row in sorted(rows, key=lambda row: -(row["cpu_share"] or 0.0))[:rows_max]:
        share = "" if row["cpu_share"] is None else numbers.ratio(row["cpu_share"])
        memory = "" if row["memory_bytes"] is None else f"{row['memory_bytes'] / 2**20:.1f} MiB"
        table.add_row(row["node"], share, memory, _number(row["processes"]))
    return table


def _processes(processes: list[Result]) -> Table:
    table = _table("process", "state", "since")
    for process in processes:
        end, start = process["end_s"], process["start_s"]
        since = start if end is None else end
        style = "red" if process["expected"] is False else None
        at = "" if since is None else f"{since:.3f} s"
        table.add_row(f"{process['node']}/{process['name']}", _outcome(process), at, style=style)
    return table


def _outcome(process: Result) -> str:
    exit_status = process["exit"]
    return str(process["outcome"]) + ("" if exit_status in (None, 0) else f" with {exit_status}")


def _table(*columns: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, caption_justify="left")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left", no_wrap=True)
    return table


def _rate(bit_per_s: float | None) -> str:
    return "" if bit_per_s is None else numbers.rate(bit_per_s)


def _number(value: float | None) -> str:
    return "" if value is None else numbers.significant(value)
