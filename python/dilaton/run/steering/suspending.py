"""A run that is put away and comes back: held, its guests' memory on disk and their cores free for others.

To the run it is a hold of its clock, and virtual time does not notice. Its process stays, and answers who asks what it
is; what would steer it is refused until it is resumed. A run that was put away once has left its terminal and whoever
started it: it goes on without them.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import stat

from dilaton.host.errors import GuestError
from dilaton.host.port import Guests
from dilaton.host.processes import outlive_starter
from dilaton.run.control import verbs
from dilaton.run.control.answers import Clock, PutAway
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler, Request, Result, Takeover
from dilaton.run.control.verbs import Nothing
from dilaton.run.steering.clock import ClockControl

REASON = "suspended"

ANSWERED = frozenset({verbs.CLOCK_SHOW.name, verbs.LINK_SHOW.name, verbs.FAULT_LIST.name})
"""Verbs of a run's parts that need no guest."""


class SuspendControl:
    """A run, for those who put it away."""

    def __init__(self, guests: Guests, clock: ClockControl) -> None:
        """Takes the guests of a run, and its clock."""
        self._guests, self._clock = guests, clock
        self._held: contextlib.AsyncExitStack | None = None
        """What lets virtual time go on again, while the run is put away."""
        self._changing = asyncio.Lock()

    @property
    def handlers(self) -> dict[str, Handler]:
        """What answers the verbs of the control socket."""
        return verbs.SUSPEND.by(self._on_suspend) | verbs.RESUME.by(self._on_resume)

    @property
    def is_suspended(self) -> bool:
        """Whether the run is put away, or is being so."""
        return self._held is not None

    def guarding(self, handlers: dict[str, Handler]) -> dict[str, Handler]:
        """The same, refusing what a run that is put away cannot do."""
        return {
            verb: handler if verb in ANSWERED else self._guarded(verb, handler) for verb, handler in handlers.items()
        }

    def _guarded(self, verb: str, handler: Handler) -> Handler:
        async def handle(request: Request) -> Result | Takeover:
            if self.is_suspended:
                raise ControlError(f"{verb}: the run is suspended; dilaton resume lets it go on")
            return await handler(request)

        return handle

    async def bring_back(self) -> None:
        """Goes on where the run was put away; does nothing where it is not.

        Raises:
            GuestError: The memory of a guest cannot be brought back, so that the run ends.
        """
        async with self._changing:
            if self._held is None:
                return
            try:
                await self._guests.resume()
            except OSError as error:
                self._guests.kill()
                raise GuestError(f"the memory of a guest cannot be brought back: {error}") from error
            held, self._held = self._held, None
            await held.aclose()

    async def _on_suspend(self, _: Nothing) -> PutAway:
        async with self._changing:
            if self._held is not None:
                raise ControlError("the run is suspended already")
            async with contextlib.AsyncExitStack() as held:
                await held.enter_async_context(self._clock.standing(REASON))
                self._held = held
                try:
                    written = await self._guests.suspend()
                except BaseException:
                    self._held = None
                    raise
                _leave_terminal()
                self._held = held.pop_all()
            return PutAway(virtual_s=self._clock.state()["virtual_s"], memory_bytes=written)

    async def _on_resume(self, _: Nothing) -> Clock:
        if self._held is None:
            raise ControlError("the run is not suspended")
        await self.bring_back()
        return self._clock.state()


def _leave_terminal() -> None:
    """Has this process go on without who started it, and without its terminal, when that goes."""
    outlive_starter()
    asyncio.get_running_loop().add_signal_handler(signal.SIGHUP, _without_terminal)


def _without_terminal() -> None:
    """The terminal is gone: what is written to it from now on goes nowhere, instead of failing."""
    nothing = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        # What was a terminal does not say so any more.
        if stat.S_ISCHR(os.fstat(stream).st_mode):
            os.dup2(nothing, stream)
    os.close(nothing)
