"""Holding, releasing and steering the clock of a run that goes on.

All instants are virtual time since the run's virtual 0. One command at a time changes the clock: while *until* or
*step* is under way, others are refused, so that two who steer learn of each other; *hold* alone is always allowed, and
ends what is under way. Holding and going on never change what happens in virtual time, only when the host gets there;
the TDF does, as it is the speed of the guest's CPU. So every change is kept with both times.

People live in host time. Where they type, or a lab stays for them to do so, virtual time runs no faster than that,
unless the lab says how fast; but who asks for an instant wants to be there, and does not wait for what is idle until
then.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from fractions import Fraction

from dilaton.host.errors import GuestError
from dilaton.host.orders import Orders
from dilaton.host.port import Clocks
from dilaton.measure import numbers
from dilaton.plan.model import Time
from dilaton.run.control import verbs
from dilaton.run.control.answers import Clock
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Handler
from dilaton.run.control.verbs import NewSpeed, NewTdf, Nothing, Until
from dilaton.run.record.model import ClockChange

LOOK_HOST_S = 0.0005
"""How often it is looked whether a command is over by which the clock stands already."""

HOST_SPEED = Fraction(1)
"""Virtual seconds per host second while somebody types or may, where the lab says none."""


class ClockControl:
    """The clock of a run, for those who steer it."""

    def __init__(
        self, guests: Clocks, planned: Time, told: Callable[[ClockChange], None], *, stays: bool = False
    ) -> None:
        """Takes the clock of `guests`, which are held.

        Args:
            guests: Whose clock it is.
            planned: What drives it, and how fast.
            told: Learns of every change.
            stays: Whether the run is there for people to work in it.
        """
        self._guests = guests
        self._drive = planned.drive
        self._tdf = planned.tdf.ratio
        self.is_steered = False
        """Whether somebody has given the run a TDF, which it keeps from then on."""
        speed = planned.max_speed
        self._planned_speed = None if speed is None else Fraction(speed.numerator, speed.denominator)
        self._people = int(stays)
        """How many live in the run, or may."""
        self._hurries = False
        self._told = told
        self._steered_by = ""
        self._holds = 0
        """How often somebody has held the clock."""
        self._first_hold: asyncio.Task[None] | None = None
        self._released_ns = time.monotonic_ns()

    @property
    def handlers(self) -> dict[str, Handler]:
        """What answers the verbs of the control socket."""
        return (
            verbs.CLOCK_SHOW.by(self._on_show)
            | verbs.CLOCK_HOLD.by(self._on_hold)
            | verbs.CLOCK_RELEASE.by(self._on_release)
            | verbs.CLOCK_UNTIL.by(self._on_until)
            | verbs.CLOCK_STEP.by(self._on_step)
            | verbs.CLOCK_TDF.by(self._on_tdf)
            | verbs.CLOCK_SPEED.by(self._on_speed)
        )

    @property
    def is_event(self) -> bool:
        """Whether the event drive drives it, on which guests listen to the host where they idle alone."""
        return self._drive == "event"

    @property
    def tdf(self) -> Fraction:
        """The present TDF; of a held clock, that with which it will go on."""
        return self._tdf

    @property
    def _max_speed(self) -> Fraction | None:
        """How fast virtual time may run now."""
        if self._planned_speed is not None:
            return self._planned_speed
        return HOST_SPEED if self._people and not self._hurries else None

    def state(self) -> Clock:
        """Both clocks, the pace, and whether virtual time stands still."""
        now = self._now("")
        return Clock(
            virtual_s=now.virtual_s,
            host_s=now.host_s,
            tdf=float(self._tdf),
            held=now.tdf is None,
            drive=self._drive,
            steered_by=self._steered_by,
            max_speed=None if self._max_speed is None else float(self._max_speed),
        )

    async def start(self, hold_at_ns: int | None) -> None:
        """Releases the clock for the first time, with an instant at which it is held, if that is not None."""
        if hold_at_ns is None:
            await self.release("released")
            return
        await self._guests.order(Orders(self._tdf, self._drive, hold_at_ns, self._max_speed))
        self._first_hold = asyncio.create_task(self._hold_at(hold_at_ns))

    async def _hold_at(self, at_ns: int) -> None:
        # Whoever holds or stops the run before has the last word.
        with contextlib.suppress(ControlError):
            await self.until(at_ns, f"until {numbers.duration(at_ns / 1e9)}")

    def close(self) -> None:
        """Gives the clock up."""
        if self._first_hold:
            self._first_hold.cancel()

    async def release(self, reason: str) -> None:
        """Lets virtual time go on from where it is."""
        # The instant is read before: a clock that goes on is seconds further when the order is known to be followed.
        at = self._now(reason)
        await self._guests.order(Orders(self._tdf, self._drive, None, self._max_speed))
        self._tell_running(at)

    async def until(self, at_ns: int, reason: str) -> None:
        """Lets virtual time go on to `at_ns` and holds it there; returns when that is reached.

        Raises:
            ControlError: it is past, or another command is under way.
            GuestError: the guest has ended.
        """
        async with self._steering(reason):
            now, latest_ns = self._now(reason), self._guests.latest_ns()
            if at_ns < latest_ns:
                asked, reached = numbers.duration(at_ns / 1e9), numbers.duration(latest_ns / 1e9)
                raise ControlError(f"{asked}: virtual time is already at {reached}, and never goes back")
            self._tell_running(now)
            async with self._hurrying():
                await self._guests.run_until(at_ns, self._tdf)
                await self._meet()
            self._log("held")

    async def _meet(self) -> None:
        """Has guests that stand do so at one instant: one that idled may have been past it when it saw the order."""
        if self._guests.latest_ns() > self._guests.look()[0]:
            await self._guests.hold()

    async def hold(self, reason: str) -> None:
        """Stops virtual time where it is."""
        self._holds += 1
        await self._guests.hold()
        self._log(reason)

    @contextlib.asynccontextmanager
    async def standing(self, reason: str) -> AsyncIterator[bool]:
        """Lets virtual time stand still meanwhile, at one instant in all guests; whether it did so before.

        It then goes on, unless the clock was held before, or somebody has held it meanwhile.

        Raises:
            ControlError: another command is under way.
        """
        async with self._steering(reason):
            if self._guests.is_held():
                yield True
                return
            holds = self._holds
            await self._guests.hold()
            self._log(reason)
            try:
                yield False
            finally:
                # A run that has ended meanwhile has no clock any more.
                with contextlib.suppress(ValueError):
                    if self._holds == holds:
                        await self.release(f"{reason}: done")

    @contextlib.asynccontextmanager
    async def _hurrying(self) -> AsyncIterator[None]:
        """Lets nobody wait for host time meanwhile; whoever begins or ends to type then changes nothing of it."""
        paced = self._max_speed
        self._hurries = True
        try:
            if self._max_speed != paced:
                await self._guests.set_max_speed(None)
            yield
        finally:
            self._hurries = False
            if self._max_speed is not None and self._planned_speed is None:
                await self._guests.set_max_speed(self._max_speed)

    @contextlib.asynccontextmanager
    async def paced(self) -> AsyncIterator[None]:
        """Keeps virtual time from running faster than host time meanwhile; a clock that is held stays so.

        Raises:
            ControlError: the clock does not take it over.
        """
        self._people += 1
        try:
            if self._people == 1:
                await self._bound_speed("somebody types")
            yield
        finally:
            self._people -= 1
            # When the run has ended meanwhile there is nothing left to pace.
            with contextlib.suppress(ControlError):
                if not self._people:
                    await self._bound_speed("nobody types any more")

    async def _bound_speed(self, reason: str) -> None:
        speed = self._max_speed
        try:
            await self._guests.set_max_speed(speed)
        except GuestError as error:
            raise ControlError(str(error)) from error
        bound = "no highest speed" if speed is None else f"at most {numbers.significant(float(speed))}x"
        self._log(f"{reason}: {bound}")

    async def adapt(self, tdf: Fraction, reason: str) -> None:
        """Changes the TDF as the load asks for, unless somebody has given the run one, or its clock is held."""
        if not self.is_steered and not self._guests.is_held():
            await self._set_tdf(tdf, f": {reason}")

    def note(self, what: str) -> None:
        """Tells of something that does not change the clock, among what changes it."""
        self._log(what)

    async def _set_tdf(self, tdf: Fraction, reason: str) -> None:
        # Read before, as for a release: a run may be over, and its clock held, when the order is known to be followed.
        at = self._now(f"TDF {numbers.tdf(tdf)}{reason}")
        # So that who releases the clock meanwhile gives it this one.
        self._tdf = tdf
        await self._guests.set_tdf(tdf)
        if at.tdf is None:
            self._told(at)
        else:
            self._tell_running(at)

    def _now(self, reason: str) -> ClockChange:
        now_ns, is_held = self._guests.look()
        return ClockChange(
            virtual_s=now_ns / 1e9,
            host_s=(time.monotonic_ns() - self._released_ns) / 1e9,
            tdf=None if is_held else float(self._tdf),
            reason=reason,
        )

    def _tell_running(self, at: ClockChange) -> None:
        self._told(at.model_copy(update={"tdf": float(self._tdf)}))

    def _log(self, reason: str) -> None:
        self._told(self._now(reason))

    @contextlib.asynccontextmanager
    async def _steering(self, what: str) -> AsyncIterator[None]:
        """Makes sure that nobody else changes the clock meanwhile."""
        # A command by which the clock stands may not be over when somebody sees that it does.
        while self._steered_by and self._guests.is_held():
            await asyncio.sleep(LOOK_HOST_S)
        if self._steered_by:
            raise ControlError(f"another command steers the clock: {self._steered_by}; hold ends it")
        self._steered_by = what
        try:
            yield
        except GuestError as error:
            raise ControlError(str(error)) from error
        finally:
            self._steered_by = ""

    async def _on_show(self, _: Nothing) -> Clock:
        return self.state()

    async def _on_hold(self, _: Nothing) -> Clock:
        await self.hold("held")
        return self.state()

    async def _on_release(self, _: Nothing) -> Clock:
        async with self._steering("release"):
            await self.release("released")
        return self.state()

    async def _on_until(self, asked: Until) -> Clock:
        await self.until(asked.at, f"until {numbers.duration(asked.at / 1e9)}")
        return self.state()

    async def _on_step(self, _: Nothing) -> Clock:
        async with self._steering("step"):
            async with self._hurrying():
                await self._guests.step(self._tdf)
                await self._meet()
            self._log("stepped")
        return self.state()

    async def _on_tdf(self, asked: NewTdf) -> Clock:
        async with self._steering("tdf"):
            self.is_steered = True
            await self._set_tdf(asked.tdf, "")
        return self.state()

    async def _on_speed(self, asked: NewSpeed) -> Clock:
        async with self._steering("speed"):
            # Who says it counts as a lab that does: also where somebody types.
            self._planned_speed = asked.max_speed
            await self._bound_speed("asked for")
        return self.state()
