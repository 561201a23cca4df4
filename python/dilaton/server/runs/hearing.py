"""What a run that goes on tells of itself, and which state of its life that is."""

from __future__ import annotations

import asyncio

from dilaton.run.control.happenings import BegunAgain, ClockTurned, Entered, Happening
from dilaton.server.runs.life import RunState


class Hearer:
    """Where the happenings of a run lead."""

    def __init__(self) -> None:
        self.heard = asyncio.Event()
        self._is_running = self._is_held = self._is_over = False

    @property
    def state(self) -> RunState:
        """What the run is, as far as it was heard."""
        if not self._is_running:
            return "starting"
        return "held" if self._is_held else "running"

    def hear(self, happening: Happening) -> None:
        """Takes note of a happening."""
        match happening:
            case Entered(state="running"):
                self._is_running = True
            case Entered(state="prepare" | "boot" | "ready") | BegunAgain():
                self._is_running = self._is_held = self._is_over = False
            case Entered():
                # Its clock is held from then on, and that is nobody's order.
                self._is_over = True
                return
            case ClockTurned(change=change) if not self._is_over:
                self._is_held = change.tdf is None
            case _:
                return
        self.heard.set()
