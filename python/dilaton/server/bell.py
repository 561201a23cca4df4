"""Wakes whoever waits for something new in the database, without telling what: they look for themselves."""

from __future__ import annotations

import asyncio
import contextlib

from dilaton.host.tasks import within


class Bell:
    """Rings after each commit; for one event loop, rung from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next = asyncio.Event()

    def hang(self) -> None:
        """Belongs to the running loop from now on."""
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        """Wakes all who wait."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._ring)

    def _ring(self) -> None:
        rung, self._next = self._next, asyncio.Event()
        rung.set()

    def waiting(self) -> asyncio.Event:
        """What is set at the next ring: to be taken before one looks, so that none is missed."""
        return self._next


async def rung(event: asyncio.Event, host_s: float) -> bool:
    """Whether a bell rings within so many seconds of the host."""
    try:
        await within(host_s, event.wait())
    except TimeoutError:
        return False
    return True
