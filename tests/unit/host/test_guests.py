"""The guests of a run as one, seen while they go on."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from dilaton.host import guest as hosts
from dilaton.host.guests import Guests
from dilaton.host.kernel import Placement
from dilaton.plan.model import Plan

END_NS = 10


class Guest:
    """A guest whose clock goes on by a nanosecond with each look at it, up to its end."""

    def __init__(self, virtual_ns: int) -> None:
        self._virtual_ns = virtual_ns
        self.page = self

    def virtual_ns(self) -> int:
        self._virtual_ns = min(self._virtual_ns + 1, END_NS)
        return self._virtual_ns

    def is_held(self, host_ns: int) -> bool:
        return self.virtual_ns() == END_NS


@pytest.mark.parametrize("begin_ns", range(END_NS))
def test_a_clock_is_seen_to_stand_where_it_stands_and_nowhere_else(begin_ns: int) -> None:
    planned: Any = SimpleNamespace(guests=[SimpleNamespace(tdf=None)])
    guests = Guests(cast(Plan, planned), [cast(Any, Guest(begin_ns))], None, cast(Any, None))
    now_ns, is_held = guests.look()
    assert is_held == (now_ns == END_NS)


class Page:
    """A clock page of a guest whose clock stands at 5: what it has at one look at the timer after the other."""

    def __init__(self, looks: list[tuple[int, int]]) -> None:
        self._looks = iter(looks)
        self._deadline_ns = self._rests = 0

    def read(self, field: str) -> int:
        if field == "deadline_ns":
            self._deadline_ns, self._rests = next(self._looks, (self._deadline_ns, self._rests))
        return {"deadline_ns": self._deadline_ns, "rests": self._rests, "virtual_now_ns": 5}[field]

    def virtual_ns(self, host_ns: int) -> int:
        return 5


@pytest.mark.parametrize(
    ("looks", "next_ns"),
    [
        ([(5, 0), (90, 0), (20, 1)], 20),
        ([(90, 1), (20, 1)], 20),
        ([(5, 1), (90, 1)], 90),
        ([(90, 0)], 90),
    ],
    ids=["it goes on", "it went on between two looks", "it rests", "it computes for ever"],
)
def test_a_guests_next_timer_is_known_once_it_rests(
    looks: list[tuple[int, int]], next_ns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dilaton.host.guest.LOOK_HOST_S", 0)
    guest = object.__new__(hosts.Guest)
    guest.__dict__ |= {"name": "a", "page": Page(looks), "process": SimpleNamespace(returncode=None)}
    assert asyncio.run(guest.next_timer_ns()) == next_ns


def descriptors() -> set[str]:
    """Of open files; what other tests have left may be closed at any moment."""
    return set(os.listdir("/proc/self/fd"))


def test_a_guest_that_cannot_start_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "guest").touch()

    async def start() -> None:
        before = descriptors()
        with pytest.raises(OSError, match="guest"):
            await hosts.Guest.start("a", 1 << 28, Placement(tmp_path, jailed=True))
        assert descriptors() <= before

    asyncio.run(start())


def test_guests_whose_wires_have_no_memory_leave_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dilaton.host.guests.lay_out", Mock(side_effect=OSError(12, "Cannot allocate memory")))
    planned: Any = SimpleNamespace(guests=[SimpleNamespace(name="a", memory_bytes=0)], nodes=[])

    async def boot() -> None:
        before = descriptors()
        with pytest.raises(OSError, match="Cannot allocate memory"):
            await Guests.boot(planned, Placement(tmp_path, jailed=True), None, Mock())
        assert descriptors() <= before

    asyncio.run(boot())
