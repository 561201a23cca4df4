"""What a run looks like in the terminal while it goes: a line per event, and a live line below them."""

from __future__ import annotations

import contextlib
import shlex
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

from rich.live import Live
from rich.text import Text

from dilaton.cli.terminal import Output
from dilaton.host.errors import GuestError
from dilaton.host.messages import Began, Ended, Event, LinkChanged, ProcessReady, Started, Undone
from dilaton.host.port import Progress
from dilaton.measure import numbers
from dilaton.plan.forecast.length import End, end
from dilaton.plan.model import Plan
from dilaton.run.observer import RunClock
from dilaton.run.record import words
from dilaton.run.record.events import FaultSteered, LinkBecame, LinkSteered, OfSession
from dilaton.run.record.model import ClockChange
from dilaton.run.record.record import State

REFRESH_PER_S = 8

GOOD = (
    Started,
    ProcessReady,
    OfSession,
    LinkChanged,
    LinkBecame,
    LinkSteered,
    FaultSteered,
    Began,
    Undone,
)
"""Kinds of events that are no trouble; what has exited has to have done so as expected."""


class Display:
    """Shows a run while it goes; an observer of `execute`. Without a terminal it prints a line per event only."""

    def __init__(self, plan: Plan, run_dir: Path) -> None:
        """A display for a run of `plan` in `run_dir`."""
        self._end = end(plan)
        self._console = Output(stderr=True)
        self._plan = plan
        self._run_dir = run_dir
        self._is_released = False
        self._state: State = "prepare"
        self._built = ""
        self._clock: Callable[[], RunClock] | None = None
        self._live = Live(
            get_renderable=self._line, console=self._console, refresh_per_second=REFRESH_PER_S, transient=True
        )

    def __enter__(self) -> Display:
        """Begins to show."""
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Leaves the terminal as it was."""
        if self._console.is_terminal:
            self._live.stop()

    def state(self, state: State) -> None:
        """See `Observer`."""
        self._state = state
        self._is_released &= state != "prepare"

    def progress(self, progress: Progress) -> None:
        """See `Observer`."""
        self._built = f"{progress.done} of {progress.total} {progress.what}"

    def released(self, clock: Callable[[], RunClock]) -> None:
        """See `Observer`."""
        self._clock = clock

    def stopped(self) -> None:
        """See `Observer`."""
        self._clock = None

    def event(self, event: Event) -> None:
        """See `Observer`."""
        self._console.print_line(_event_line(event))

    def clock_changed(self, change: ClockChange) -> None:
        """See `Observer`. That it goes on at first is not worth a line."""
        first, self._is_released = not self._is_released, True
        if first and change.reason == "released":
            return
        line = Text(f"{change.virtual_s:12.6f} s  ", style="dim").append(f"clock {change.reason}", style="not dim cyan")
        if change.tdf is None:
            line.append(f"; to go on: dilaton clock {shlex.quote(str(self._run_dir))} release", style="not dim")
        self._console.print(line, soft_wrap=True)

    def begun_again(self, why: str, plan: Plan) -> None:
        """See `Observer`."""
        line = Text("begun again", style="cyan").append(
            f" with TDF {numbers.tdf(plan.time.tdf.ratio)}: {why}", style="default"
        )
        self._console.print(line, soft_wrap=True)
        self._plan, self._end = plan, end(plan)

    def _line(self) -> Text:
        line = Text(f"{self._plan.lab} ", style="bold")
        clock = self._read_clock()
        if clock is None:
            return line.append(f"{self._state} {self._built}", style="not bold cyan")
        speed = clock.virtual_ns / clock.host_ns if clock.host_ns else 0.0
        parts = [
            f"virtual {clock.virtual_ns / 1e9:8.3f} s",
            f"host {clock.host_ns / 1e9:7.2f} s",
            f"speed {numbers.significant(speed)}x",
            f"TDF {numbers.tdf(clock.tdf)}",
            f"latest timer {numbers.duration(clock.lateness_ns_max / 1e9)} late",
        ]
        if left := left_words(self._end, clock.virtual_ns / 1e9, speed):
            parts.append(left)
        return line.append("  ".join(parts), style="not bold")

    def _read_clock(self) -> RunClock | None:
        """Both clocks, as long as they go; in a thread of its own, whose run may end meanwhile."""
        read_clock = self._clock
        # A guest that was killed while it wrote leaves its clock page half written, and then the page is closed.
        with contextlib.suppress(GuestError, ValueError):
            return read_clock() if read_clock else None
        return None


def left_words(end: End | None, virtual_s: float, speed: float) -> str:
    """How much of the host's time a run still takes, from where it is and how fast it goes; empty: not known.

    Args:
        end: When it ends.
        virtual_s: Where it is.
        speed: Virtual seconds in a second of the host.
    """
    if end is None or not speed or virtual_s >= end.virtual_s:
        return ""
    left = numbers.duration((end.virtual_s - virtual_s) / speed, digits=2)
    return f"{'at least' if end.is_earliest else 'about'} {left} left"


class Quiet(Display):
    """Shows of a run that it goes on, and nothing of what happens in it."""

    def event(self, event: Event) -> None:
        """See `Observer`."""

    def clock_changed(self, change: ClockChange) -> None:
        """See `Observer`."""


def _event_line(event: Event) -> Text:
    line = Text(f"{event.t_ns / 1e9:12.6f} s  ", style="dim")
    line.append(f"{words.subject(event)} ", style="bold")
    good = event.expected if isinstance(event, Ended) else isinstance(event, GOOD)
    return line.append(words.happened(event), style="green" if good else "red")
