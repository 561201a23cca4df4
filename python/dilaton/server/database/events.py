"""The newest events, read once for all who listen, instead of once for each of them."""

from __future__ import annotations

import asyncio
from collections import deque
from functools import partial

from sqlalchemy import func, select

from dilaton.server.bell import Bell
from dilaton.server.database.store import Store, surely
from dilaton.server.database.tables import EventRow

KEPT = 1000
READ_AT_ONCE = 200


class Newest:
    """What happened last; in one event loop.

    The bell rings after each commit. So what was read while a certain ring was yet to come is all that there is until
    that ring.
    """

    def __init__(self, store: Store, bell: Bell) -> None:
        """Reads nothing yet."""
        self._store, self._bell = store, bell
        self._rows: deque[EventRow] = deque(maxlen=KEPT)
        self._last: int | None = None
        """The number of the newest one that was read; None: none was."""
        self._ring: asyncio.Event | None = None
        self._reading = asyncio.Lock()

    async def behind(self, last: int) -> list[EventRow]:
        """The first events with higher numbers than `last`, at most `READ_AT_ONCE`, in their order."""
        async with self._reading:
            if self._ring is not (ring := self._bell.waiting()):
                await self._read_on()
                self._ring = ring
        # What is kept follows each other, but need not begin early enough.
        if self._last is not None and (last >= self._last or (self._rows and last >= self._rows[0].number - 1)):
            return [row for row in self._rows if row.number > last][:READ_AT_ONCE]
        return await surely(partial(self._read, last))

    async def _read_on(self) -> None:
        if self._last is None:
            self._last = await surely(self._newest)
        while rows := await surely(partial(self._read, self._last)):
            self._rows.extend(rows)
            self._last = rows[-1].number

    def _newest(self) -> int:
        with self._store.reading() as session:
            return session.scalar(select(func.max(EventRow.number))) or 0

    def _read(self, last: int) -> list[EventRow]:
        with self._store.reading() as session:
            wanted = select(EventRow).where(EventRow.number > last).order_by(EventRow.number).limit(READ_AT_ONCE)
            return list(session.scalars(wanted))
