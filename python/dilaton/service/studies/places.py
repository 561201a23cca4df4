"""Where the runs of a sweep go: on this machine, or on hosts, of which each takes as many as it has room for.

A run takes a core for each of its guests, and their memory, as long as it goes on; who asks first has the first place
that is large enough. A host on which a run was lost gets none until it is known whether it is still there.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

HERE = ""
"""The place that is this machine, without a host agent."""


@dataclass(frozen=True)
class Room:
    """What a host has, or a run takes.

    Attributes:
        cores: How many.
        memory_bytes: How much.
    """

    cores: float
    memory_bytes: float

    @classmethod
    def of(cls, plan: Plan) -> Room:
        """What a run of that plan takes."""
        return cls(len(plan.guests), sum(guest.memory_bytes for guest in plan.guests))

    def without(self, other: Room) -> Room:
        """What is left."""
        return Room(self.cores - other.cores, self.memory_bytes - other.memory_bytes)

    def holds(self, other: Room) -> bool:
        """Whether there is that much."""
        return self.cores >= other.cores and self.memory_bytes >= other.memory_bytes


ENDLESS = Room(math.inf, math.inf)


class NoPlaceError(Exception):
    """No host is left that is large enough; the message says what became of each."""


class Places:
    """Hosts and what is free of them. All of it in one thread."""

    def __init__(self, rooms: Mapping[str, Room], runs_max: float = math.inf) -> None:
        """Takes the hosts, and how many runs may go on side by side."""
        self._rooms, self._free = dict(rooms), dict(rooms)
        self._left, self._shut = runs_max, set[str]()
        self._gone: dict[str, str] = {}
        self._first, self._changed = asyncio.Lock(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def place(self, wanted: Room) -> AsyncIterator[str]:
        """A host with that room, as soon as there is one, for as long as the context is.

        A run with more guests than a host has cores gets all of them, as it would if that host were the only one.

        Raises:
            NoPlaceError: There is no host any more that is large enough.
        """
        # A lock lets those first that came first.
        async with self._first:
            while not (fitting := self._fitting(wanted)):
                if not any(room.memory_bytes >= wanted.memory_bytes for room in self._rooms.values()):
                    raise NoPlaceError("; ".join(f"{name}: {why}" for name, why in self._gone.items()))
                self._changed.clear()
                await self._changed.wait()
            name, taken = fitting
            self._free[name] = self._free[name].without(taken)
            self._left -= 1
        try:
            yield name
        finally:
            self._free[name] = self._free[name].without(Room(-taken.cores, -taken.memory_bytes))
            self._left += 1
            self._changed.set()

    def _fitting(self, wanted: Room) -> tuple[str, Room] | None:
        """The host with the most free cores of those that have the room, and what is taken of it."""
        if self._left < 1:
            return None
        taken = {
            name: Room(min(wanted.cores, room.cores), wanted.memory_bytes)
            for name, room in self._rooms.items()
            if name not in self._shut
        }
        fitting = [name for name, room in taken.items() if self._free[name].holds(room)]
        best = max(fitting, key=lambda name: self._free[name].cores, default=None)
        return None if best is None else (best, taken[best])

    def shut(self, name: str) -> bool:
        """Has a host get no run until it is opened, or gone; False if it was shut already."""
        was_shut = name in self._shut or name not in self._rooms
        self._shut.add(name)
        return not was_shut

    def open(self, name: str) -> None:
        """It is there after all."""
        self._shut.discard(name)
        self._changed.set()

    def drop(self, name: str, why: str) -> None:
        """It is there no more."""
        self._gone[name] = why
        del self._rooms[name]
        self._changed.set()
