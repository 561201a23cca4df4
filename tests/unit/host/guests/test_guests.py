"""The guests of a run as one, seen while they go on."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace
from unittest.mock import Mock

import pytest

from dilaton.host.here.guests import guest as hosts
from dilaton.host.here.guests import kind
from dilaton.host.here.guests.guests import Guests
from dilaton.host.here.guests.kernel import Placement, Wanted
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.here.memory.wire import Wire
from dilaton.host.orders import Orders
from tests.unit.measure.made import plan

END_NS = 10


ALONE = plan("name: x\nnodes: {a: }\n")
TWO = plan("name: x\nguests: per-node\nnodes: {a: , b: }\n")


class Guest(kind.Guest):
    """A guest whose clock goes on by a nanosecond with each look at it, up to its end."""

    zero_ns = 0

    def __init__(self, virtual_ns: int) -> None:
        self._virtual_ns = virtual_ns

    def virtual_ns(self) -> int:
        self._virtual_ns = min(self._virtual_ns + 1, END_NS)
        return self._virtual_ns

    def is_held(self, host_ns: int) -> bool:
        return self.virtual_ns() == END_NS


@pytest.mark.parametrize("begin_ns", range(END_NS))
def test_a_clock_is_seen_to_stand_where_it_stands_and_nowhere_else(begin_ns: int) -> None:
    guests = Guests(ALONE, {0: Guest(begin_ns)}, None, contextlib.ExitStack(), {})
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
    monkeypatch.setattr("dilaton.host.here.guests.guest.LOOK_HOST_S", 0)
    guest = object.__new__(hosts.Guest)
    is_there = asyncio.Event()
    is_there.set()
    guest.__dict__ |= {"name": "a", "page": Page(looks), "process": SimpleNamespace(returncode=None)}
    guest.__dict__ |= {"_is_there": is_there, "_shift_ns": 100}
    assert asyncio.run(guest.next_timer_ns()) == 100 + next_ns


def descriptors() -> set[str]:
    """Of open files; what other tests have left may be closed at any moment."""
    return set(os.listdir("/proc/self/fd"))


def test_a_guest_that_cannot_start_leaves_nothing_open(tmp_path: Path) -> None:
    (tmp_path / "guest").touch()

    async def start() -> None:
        before = descriptors()
        with pytest.raises(OSError, match="guest"):
            await hosts.Guest.start(Wanted("a", 1 << 28), Placement(tmp_path, jailed=True))
        assert descriptors() <= before

    asyncio.run(start())


@pytest.mark.parametrize("make", [lambda: ClockPage(0), lambda: Wire(1, [])], ids=["clock page", "wire"])
@pytest.mark.parametrize("failing", ["os.ftruncate", "mmap.mmap", "socket.socketpair", "os.pipe"])
def test_shared_memory_that_cannot_be_made_leaves_nothing_open(
    make: Callable[[], object], failing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failing, Mock(side_effect=OSError(24, "Too many open files")))
    before = descriptors()
    with contextlib.suppress(OSError):  # a wire has no sockets and pipes
        made = make()
        assert isinstance(made, Wire)
        made.close()
    assert descriptors() <= before


def test_an_order_waits_until_all_have_taken_over_the_one_before() -> None:
    seen: list[tuple[str, Fraction | None]] = []

    class Member(kind.Guest):
        def __init__(self, called: str, rounds: int) -> None:
            self.called, self.rounds = called, rounds

        async def order(self, orders: Orders) -> None:
            for _ in range(self.rounds):
                await asyncio.sleep(0)
            seen.append((self.called, orders.tdf))

        async def set_tdf(self, tdf: Fraction, since_host_ns: int | None = None) -> None:
            await self.order(Orders(tdf))

        async def set_max_speed(self, speed: Fraction | None, since_host_ns: int | None = None) -> None:
            await self.order(Orders(None))

    async def order() -> None:
        both = Guests(TWO, {0: Member("fast", 1), 1: Member("slow", 20)}, None, contextlib.ExitStack(), {})
        await asyncio.gather(both.set_tdf(Fraction(2)), both.set_max_speed(None), both.order(Orders(Fraction(3))))

    asyncio.run(order())
    assert seen == [(name, tdf) for tdf in (Fraction(2), None, Fraction(3)) for name in ("fast", "slow")]


def test_guests_whose_wires_have_no_memory_leave_nothing_open(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        "dilaton.host.here.guests.guests.lay_out", Mock(side_effect=OSError(12, "Cannot allocate memory"))
    )

    async def boot() -> None:
        before = descriptors()
        with pytest.raises(OSError, match="Cannot allocate memory"):
            await Guests.boot(ALONE, Placement(tmp_path, jailed=True), None, lambda _: None)
        assert descriptors() <= before

    asyncio.run(boot())
