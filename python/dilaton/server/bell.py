"""Wakes whoever waits for something new in the database, without telling what: they look for themselves.

All who listen look at each ring, so commits that follow each other fast, as of a class that begins, ring together.
"""

from __future__ import annotations

import asyncio
import contextlib

from dilaton.host.tasks import within

PAUSE_HOST_S = 0.02
"""Between two rings."""


class Bell:
    """Rings after each commit; for one event loop, rung from any thread."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._next = asyncio.Event()
        self._rung_s = float("-inf")
        """When it has rung last, by the loop's clock."""
        self._is_moved = False
        """Whether it is about to ring."""

    def hang(self) -> None:
        """Belongs to the running loop from now on."""
        self._loop = asyncio.get_running_loop()

    def ring(self) -> None:
        """Wakes all who wait."""
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop is closed: nobody waits any more
                self._loop.call_soon_threadsafe(self._move)

    def _move(self) -> None:
        if self._is_moved or self._loop is None:
            return
        self._is_moved = True
        if (wait_s := self._rung_s + PAUSE_HOST_S - self._loop.time()) > 0:
            self._loop.call_later(wait_s, self._ring)
        else:
            self._ring()

    def _ring(self) -> None:
        assert self._loop is not None, "it hangs somewhere"
        self._is_moved, self._rung_s = False, self._loop.time()
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
