"""`dilaton top`: a run that goes on, at a glance."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Literal, Protocol

from rich import box
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.table import Table
from rich.text import Text

from dilaton.cli.errors import BadInputError, refusing
from dilaton.cli.runs.display import left_words
from dilaton.cli.runs.result import VERDICT_STYLES
from dilaton.cli.terminal import Output
from dilaton.measure import numbers
from dilaton.measure.recent import Row
from dilaton.plan.forecast.length import End, end
from dilaton.plan.model import Plan
from dilaton.run.control.answers import STATUS, Clock, GuestShown, ProcessShown, Standing, Timeliness
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from dilaton.run.control.status import clock_of, recent_samples
from dilaton.run.files.directory import PLAN_FILE
from dilaton.run.files.outputs import read_output
from dilaton.service.catalogue import find

LINES_BESIDE = 12
"""How many lines of a screen are not rows of a table."""


KEYS: dict[str, str | None] = {
    "sends": "tx_bit_per_s",
    "packets": "tx_packet_per_s",
    "queue": "queue_packets",
    "drops": "queue_drops",
    "lost": "lost_packets",
    "name": None,
}
"""What interfaces can be sorted by, and the column of their samples that has it."""


@dataclass(frozen=True)
class Choice:
    """Which nodes are shown, and which of their interfaces first.

    Attributes:
        key: What the first interfaces have most of, one of `KEYS`.
        nodes: A pattern of names, as of files.
    """

    key: str
    nodes: str

    @classmethod
    def of(cls, key: str, nodes: str | None) -> Choice:
        """What was asked for.

        Raises:
            BadInputError: interfaces cannot be sorted by that.
        """
        if key not in KEYS:
            raise BadInputError(f"--sort {key}: must be one of {', '.join(KEYS)}")
        return cls(key, nodes or "*")

    def takes(self, row: Row | ProcessShown) -> bool:
        """Whether something is of a node that is shown."""
        return fnmatchcase(row["node"], self.nodes)

    @property
    def order(self) -> Callable[[Row], tuple[float, str, str]]:
        """The key by which interfaces are sorted."""
        column = KEYS[self.key]
        return lambda row: (-(row[column] or 0.0) if column else 0.0, row["node"], row["interface"])


@dataclass(frozen=True)
class Seen:
    """A run at one moment."""

    lab: str
    clock: Clock
    fidelity: Timeliness
    verdict: Standing | None
    processes: list[ProcessShown]
    guests: list[GuestShown]


class Watched(Protocol):
    """A run that goes on, here or at a server."""

    name: str
    refresh_host_s: float
    """How often it is looked at."""

    def plan(self) -> str:
        """Its `plan.json`."""

    def seen(self) -> Seen | None:
        """The run as it is now; None: it has ended."""

    def samples(self, table: str) -> list[Row]:
        """The latest sample of each interface, or of each node."""


class _Here:
    """A run of this machine."""

    refresh_host_s = 0.5

    def __init__(self, client: Client, run_dir: Path) -> None:
        self._client, self._run_dir, self.name = client, run_dir, str(run_dir)

    def plan(self) -> str:
        return read_output(self._run_dir / PLAN_FILE)

    def seen(self) -> Seen | None:
        try:
            status = self._client.request(STATUS)
        except ControlError:
            return None
        lab, of_all = status["run"]["lab"], (status["fidelity"], status["verdict"])
        return Seen(lab, clock_of(status), *of_all, status["processes"], status["guests"])

    def samples(self, table: str) -> list[Row]:
        return recent_samples(self._run_dir, table)


@refusing(ControlError)
def show_top(run: str, choice: Choice, *, once: bool) -> int:
    """Shows a run until it ends or Ctrl-C comes; or once, as without a terminal. Returns the exit status."""
    run_dir = find(run)
    with Client(run_dir) as client:
        return show(_Here(client, run_dir), choice, once=once)


def show(run: Watched, choice: Choice, *, once: bool) -> int:
    """As `show_top`, of a run that was found."""
    console = Output()
    with contextlib.suppress(KeyboardInterrupt):
        if (first := run.seen()) is None:
            raise ControlError(f"{run.name}: the run does not go on")
        foreseen = end(Plan.model_validate_json(run.plan()))
        if once or not console.is_terminal:
            console.print(_page(run, None, first, choice, foreseen, None))
        else:
            _follow(console, run, first, choice, foreseen)
    return 0


def _follow(console: Console, run: Watched, before: Seen, choice: Choice, foreseen: End | None) -> None:
    """Refreshes the page until the run has ended."""
    first = _page(run, None, before, choice, foreseen, None)
    with Live(first, console=console, auto_refresh=False, screen=True) as live:
        while True:
            time.sleep(run.refresh_host_s)
            if (now := run.seen()) is None:
                break
            rows_max = max(console.height - LINES_BESIDE, 2)
            live.update(_page(run, before, now, choice, foreseen, rows_max), refresh=True)
            before = now
    console.print(f"{run.name}: the run has ended")


def _page(
    run: Watched, before: Seen | None, seen: Seen, choice: Choice, foreseen: End | None, rows_max: int | None
) -> RenderableType:
    """The whole of it, as it went since it was seen before, or since the begin; with at most so many rows of tables."""
    sampled = run.samples("interfaces")
    interfaces = list(filter(choice.takes, sampled))
    nodes = list(filter(choice.takes, run.samples("nodes")))
    processes = list(filter(choice.takes, seen.processes))
    room = None if rows_max is None else max(rows_max - len(processes), 2)
    parts: list[RenderableType] = [_head(seen, foreseen, _passed(before, seen)), *_verdict(seen.verdict)]
    if interfaces:
        parts.append(_interfaces(sorted(interfaces, key=choice.order), choice.key, room))
    elif not sampled:
        parts.append(Text("no samples of interfaces; for some, write measure: {interfaces: 100ms}", style="dim"))
    if nodes:
        parts.append(_nodes(nodes, room))
    if len(seen.guests) > 1:
        parts.append(_guests(before, seen, room))
    parts.append(_processes(processes))
    return Group(*parts)


def _passed(before: Seen | None, seen: Seen) -> tuple[float, float]:
    """How many virtual seconds, and how many of the host, have passed since a run was seen before, or begun."""
    clock = seen.clock
    if before is None:
        return clock["virtual_s"], clock["host_s"]
    return clock["virtual_s"] - before.clock["virtual_s"], clock["host_s"] - before.clock["host_s"]


def _head(seen: Seen, foreseen: End | None, passed: tuple[float, float]) -> Text:
    clock, fidelity = seen.clock, seen.fidelity
    late = fidelity["lateness_us"]
    average, speed = (virtual_s / host_s if host_s > 0 else 0.0 for virtual_s, host_s in (_passed(None, seen), passed))
    pace = "held" if clock["held"] else f"{numbers.significant(speed or average)}x"
    line = Text(f"{seen.lab}  ", style="bold")
    parts = [
        f"virtual {clock['virtual_s']:.3f} s",
        f"host {clock['host_s']:.1f} s",
        pace,
        f"TDF {numbers.significant(clock['tdf'], 6)}, {clock['drive']} drive",
        f"timers 99 % within {numbers.duration(late['p99'] / 1e6)}, worst {numbers.duration(late['max'] / 1e6)}",
    ]
    if fidelity["busy"] is not None:
        parts.append(f"busy {numbers.ratio(fidelity['busy'])}")
    if not clock["held"] and (left := left_words(foreseen, clock["virtual_s"], average)):
        parts.append(left)
    return line.append("  ".join(parts), style="not bold")


def _verdict(standing: Standing | None) -> Iterator[Text]:
    """The verdict as it stands, and its worst reason, where there is one."""
    if standing is not None:
        why = "".join(f": {worst['what']}; {worst['advice']}" for worst in standing["reasons"][:1])
        yield Text(f"verdict so far {standing['level']}{why}", style=VERDICT_STYLES[standing["level"]])


def _interfaces(rows: list[Row], key: str, rows_max: int | None) -> Table:
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
    table.caption = f"sampled at {at_s:.3f} s" + (
        f"; {hidden} more interfaces come after these by {key}" if hidden else ""
    )
    return table


def _nodes(rows: list[Row], rows_max: int | None) -> Table:
    table = _table("node", "CPU", "memory", "processes")
    for row in sorted(rows, key=lambda row: -(row["cpu_share"] or 0.0))[:rows_max]:
        share = "" if row["cpu_share"] is None else numbers.ratio(row["cpu_share"])
        memory = "" if row["memory_bytes"] is None else f"{row['memory_bytes'] / 2**20:.1f} MiB"
        table.add_row(row["node"], share, memory, _number(row["processes"]))
    return table


def _guests(before: Seen | None, seen: Seen, rows_max: int | None) -> Table:
    """How much guests worked, of virtual time, and waited for each other, of host time; the busiest first."""
    if before is not None and _passed(before, seen)[0] <= 0:
        before = None  # While time stands still nobody works: what is told is the whole.
    virtual_s, host_s = _passed(before, seen)
    earlier = {guest["name"]: guest for guest in before.guests} if before else {}

    def share(guest: GuestShown, what: Literal["busy_s", "waited_host_s"], of_s: float) -> float | None:
        now, then = guest[what], earlier[guest["name"]][what] if guest["name"] in earlier else 0.0
        return None if now is None or of_s <= 0 else min(1.0, max(0.0, (now - (then or 0.0)) / of_s))

    loads = [(guest, share(guest, "busy_s", virtual_s), share(guest, "waited_host_s", host_s)) for guest in seen.guests]
    table = _table("guest", "machine", "works", "waits")
    for guest, *shares in sorted(loads, key=lambda load: -(load[1] or 0.0))[:rows_max]:
        table.add_row(
            guest["name"], guest["machine"] or "", *("" if one is None else numbers.ratio(one) for one in shares)
        )
    return table


def _processes(processes: list[ProcessShown]) -> Table:
    table = _table("process", "state", "since")
    for process in processes:
        end, start = process["end_s"], process["start_s"]
        since = start if end is None else end
        style = "red" if process["expected"] is False else None
        at = "" if since is None else f"{since:.3f} s"
        table.add_row(f"{process['node']}/{process['name']}", _outcome(process), at, style=style)
    return table


def _outcome(process: ProcessShown) -> str:
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
