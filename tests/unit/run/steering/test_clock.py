"""Steering the clock of a run: who may, and who has the last word."""

from __future__ import annotations

import asyncio
from fractions import Fraction

import pytest

from dilaton.host.orders import Orders
from dilaton.plan.model import Speed, Tdf, Time
from dilaton.run.control.errors import ControlError
from dilaton.run.steering.clock import ClockControl


class Clock:
    """The guests of a run, as far as their clock is steered here."""

    def __init__(self) -> None:
        self.held = True
        self.holds = 0
        self.reached = asyncio.Event()
        """An end, at which the clock stands."""
        self.seen = asyncio.Event()
        """By who waits for that."""
        self.now_ns = 0
        self.furthest_ns = 0
        """Where the guest is that is furthest ahead."""
        self.speeds: list[Fraction | None] = []
        """The bounds that its speed was given."""

    async def run_until(self, at_ns: int, tdf: Fraction | None) -> None:
        self.held, self.now_ns = True, at_ns
        self.reached.set()
        await self.seen.wait()

    async def order(self, orders: Orders) -> None:
        self.held = orders.tdf is None

    async def hold(self) -> None:
        await asyncio.sleep(0)
        self.holds += 1
        self.held = True

    def is_held(self) -> bool:
        return self.held

    def look(self) -> tuple[int, bool]:
        return self.now_ns, self.held

    def latest_ns(self) -> int:
        return self.furthest_ns

    async def set_tdf(self, tdf: Fraction) -> None:
        raise NotImplementedError

    async def set_max_speed(self, speed: Fraction | None) -> None:
        self.speeds.append(speed)

    async def step(self, tdf: Fraction) -> None:
        self.now_ns = 5


async def called(control: ClockControl, verb: str) -> None:
    await control.handlers[verb]({})


def steering(clock: Clock, max_speed: Speed | None = None, *, stays: bool = False) -> ClockControl:
    planned = Time(drive="work", tdf=Tdf.of(Fraction(1)), max_speed=max_speed)
    return ClockControl(clock, planned, lambda _: None, stays=stays)


async def at_an_end() -> tuple[Clock, ClockControl, asyncio.Task[None]]:
    """A clock that stands at 5 ns, which who waits for that has yet to see."""
    clock = Clock()
    control = steering(clock)
    reaching = asyncio.create_task(control.until(5, "until 5 ns"))
    await clock.reached.wait()
    return clock, control, reaching


@pytest.mark.parametrize("furthest_ns", [5, 9])
def test_guests_meet_at_one_instant_also_where_one_was_past_an_end_when_it_saw_it(furthest_ns: int) -> None:
    async def come() -> int:
        clock, _, reaching = await at_an_end()
        clock.furthest_ns = furthest_ns
        clock.seen.set()
        await reaching
        return clock.holds

    assert asyncio.run(come()) == (furthest_ns > 5)


@pytest.mark.parametrize("furthest_ns", [5, 9])
def test_guests_meet_at_one_instant_also_after_a_step(furthest_ns: int) -> None:
    async def step() -> int:
        clock = Clock()
        clock.furthest_ns = furthest_ns
        await called(steering(clock), "clock.step")
        return clock.holds

    assert asyncio.run(step()) == (furthest_ns > 5)


@pytest.mark.parametrize("is_held", [False, True])
def test_a_clock_is_as_it_was_when_what_it_stood_for_is_over(is_held: bool) -> None:
    async def change() -> bool:
        clock = Clock()
        control = steering(clock)
        if not is_held:
            await control.release("released")
        async with control.standing("a link is changed"):
            assert clock.held
        return clock.held

    assert asyncio.run(change()) == is_held


@pytest.mark.parametrize("is_early", [False, True])
def test_a_hold_outlasts_what_the_clock_stood_for_when_it_came(is_early: bool) -> None:
    async def change() -> bool:
        clock = Clock()
        control = steering(clock)
        await control.release("released")
        if is_early:  # while the clock is being stopped
            holding = asyncio.create_task(control.hold("held"))
        async with control.standing("a link is changed"):
            if not is_early:
                holding = asyncio.create_task(control.hold("held"))
            await holding
        return clock.held

    assert asyncio.run(change())


@pytest.mark.parametrize("is_first_held", [False, True])
def test_a_clock_that_stands_for_something_is_not_released_before_that_is_over(is_first_held: bool) -> None:
    async def change() -> None:
        clock = Clock()
        control = steering(clock)
        if not is_first_held:
            await control.release("released")
        async with control.standing("a link is changed"):
            release = asyncio.create_task(called(control, "clock.release"))
            await asyncio.sleep(0.01)
            assert clock.held and not release.done()
        await release
        assert not clock.held

    asyncio.run(change())


def test_who_sees_that_a_clock_has_come_to_stand_may_steer_it() -> None:
    async def steer() -> None:
        clock, control, reaching = await at_an_end()
        release = asyncio.create_task(called(control, "clock.release"))
        await asyncio.sleep(0.01)
        assert not release.done(), "the first one is not over"
        clock.seen.set()
        await asyncio.gather(reaching, release)
        assert not clock.held

    asyncio.run(steer())


def test_a_command_that_is_under_way_keeps_others_from_steering() -> None:
    async def steer() -> None:
        clock, control, reaching = await at_an_end()
        clock.held = False
        with pytest.raises(ControlError, match="another command steers the clock: until 5 ns; hold ends it"):
            await called(control, "clock.release")
        clock.seen.set()
        await reaching

    asyncio.run(steer())


@pytest.mark.parametrize("stays", [False, True])
def test_people_have_host_speed_but_do_not_wait_for_an_instant_that_they_ask_for(stays: bool) -> None:
    async def work() -> list[Fraction | None]:
        clock = Clock()
        control = steering(clock, stays=stays)
        clock.seen.set()
        async with control.paced():
            assert control.state()["max_speed"] == 1
            clock.speeds.clear()
            await control.until(5, "until 5 ns")
        assert control.state()["max_speed"] == (1 if stays else None)
        return clock.speeds

    assert asyncio.run(work())[:2] == [None, 1]


def test_the_speed_that_a_lab_says_is_that_of_people_too() -> None:
    async def work() -> list[Fraction | None]:
        clock = Clock()
        control = steering(clock, Speed(numerator=20, denominator=1), stays=True)
        clock.seen.set()
        async with control.paced():
            await control.until(5, "until 5 ns")
        return clock.speeds

    assert set(asyncio.run(work())) <= {20}
