"""A guest on this machine: one dilated kernel in its jail, from start to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import IO

from dilaton.host import messages
from dilaton.host.counters import Counters
from dilaton.host.errors import GuestError
from dilaton.host.here.guests import console, cores
from dilaton.host.here.guests.channel import PROTOCOL, Channel
from dilaton.host.here.guests.kernel import Kernel, Placement, Wanted
from dilaton.host.here.jail import jail, orphans
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.messages import Arm, Armed, Build, Event, Fatal, FromAgent, Halt, Hello, Ready, ToAgent
from dilaton.host.orders import NEVER_NS, REPEATABLE_DATE_NS, Drive, Orders
from dilaton.host.patience import Patience
from dilaton.host.port import Progress
from dilaton.host.processes import descent, is_at_work, is_stopped
from dilaton.host.sessions.streams import Streams

BOOT_TDF = Fraction(1, 50)
"""Pace of a booting guest, on the work drive: the kernel counts jiffies where it does not idle, so its clock, at
whatever rate it reads, runs ahead of the host's until the guest is built."""

BOOT_LOOK_HOST_S = 0.1
"""How often a booting guest is looked at that has not spoken."""

BOOT_LOOKS_MAX = 300
"""Looks in a row that may find a booting guest where it was: half a minute, or longer where the host is busy."""

BOOT_OWN_NS_MAX = 1800 * 10**9
"""What a booting guest may count on its own clock until the agent's first word: 40 times what it takes."""

REST_LOOKS_MAX = 100
"""Looks in a row that may find a guest at work whose clock stands: 0.05 s, or longer."""

ANSWER_LOOKS_MAX = 20_000
"""Looks in a row that may find a guest where it was which has to answer a command: ten seconds, or longer."""

LAST_WORDS_HOST_S_MAX = 10.0
"""Host seconds in which a guest that will not come up may write why."""


END_HOST_S_MAX = 10.0
"""Host seconds in which a warden or guard ends what is left of a guest, which takes milliseconds."""

GUARD_DEPTH = 1
"""Generations from the process that is started without a jail, which is the kernel's guard, to the kernel."""

LEAD_NS = 1_000_000
"""Virtual time from the release of the clock to the run's virtual 0: room for the agent to be back in its loop."""

LOOK_HOST_S = 0.0005
"""How often the clock page is looked at while something is awaited in it."""


@dataclass(frozen=True)
class _Ends:
    """This machine's ends of what a guest is reached by, and what it holds here."""

    page: ClockPage
    channel: Channel
    streams: Streams
    log: IO[bytes]
    core: cores.Core


class Guest:
    """A running guest. Make it with `start`; `close` ends it, whatever state it is in."""

    def __init__(
        self, wanted: Wanted, placement: Placement, process: asyncio.subprocess.Process, ends: _Ends, boot: Orders
    ) -> None:
        """Use `start`."""
        self.name = wanted.name
        self.kernel = ""
        """The release of its kernel, as its agent says it."""
        self.process = process
        self.page, self.channel, self.streams = ends.page, ends.channel, ends.streams
        self.zero_ns = 0
        """The run's virtual 0 in the guest's time, from `arm` on."""
        self.run_dir_inside = placement.run_dir_inside
        self._jailed = placement.jailed
        self._log, self._core = ends.log, ends.core
        self._orders = boot
        self._pace = Fraction(1)
        self._mourning = asyncio.create_task(self._end_with_jail())
        self._forgetting = asyncio.create_task(console.forget_old(ends.log)) if placement.run_dir is None else None
        """What forgets the old part of a console in memory; None where it is a file of the run."""

    @classmethod
    async def start(cls, wanted: Wanted, placement: Placement, core: cores.Core | None = None) -> Guest:
        """Starts a guest's kernel, its clock at boot pace, and waits for its agent.

        Its console goes to `guest/<name>.log` in the run directory.

        Args:
            wanted: the guest.
            placement: where it runs.
            core: the core that it runs on; None: one that no guest holds.

        Raises:
            HostLacksError: when this machine lacks a part.
            GuestError: when the kernel does not come up.
        """
        seed, rate = wanted.seed, wanted.clock_rate
        boot = Orders(BOOT_TDF * rate, "work") if seed is None else Orders(Fraction(1), "event")
        async with contextlib.AsyncExitStack() as undo:
            core = core or cores.take()[0]
            undo.callback(core.free)
            with contextlib.ExitStack() as inherited:
                page = ClockPage(time.time_ns() if seed is None else REPEATABLE_DATE_NS, seed, rate)
                undo.callback(page.close)
                inherited.callback(page.close_guest_side)
                channel = Channel()
                undo.callback(channel.close)
                inherited.callback(os.close, channel.guest_fd)
                streams, streams_fd = Streams.of_guest()
                undo.push_async_callback(streams.close)
                inherited.callback(os.close, streams_fd)
                log = undo.enter_context(placement.open_log(wanted.name))
                undo.callback(orphans.end)
                page.command(boot)
                lines = (channel.guest_fd, streams_fd)
                process = await _spawned(Kernel(wanted, placement, page, lines, core.number, log), page)
            undo.pop_all()
        guest = cls(wanted, placement, process, _Ends(page, channel, streams, log, core), boot)
        try:
            await guest._greet(rate)
        except BaseException:
            await guest.close()
            raise
        return guest

    async def _end_with_jail(self) -> None:
        """Once the process on the host is gone, so is the kernel, also where that was bubblewrap's alone."""
        await self.process.wait()
        self.page.end_guest()

    async def _greet(self, clock_rate: Fraction) -> None:
        await self.channel.open()
        await self.streams.open()
        hello = await self._first_message(Patience(BOOT_LOOKS_MAX, int(BOOT_OWN_NS_MAX / clock_rate)))
        if hello is None:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.process.wait(), LAST_WORDS_HOST_S_MAX)
            raise GuestError(f"guest {self.name} did not boot: {console.last_words(self._log)}")
        if not isinstance(hello, Hello) or hello.protocol != PROTOCOL:
            raise GuestError(f"the agent of guest {self.name} speaks another protocol: rebuild it with ./dev setup")
        self.kernel = hello.kernel

    async def _first_message(self, patience: Patience) -> FromAgent | Event | None:
        """None when the guest has ended, also where what is left of its jail keeps the channel open.

        Raises:
            GuestError: when it does neither.
        """
        received = asyncio.create_task(self._hear())
        ended = asyncio.create_task(self.process.wait())
        try:
            while not received.done() and not ended.done():
                if patience.ends(self._place()):
                    raise GuestError(f"guest {self.name} is stuck: it booted, and never said anything")
                self._check_going(patience)
                await asyncio.wait({received, ended}, timeout=BOOT_LOOK_HOST_S, return_when=asyncio.FIRST_COMPLETED)
            return received.result() if received.done() else None
        finally:
            received.cancel()
            ended.cancel()

    async def build(self, progress: Callable[[Progress], None]) -> None:
        """Lets the agent make its part of the plan in the run directory.

        Raises:
            GuestError: when it cannot.
        """
        await self.send(Build(run_dir=str(self.run_dir_inside), guest=self.name))
        while not isinstance(message := await self.receive(), Ready):
            if not isinstance(message, messages.Progress):
                raise GuestError(f"guest {self.name} said {message.tag} while it was being built")
            progress(Progress(message.done, message.total, message.what))

    async def arm(self, date_ns: int) -> None:
        """Holds the clock, says at which of its instants the run's virtual 0 is, and arms the schedule.

        Args:
            date_ns: the guest's CLOCK_REALTIME at the run's virtual 0.
        """
        await self.hold()
        self.zero_ns = self.virtual_ns() + LEAD_NS
        await self.send(Arm(lead_ns=LEAD_NS, date_ns=date_ns))
        if not isinstance(message := await self.receive(), Armed):
            raise GuestError(f"guest {self.name} said {message.tag} instead of armed")
        self.page.begin_histograms()

    @property
    def orders(self) -> Orders:
        """What the clock was ordered last."""
        return self._orders

    async def order(self, orders: Orders) -> None:
        """Gives the clock its orders, and waits until it has taken them over.

        On the event drive it takes them over when the guest next idles.

        Raises:
            GuestError: when the guest does not answer.
        """
        sequence = self.page.command(orders)
        self._orders = replace(orders, since_host_ns=None)
        self._pace = orders.tdf or self._pace
        await self._until(lambda: self.page.applied(sequence), "take over a command")

    async def hold(self) -> None:
        """Stops virtual time where it is."""
        await self.order(replace(self._orders, tdf=None, end_ns=None))

    async def release(self, tdf: Fraction, drive: Drive | None = None, max_speed: Fraction | None = None) -> None:
        """Lets virtual time go on, with no end, on the present drive unless another is given."""
        await self.order(Orders(tdf, drive or self._orders.drive, None, max_speed))

    async def set_tdf(self, tdf: Fraction, since_host_ns: int | None = None) -> None:
        """Changes the pace of a running clock; drive, end and highest speed stay. A held one stays held."""
        if self._orders.tdf is not None:
            await self.order(replace(self._orders, tdf=tdf, since_host_ns=since_host_ns))

    async def set_max_speed(self, speed: Fraction | None, since_host_ns: int | None = None) -> None:
        """Changes how fast virtual time may run at most; a held clock stays held, and an end stays."""
        await self.order(replace(self._orders, max_speed=speed, since_host_ns=since_host_ns))

    async def run_until(self, virtual_ns: int, tdf: Fraction | None = None, since_host_ns: int | None = None) -> int:
        """Lets virtual time go on to exactly `virtual_ns`, where the clock stops by itself, and waits for that.

        What runs then goes on for as long as it computes, but at that instant; what sleeps stays asleep.

        Args:
            virtual_ns: nanoseconds since the guest's start, as in `virtual_ns()`.
            tdf: the pace; None for the one it has, or had when it was held.
            since_host_ns: as in `Orders`.

        Returns:
            The instant at which the clock stands: `virtual_ns`, or an earlier one when somebody held it meanwhile, or
            when the guest has finished its run and waits for the host.

        Raises:
            ValueError: the instant is past.
            GuestError: the guest ended, or was released to run on.
        """
        now_ns = self.virtual_ns()
        if virtual_ns < now_ns:
            raise ValueError(f"{virtual_ns} ns: virtual time is already at {now_ns} ns and never goes back")
        pace = tdf or self._orders.tdf or self._pace
        await self.order(replace(self._orders, tdf=pace, end_ns=virtual_ns, since_host_ns=since_host_ns))
        while not self.page.is_held(time.monotonic_ns()):
            if self.process.returncode is not None:
                raise GuestError(f"guest {self.name} has ended")
            if self._orders.end_ns is None and self._orders.tdf is not None:
                raise GuestError(f"guest {self.name} was released before it reached {virtual_ns} ns")
            await asyncio.sleep(LOOK_HOST_S)
        return self.virtual_ns()

    async def step(self, tdf: Fraction | None = None) -> int:
        """Lets virtual time go on to the guest's next timer, serves that, and holds; returns the instant.

        Raises:
            GuestError: the guest has no timer set, or does not come to rest.
        """
        deadline_ns = await self.next_timer_ns()
        if deadline_ns == NEVER_NS:
            raise GuestError(f"guest {self.name} has no timer set: nothing will happen in it by itself")
        return await self.run_until(deadline_ns, tdf)

    async def next_timer_ns(self) -> int:
        """When the next timer of a guest that stands still expires; `NEVER_NS` when none is set.

        What the last step began may still be going on, at the instant of that step, and set earlier timers than those
        that are set. So the guest is waited for until it rests; of one that computes, the next timer counts as it is.

        Raises:
            GuestError: the guest does not set a timer.
        """
        next_ns, patience = 0, Patience(REST_LOOKS_MAX)

        def is_known() -> bool:
            nonlocal next_ns
            next_ns = self.page.read("deadline_ns")
            if next_ns <= self.virtual_ns():
                return False
            # In this order: what was set before it rests, and still is, is final.
            rests = self.page.read("rests") == 1 and self.page.read("deadline_ns") == next_ns
            return rests or patience.ends(0)

        await self._until(is_known, "set its next timer")
        return next_ns

    def is_stopped(self) -> bool:
        """Whether somebody has stopped the kernel's process, as by SIGSTOP."""
        return any(map(is_stopped, self._processes()))

    def is_at_work(self) -> bool:
        """Whether the kernel's process runs or would, if the host let it."""
        return any(map(is_at_work, self._processes()))

    def _processes(self) -> list[int]:
        """What was started on the host, down to the kernel."""
        return descent(self.process.pid, jail.DEPTH if self._jailed else GUARD_DEPTH)

    def _check_going(self, patience: Patience) -> None:
        """Does not wait any longer for a guest that cannot go on.

        Raises:
            GuestError: Somebody has stopped it.
        """
        if patience.wears_thin() and self.is_stopped():
            raise GuestError(f"guest {self.name} was stopped by a signal, as by kill -STOP, and cannot answer")

    async def _until(self, condition: Callable[[], bool], what: str) -> None:
        patience = Patience(ANSWER_LOOKS_MAX)
        while not condition():
            if self.process.returncode is not None:
                raise GuestError(f"guest {self.name} has ended")
            if patience.ends(self._place()):
                raise GuestError(f"guest {self.name} does not answer: it did not {what}")
            self._check_going(patience)
            await asyncio.sleep(LOOK_HOST_S)

    def _place(self) -> int:
        """How far the guest has come, as its clock was read last; that of one that is stopped stays, on any drive."""
        return self.page.read("virtual_now_ns")

    def reached_ns(self) -> int:
        """The latest reading of its clock, since the run's virtual 0."""
        return self._place() - self.zero_ns

    def counters(self) -> Counters:
        """What it has counted by now."""
        return self.page.counters(self.zero_ns)

    def is_held(self, host_ns: int) -> bool:
        """Whether its virtual time stands still at `host_ns` of the host's monotonic clock."""
        return self.page.is_held(host_ns)

    def pace(self) -> Fraction | None:
        """The TDF that its clock follows now; None while it is held."""
        return self.page.timeline().tdf

    def virtual_ns(self) -> int:
        """The guest's virtual now, nanoseconds since its start."""
        return self.page.virtual_ns(time.monotonic_ns())

    async def send(self, message: ToAgent) -> None:
        """Tells its agent something; that the guest is gone is noticed by `receive`."""
        await self.channel.send(message)

    async def receive(self) -> FromAgent | Event:
        """The agent's next message.

        Raises:
            GuestError: when the guest ended, or the agent says that it cannot go on.
        """
        message = await self._hear()
        if message is None:
            panic = console.panic(self._log)
            raise GuestError(f"guest {self.name} ended by itself" + (f": {panic}" if panic else ""))
        if isinstance(message, Fatal):
            raise GuestError(f"guest {self.name}: {message.reason}")
        return message

    async def _hear(self) -> FromAgent | Event | None:
        try:
            return await self.channel.receive()
        except GuestError as error:
            raise GuestError(f"guest {self.name}: {error}") from error

    async def halt(self) -> None:
        """Powers the guest off in good order; use `close` afterwards all the same."""
        await self.send(Halt())
        await self._until(lambda: self.process.returncode is not None, "power off")

    def kill(self) -> None:
        """Ends the guest at once; what waits for it notices."""
        # What was started, warden or guard, is to live on until it has ended all that is left.
        self.page.end_guest()

    async def close(self) -> None:
        """Ends the guest at once, and everything that it has made with it."""
        self.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(asyncio.shield(self._mourning), END_HOST_S_MAX)
        if self.process.returncode is None:
            # Somebody has stopped it.
            self.process.kill()
        await self._mourning
        if self._forgetting is not None:
            self._forgetting.cancel()
        orphans.end()
        self.channel.close()
        await self.streams.close()
        self.page.close()
        self._log.close()
        self._core.free()


async def _spawned(kernel: Kernel, page: ClockPage) -> asyncio.subprocess.Process:
    """Starts a kernel; who gives up while it starts waits until nothing of it is left."""
    spawning = asyncio.create_task(kernel.spawn())
    try:
        return await asyncio.shield(spawning)
    except asyncio.CancelledError:
        # To cancel the start itself would kill the warden, and not what it keeps.
        page.end_guest()
        await (await spawning).wait()
        raise
