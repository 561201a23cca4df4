"""Where the runs of a sweep go: on this machine, or on hosts, of which each takes as many as it has room for.

A run takes a core for each of its guests, and their memory, as long as it goes on, of one host or evenly of several;
who asks first has the first place that is large enough. A host on which a run was lost gets none until it is known
whether it is still there.
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
    def of(cls, plan: Plan, hosts: int = 1) -> Room:
        """What a run of that plan takes of each of so many hosts."""
        memory_bytes = sum(guest.memory_bytes for guest in plan.guests)
        return cls(-(-len(plan.guests) // hosts), -(-memory_bytes // hosts))

    def without(self, other: Room) -> Room:
        """What is left."""
        return Room(self.cores - other.cores, self.memory_bytes - other.memory_bytes)

    def holds(self, other: Room) -> bool:
        """Whether there is that much."""
        return self.cores >= other.cores and self.memory_bytes >= other.memory_bytes


ENDLESS = Room(math.inf, math.inf)


class NoPlaceError(Exception):
    """Too few hosts are left that are large enough; the message says what became of each that is gone."""


class Places:
    """Hosts and what is free of them. All of it in one thread."""

    def __init__(self, rooms: Mapping[str, Room], runs_max: float = math.inf) -> None:
        """Takes the hosts, and how many runs may go on side by side."""
        self._rooms, self._free = dict(rooms), dict(rooms)
        self._left, self._shut = runs_max, set[str]()
        self._gone: dict[str, str] = {}
        self._first, self._changed = asyncio.Lock(), asyncio.Event()

    @contextlib.asynccontextmanager
    async def place(self, wanted: Room, count: int = 1) -> AsyncIterator[tuple[str, ...]]:
        """So many hosts with that room each, in their order, as soon as there are, for as long as the context is.

        A run with more guests than a host has cores gets all of them, as it would if that host were the only one.

        Raises:
            NoPlaceError: There are no longer so many hosts that are large enough.
        """
        # A lock lets those first that came first.
        async with self._first:
            while len(fitting := self._fitting(wanted)) < count or self._left < 1:
                if sum(room.memory_bytes >= wanted.memory_bytes for room in self._rooms.values()) < count:
                    raise NoPlaceError("; ".join(f"{name}: {why}" for name, why in self._gone.items()))
                self._changed.clear()
                await self._changed.wait()
            taken = dict(fitting[:count])
            names = tuple(name for name in self._rooms if name in taken)
            for name, room in taken.items():
                self._free[name] = self._free[name].without(room)
            self._left -= 1
        try:
            yield names
        finally:
            for name, room in taken.items():
                self._free[name] = self._free[name].without(Room(-room.cores, -room.memory_bytes))
            self._left += 1
            self._changed.set()

    def _fitting(self, wanted: Room) -> list[tuple[str, Room]]:
        """The hosts that have the room, and what is taken of each; those with the most free cores first."""
        taken = {
            name: Room(min(wanted.cores, room.cores), wanted.memory_bytes)
            for name, room in self._rooms.items()
            if name not in self._shut
        }
        fitting = [(name, room) for name, room in taken.items() if self._free[name].holds(room)]
        return sorted(fitting, key=lambda each: -self._free[each[0]].cores)

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
