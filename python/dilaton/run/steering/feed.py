"""What happens in a run, for everybody who follows it.

Who comes late is told from the beginning, and who reads slowly is told slowly: everybody has a place in the one list of
what has happened, so that a reader that rests costs the run nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

from dilaton.host.messages import Event
from dilaton.host.port import Progress
from dilaton.plan.model import Plan
from dilaton.run.control.happenings import BegunAgain, Built, ClockTurned, Entered, Happened, Happening, line_of
from dilaton.run.control.requests import Handler, Takeover
from dilaton.run.control.verbs import FOLLOW, Nothing
from dilaton.run.observer import Observer, RunClock
from dilaton.run.record.model import ClockChange
from dilaton.run.record.states import State

LINES_AT_ONCE = 1000

LAST_LINES_HOST_S = 5.0
"""How long the run waits at its end for those who follow it, who may rest."""


class Feed(Observer):
    """Passes on what an observer is told to those who follow the run; see `Observer`."""

    def __init__(self, observer: Observer) -> None:
        """Passes everything on to `observer` first."""
        self._observer = observer
        self._happened: list[Happening] = []
        self._more: set[asyncio.Event] = set()
        self._is_over = False
        self._following: set[asyncio.Task[Any]] = set()

    @property
    def handlers(self) -> dict[str, Handler]:
        """What answers the verbs of the control socket."""
        return FOLLOW.by(self._on_follow)

    async def close(self) -> None:
        """The run is over: lets everybody have the rest."""
        self._is_over = True
        self._wake()
        if self._following:
            await asyncio.wait(self._following, timeout=LAST_LINES_HOST_S)

    def state(self, state: State) -> None:
        """See `Observer`."""
        self._observer.state(state)
        self._tell(Entered(state=state))

    def progress(self, progress: Progress) -> None:
        """See `Observer`."""
        self._observer.progress(progress)
        self._tell(Built(done=progress.done, total=progress.total, what=progress.what))

    def released(self, clock: Callable[[], RunClock]) -> None:
        """See `Observer`."""
        self._observer.released(clock)

    def stopped(self) -> None:
        """See `Observer`."""
        self._observer.stopped()

    def event(self, event: Event) -> None:
        """See `Observer`."""
        self._observer.event(event)
        self._tell(Happened.model_construct(event=event.record()))

    def clock_changed(self, change: ClockChange) -> None:
        """See `Observer`."""
        self._observer.clock_changed(change)
        self._tell(ClockTurned(change=change))

    def begun_again(self, why: str, plan: Plan) -> None:
        """See `Observer`."""
        self._observer.begun_again(why, plan)
        self._tell(BegunAgain(why=why, tdf=float(plan.time.tdf.ratio)))

    def _tell(self, happening: Happening) -> None:
        self._happened.append(happening)
        self._wake()

    def _wake(self) -> None:
        for more in self._more:
            more.set()

    async def _on_follow(self, _: Nothing) -> Takeover:
        async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.create_task(self._follow(reader, writer))
            self._following.add(task)
            try:
                await task
            finally:
                self._following.discard(task)

        return Takeover({}, converse)

    async def _follow(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Tells all there is, and waits for more, until the run is over or whoever has asked is gone."""
        more = asyncio.Event()
        gone = asyncio.create_task(reader.read(1))
        gone.add_done_callback(lambda _: more.set())
        self._more.add(more)
        place = 0
        try:
            with contextlib.suppress(ConnectionError):
                while not gone.done():
                    more.clear()
                    while lines := self._happened[place : place + LINES_AT_ONCE]:
                        writer.write(b"".join(map(line_of, lines)))
                        await writer.drain()
                        place += len(lines)
                    if self._is_over:
                        return
                    await more.wait()
        finally:
            self._more.discard(more)
            gone.cancel()
