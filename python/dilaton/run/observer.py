"""What those who watch a run are told while it goes on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Protocol

from dilaton.host.messages import Event
from dilaton.host.port import Progress
from dilaton.plan.model import Plan
from dilaton.run.record.model import ClockChange
from dilaton.run.record.record import State


@dataclass(frozen=True)
class RunClock:
    """Both clocks of a run, nanoseconds since its virtual 0 (host: since the release)."""

    virtual_ns: int
    host_ns: int
    tdf: Fraction | None
    lateness_ns_max: int


class Observer(Protocol):
    """Who watches a run; the command line's live display is one."""

    def state(self, state: State) -> None:
        """The run has entered `state`."""

    def progress(self, progress: Progress) -> None:
        """How far a guest is built."""

    def released(self, clock: Callable[[], RunClock]) -> None:
        """The clock is released; `clock` reads it from now on."""

    def stopped(self) -> None:
        """The clock is about to be gone, and is not to be read any more."""

    def event(self, event: Event) -> None:
        """Something happened."""

    def clock_changed(self, change: ClockChange) -> None:
        """The clock was released, held, or got another pace."""

    def begun_again(self, why: str, plan: Plan) -> None:
        """The run was ended, and begins again from the start with another plan."""
