"""The guests of a run that are on this machine, as one.

Each guest has a virtual clock of its own, which counts from the guest's start. The run's virtual 0 is some instant of
each; from there on they are one virtual time, and all instants here are since then. Guests compute at the same time and
each at its own pace, so at one moment of the host their clocks read differently: the run's *now* is that of the guest
that is furthest behind. Whenever all stand still after a command, they stand at the same instant; and on the wall
drive, where the host's clock drives them all, what lets them run says since which moment of the host it does.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import TYPE_CHECKING

from dilaton.host.counters import Wires
from dilaton.host.errors import GuestError
from dilaton.host.here.guests import cores, open_files
from dilaton.host.here.guests.attachment import attach, lay_out
from dilaton.host.here.guests.disks import opened
from dilaton.host.here.guests.guest import Guest
from dilaton.host.here.guests.kernel import Placement, Wanted
from dilaton.host.here.guests.room import check_memory
from dilaton.host.here.memory.wire import Share, Wire
from dilaton.host.here.uml import kernels
from dilaton.host.identity import Identity
from dilaton.host.messages import Event, Finished, FromAgent, HandsOver, Names, ToAgent
from dilaton.host.orders import NEVER_NS, Orders
from dilaton.host.port import Progress
from dilaton.host.tasks import all_of, beside

if TYPE_CHECKING:
    from dilaton.host.here.guests import kind
    from dilaton.plan import model as plan

WATCH_HOST_S = 0.5
"""How often it is looked whether somebody has stopped a guest, or overwritten what guests share."""

STANDSTILL_LOOKS = 10
"""Looks in a row, five seconds, that find guests waiting for each other, none at work: they do so for ever then."""

SEED_STEP = 0x9E37_79B9_7F4A_7C15
"""Between the seeds of guests: 2^64 divided by the golden ratio, so that they are far apart."""


OVERWRITTEN = (
    "holds what no clock writes there, so a program took over the kernel of a guest; or this is a fault of Dilaton's"
)


class Guests:
    """The running guests of a plan, or this machine's share of them, in its order.

    Make them with `boot`; `close` ends them in whatever state.
    """

    def __init__(
        self,
        planned: plan.Plan,
        guests: Mapping[int, kind.Guest],
        wire: Wire | None,
        images: contextlib.ExitStack,
        disks: Mapping[str, int],
    ) -> None:
        """Use `boot`."""
        self.all = tuple(guests.values())
        self._guests = guests
        """By their numbers in the plan."""
        self._wire = wire
        """What carries frames between them; None when there is one."""
        self._planned = planned
        self._images = images
        self._disks = dict(disks)
        """The files of disks: what has no name goes with the last that has it open, which takes time."""
        tdfs = [planned.guests[number].tdf for number in guests]
        self._own_tdfs = [None if tdf is None else tdf.ratio for tdf in tdfs]
        """The TDFs of guests whose CPU has a speed of its own; None: the run's, whatever that becomes."""
        self._going = set(guests)
        """Those that have not finished; the clock of one that has stands still."""
        self._ordering = asyncio.Lock()
        """An order is taken over everywhere before the next: one that only some saw would leave clocks apart."""

    @classmethod
    async def boot(
        cls,
        planned: plan.Plan,
        placement: Placement,
        seed: int | None,
        progress: Callable[[Progress], None],
        share: Share | None = None,
    ) -> Guests:
        """Starts all guests and lets them build their parts of the plan, as many at a time as there are cores.

        Args:
            planned: What to start; it is in the run directory already.
            placement: Where.
            seed: As in `Wanted`; each guest gets one of its own from it.
            progress: Told how far each of them is.
            share: Which of them are on this machine; None: all.

        Raises:
            HostLacksError: This machine lacks a part.
            GuestError: A guest does not come up.
        """
        numbers = range(len(planned.guests)) if share is None else share.numbers
        check_memory([planned.guests[number] for number in numbers])
        open_files.allow(open_files.needed(planned))
        async with contextlib.AsyncExitStack() as undo:
            images, files = contextlib.ExitStack(), dict[str, int]()
            undo.callback(images.close)
            taken = cores.take(len(numbers))
            for core in taken:
                undo.callback(core.free)
            count = len({core.number for core in taken})
            slots = asyncio.Semaphore(count)
            wire = lay_out(planned, share, shares_cores=len(taken) > count)
            if wire is not None:
                undo.callback(wire.close)

            async def boot(number: int, core: cores.Core) -> kind.Guest:
                guest = planned.guests[number]
                async with slots:
                    disks = images.enter_context(opened(planned, number, placement.run_dir))
                    files.update(disks.files)
                    wanted = Wanted(
                        guest.name,
                        guest.memory_bytes,
                        number,
                        seed=None if seed is None else seed + number * SEED_STEP,
                        attachment=attach(planned, wire, number),
                        disks=disks,
                        has_shares=any(node.cpu and node.guest == guest.name for node in planned.nodes),
                        clock_rate=guest.clock_rate.ratio,
                    )
                    started = await Guest.start(wanted, placement, core)
                    undo.push_async_callback(started.close)
                    await started.build(progress)
                    return started

            guests = await all_of(boot(number, core) for number, core in zip(numbers, taken, strict=True))
            undo.pop_all()
        return cls(planned, dict(zip(numbers, guests, strict=True)), wire, images, files)

    async def arm(self, date_ns: int) -> None:
        """Holds all clocks and arms all schedules; virtual 0 of the run is at the same instant of all.

        Args:
            date_ns: CLOCK_REALTIME at virtual 0.

        Raises:
            GuestError: A guest cannot be armed.
        """
        await all_of(guest.arm(date_ns) for guest in self.all)
        if self._wire is not None:
            self._wire.begin({number: guest.zero_ns for number, guest in self._guests.items()})

    def homes(self) -> tuple[str, ...]:
        """All are here."""
        return ()

    def identity(self) -> Identity:
        """Which kernel they run; of Debian's 10 MB are read for that."""
        return kernels.chosen().identity()

    def disks(self) -> Mapping[str, int]:
        """Open files with the contents of disks, by node."""
        return self._disks

    def pace(self) -> Fraction | None:
        """The TDF that the first one's clock follows now; None while it is held."""
        return self.all[0].pace()

    def wires(self) -> Wires | None:
        """What went over the wires between them so far; None where there are none."""
        return None if self._wire is None else self._wire.counted()

    def now_ns(self) -> int:
        """Virtual now: that of the guest that is furthest behind; before virtual 0 it is 0."""
        return min(map(self._now_ns, self._going), default=self.latest_ns())

    def latest_ns(self) -> int:
        """Virtual now of the guest that is furthest ahead."""
        return max(map(self._now_ns, self._guests))

    def _now_ns(self, number: int) -> int:
        guest = self._guests[number]
        return max(0, guest.virtual_ns() - guest.zero_ns)

    def is_held(self) -> bool:
        """Whether virtual time stands still in all of them."""
        host_ns = time.monotonic_ns()
        return all(guest.is_held(host_ns) for guest in self.all)

    def look(self) -> tuple[int, bool]:
        """Virtual now, and whether virtual time stands still there."""
        now_ns = self.now_ns()
        # Clocks that come to stand meanwhile do so further on.
        return (self.now_ns(), True) if self.is_held() else (now_ns, False)

    def _this_moment_ns(self) -> int | None:
        """Since when clocks that are ordered now run as they should; a single one does since it sees its orders."""
        return time.monotonic_ns() if len(self._planned.guests) > 1 else None

    async def order(self, orders: Orders) -> None:
        """Gives all clocks their orders, the TDF and the end being those of the run.

        Raises:
            GuestError: A guest does not answer.
        """
        async with self._ordering:
            since_ns = self._this_moment_ns()
            await all_of(
                guest.order(
                    Orders(
                        orders.tdf and (own_tdf or orders.tdf),
                        orders.drive,
                        None if orders.end_ns is None else guest.zero_ns + orders.end_ns,
                        orders.max_speed,
                        since_ns,
                    )
                )
                for guest, own_tdf in zip(self.all, self._own_tdfs, strict=True)
            )

    async def suspend(self) -> int:
        """Puts all guests away, whose clocks are held, one after the other; see `port.Guests.suspend`."""
        written = 0
        try:
            for guest in self.all:
                written += await guest.suspend()
        except BaseException:
            await self.resume()
            raise
        return written

    async def resume(self) -> None:
        """Lets all guests go on as they were before `suspend`; see `port.Guests.resume`."""
        for guest, core in zip(self.all, cores.take(len(self.all)), strict=True):
            await guest.resume(core)

    async def stop_clocks(self) -> None:
        """Stops each clock where it is."""
        await all_of(guest.hold() for guest in self.all)

    async def hold(self) -> None:
        """Stops virtual time: the guests that are behind come to where the furthest one stands."""
        await self.stop_clocks()
        latest_ns = self.latest_ns()
        if self.now_ns() < latest_ns:
            await self.run_until(latest_ns, None)

    async def set_tdf(self, tdf: Fraction) -> None:
        """Changes the TDF of the run, and that of each guest that has none of its own; held clocks stay held."""
        tdfs = [own_tdf or tdf for own_tdf in self._own_tdfs]
        async with self._ordering:
            since_ns = self._this_moment_ns()
            await all_of(guest.set_tdf(own, since_ns) for guest, own in zip(self.all, tdfs, strict=True))

    async def set_max_speed(self, speed: Fraction | None) -> None:
        """Changes how fast virtual time may run at most; held clocks stay held.

        Raises:
            GuestError: A guest does not answer.
        """
        async with self._ordering:
            since_ns = self._this_moment_ns()
            await all_of(guest.set_max_speed(speed, since_ns) for guest in self.all)

    async def run_until(self, at_ns: int, tdf: Fraction | None) -> None:
        """Lets virtual time go on to exactly `at_ns`, and waits for that; a guest that is past it stays where it is.

        Args:
            at_ns: Since the run's virtual 0.
            tdf: The run's; None for the one that each guest had.

        Raises:
            GuestError: A guest ended, or was released to run on.
        """
        since_ns = self._this_moment_ns()

        async def reach(guest: kind.Guest, goal_ns: int, pace: Fraction | None) -> None:
            try:
                await guest.run_until(goal_ns, pace, since_ns)
            except ValueError:
                await guest.hold()

        await all_of(
            reach(guest, guest.zero_ns + at_ns, tdf and (own_tdf or tdf))
            for guest, own_tdf in zip(self.all, self._own_tdfs, strict=True)
        )

    async def step(self, tdf: Fraction) -> None:
        """Lets virtual time go on to the next timer of any guest, serves that, and holds.

        Raises:
            GuestError: No guest has a timer set, or one does not come to rest.
        """
        due_ns = await self.next_timer_ns()
        if due_ns == NEVER_NS:
            raise GuestError("no guest has a timer set: nothing will happen by itself")
        await self.run_until(due_ns, tdf)

    async def next_timer_ns(self) -> int:
        """When the next timer of any guest expires, of guests that stand still; `NEVER_NS` when none is set.

        Raises:
            GuestError: A guest does not come to rest.
        """
        going = [self._guests[number] for number in sorted(self._going)]
        timers_ns = await all_of(guest.next_timer_ns() for guest in going)
        due = [timer - guest.zero_ns for guest, timer in zip(going, timers_ns, strict=True) if timer != NEVER_NS]
        return min(due, default=NEVER_NS)

    async def follow(self, told: Callable[[int, FromAgent | Event], None]) -> list[Finished]:
        """Takes what the agents say until all have finished.

        Args:
            told: Gets every message but the last of each guest, with the guest's number.

        Returns:
            The last message of each.

        Raises:
            GuestError: A guest ended, was stopped from outside, or its agent cannot go on; it names guest and instant.
        """

        names = Names(self._planned)

        async def hear(number: int, guest: kind.Guest) -> Finished:
            try:
                while not isinstance(message := await guest.receive(), Finished):
                    if isinstance(message, HandsOver):
                        await self._boot_anew(number, message)
                        continue
                    try:
                        names.check(message)
                        told(number, message)
                    except ValueError as error:
                        raise GuestError(f"guest {guest.name}: the agent said what cannot be: {error}") from error
            except GuestError as error:
                raise GuestError(f"{self._why(error)}, at {self._now_ns(number) / 1e9:.6f} virtual seconds") from error
            self._going.discard(number)
            return message

        hearing = all_of(hear(number, guest) for number, guest in self._guests.items())
        return await beside(hearing, self._watch())

    async def _boot_anew(self, number: int, left: HandsOver) -> None:
        """Has another kernel go on with the run in a guest whose node boots; the other guests wait for it."""
        guest, wire = self._guests[number], self._wire
        if wire is not None and not wire.is_away(number):
            raise GuestError(
                f"guest {guest.name}: the agent said what cannot be: it hands over, and its clock does not"
            )

        def take_part(zero_ns: int) -> None:
            if wire is not None:
                wire.go_on(number, zero_ns)

        await guest.boot_anew(left, take_part)

    def _why(self, error: GuestError) -> str:
        """What is known of an error."""
        full = None if self._wire is None else self._wire.full_way()
        if full is None:
            return str(error)
        wire = self._planned.wires[full // 2]
        sender, receiver = wire.ends if full % 2 == 0 else wire.ends[::-1]
        size = wire.ring_bytes[full % 2]
        return (
            f"the wire of {wire.link or 'the agents'} from guest {sender.guest} to {receiver.guest} is full: more than "
            f"{size} bytes are under way, as its receiver does not keep up; give the link a rate, or raise tdf"
        )

    async def _watch(self) -> None:
        """Fails once guests would wait for each other for ever.

        That is when one was stopped from outside, as by SIGSTOP, or when a program that took over a guest's kernel has
        written over the memory that they share.
        """
        before, looks = None, 0
        while self._wire is not None:
            await asyncio.sleep(WATCH_HOST_S)
            for number, guest in self._guests.items():
                if guest.is_stopped():
                    now_s = self._now_ns(number) / 1e9
                    raise GuestError(f"guest {guest.name} was stopped by a signal, at {now_s:.6f} virtual seconds")
            if self._wire.is_overwritten():
                raise GuestError(f"the memory by which guests send each other frames {OVERWRITTEN}")
            now = self._wire.standstill()
            is_still = now is not None and now == before and not any(guest.is_at_work() for guest in self.all)
            before, looks = now, looks + 1 if is_still else 0
            if looks >= STANDSTILL_LOOKS:
                raise GuestError(
                    f"guests wait for each other and none goes on: the memory that they share {OVERWRITTEN}"
                )

    async def send(self, message: ToAgent) -> None:
        """Says the same to all agents."""
        for guest in self.all:
            await guest.send(message)

    async def halt(self) -> None:
        """Powers all guests off in good order; use `close` afterwards all the same."""
        await all_of(guest.halt() for guest in self.all)

    def kill(self) -> None:
        """Ends all guests at once; what waits for them notices."""
        for guest in self.all:
            guest.kill()

    async def close(self) -> None:
        """Ends all guests, and everything in their jails with them."""
        self.kill()
        for guest in self.all:
            await guest.close()
        if self._wire is not None:
            self._wire.close()
        self._images.close()
