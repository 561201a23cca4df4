"""A guest on this machine: one dilated kernel in its jail, from start to end.

**Another kernel.** A node that has a kernel to itself boots: the agent leaves the run to the next kernel
(`crates/agent/src/run/handover.rs`), and the guest goes on with that, in a jail of its own. To those who ask, it is
the same guest, whose clock stands meanwhile: the new clock counts from its own start, so its readings are shifted to
those of the first, and what the kernels before have counted is added to what it counts. Orders wait until it is there.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from typing import IO

from dilaton.host import messages
from dilaton.host.counters import Counters
from dilaton.host.errors import GuestError
from dilaton.host.here.guests import console, cores
from dilaton.host.here.guests.channel import PROTOCOL
from dilaton.host.here.guests.kernel import Placement, Wanted
from dilaton.host.here.guests.started import Started, boot_orders, depth, end_with_jail, going_behind, of_boot, started
from dilaton.host.here.guests.suspension import Suspension
from dilaton.host.here.jail import orphans
from dilaton.host.messages import Arm, Armed, Build, Event, Fatal, FromAgent, Halt, HandsOver, Hello, Ready, ToAgent
from dilaton.host.orders import NEVER_NS, Drive, Orders
from dilaton.host.patience import Patience
from dilaton.host.port import Progress
from dilaton.host.processes import descent, have_session_nice, is_at_work, is_stopped
from dilaton.host.sessions.streams import Streams
from dilaton.host.tasks import within

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

LEAD_NS = 1_000_000
"""Virtual time from the release of the clock to the run's virtual 0: room for the agent to be back in its loop."""

READING_NS_MAX = 1_000
"""How far what a kernel tells programs of its clock is from that, at most: it computes with rounded factors."""

LOOK_HOST_S = 0.0005
"""How often the clock page is looked at while something is awaited in it."""


class Guest:
    """A running guest. Make it with `start`; `close` ends it, whatever state it is in."""

    def __init__(
        self, wanted: Wanted, placement: Placement, core: cores.Core, log: IO[bytes], streams: Streams, kernel: Started
    ) -> None:
        """Use `start`."""
        self.name = wanted.name
        self.kernel = ""
        """The release of its kernel, as its agent says it."""
        self.streams = streams
        self.zero_ns = 0
        """The run's virtual 0 in the guest's time, from `arm` on."""
        self.run_dir_inside = placement.run_dir_inside
        self._wanted, self._placement = wanted, placement
        self._log, self._core = log, core
        self._orders = boot_orders(wanted)
        self._pace = Fraction(1)
        self._boots = 1
        self._shift_ns = 0
        """How far the present clock is behind the first one."""
        self._away_ns: int | None = None
        """The instant of the run at which it waits for another kernel; None: it has one."""
        self._floor_ns = -LEAD_NS
        """The instant of the run at which its kernel went on, which its clock gets to in a moment."""
        self._is_there = asyncio.Event()
        self._is_there.set()
        self._suspension = Suspension()
        self._said: list[ToAgent] = []
        """What the present agent was told since it was armed."""
        self._before: tuple[Counters, Counters] | None = None
        """What kernels before this one have counted, and what this one had when it went on."""
        self._take(kernel)
        self._forgetting = asyncio.create_task(console.forget_old(log)) if placement.run_dir is None else None
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
        async with contextlib.AsyncExitStack() as undo:
            core = core or cores.take()[0]
            undo.callback(core.free)
            log = undo.enter_context(placement.open_log(wanted.name))
            streams, streams_fd = Streams.of_guest()
            undo.push_async_callback(streams.close)
            kernel = await started(wanted, placement, core, log, streams_fd)
            undo.pop_all()
        guest = cls(wanted, placement, core, log, streams, kernel)
        try:
            await guest._greet()
        except BaseException:
            await guest.close()
            raise
        return guest

    def _take(self, kernel: Started) -> None:
        """Goes on with this kernel."""
        self.process, self.page, self.channel = kernel.process, kernel.page, kernel.channel
        self._mourning = asyncio.create_task(end_with_jail(kernel))

    async def boot_anew(self, left: HandsOver, take_part: Callable[[int], None]) -> None:
        """Ends the kernel, which has left the run to the next, and boots that, outside virtual time.

        Args:
            left: what the agent of the present kernel has said.
            take_part: called when the new kernel is ready to go on, with the instant of its own clock at the run's
                virtual 0, which may be below 0; the other guests are bound by it from the next command on.

        Raises:
            GuestError: that cannot be, or the kernel does not come up.
        """
        at_ns = self.reached_ns()
        if abs(left.t_ns - at_ns) > READING_NS_MAX:
            raise GuestError(f"guest {self.name}: its agent said at {at_ns} ns that it hands over at {left.t_ns} ns")
        self._before = (self.counters(), Counters())
        self._away_ns = at_ns
        self._is_there.clear()
        try:
            unheard, self._said = self._said[left.heard :], []
            await self._power_off()
            await self._mourning
            wanted = of_boot(self._wanted, self._boots)
            self._boots += 1
            page, channel = self.page, self.channel
            self._take(await started(wanted, self._placement, self._core, self._log, await self.streams.renew()))
            channel.close()
            page.close()
            orders, self._orders, self._shift_ns = self._orders, boot_orders(wanted), 0
            await self._greet()
            await self._build(lambda _: None, goes_on=True)
            zero_ns = await self._arm(LEAD_NS - at_ns, left.date_ns)
            self._shift_ns = self.zero_ns - zero_ns
            take_part(zero_ns)
            self._before = (self._before[0], self.page.counters(zero_ns))
            self._floor_ns, self._away_ns = at_ns, None
            await self._command(orders)
            for message in unheard:
                await self._say(message)
        finally:
            self._is_there.set()

    async def _greet(self) -> None:
        await self.channel.open()
        await self.streams.open()
        patience = Patience(BOOT_LOOKS_MAX, int(BOOT_OWN_NS_MAX / self._wanted.clock_rate))
        async with going_behind(self.process.pid, self._placement):
            hello = await self._first_message(patience)
        if hello is None:
            with contextlib.suppress(TimeoutError):
                await within(LAST_WORDS_HOST_S_MAX, self.process.wait())
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
        await self._build(progress, goes_on=False)

    async def _build(self, progress: Callable[[Progress], None], *, goes_on: bool) -> None:
        await self.channel.send(Build(run_dir=str(self.run_dir_inside), guest=self.name, goes_on=goes_on))
        while not isinstance(message := await self.receive(), Ready):
            if not isinstance(message, messages.Progress):
                raise GuestError(f"guest {self.name} said {message.tag} while it was being built")
            progress(Progress(message.done, message.total, message.what))

    async def arm(self, date_ns: int, *, awaits_program: bool = False) -> None:
        """Holds the clock, says at which of its instants the run's virtual 0 is, and arms the schedule.

        Args:
            date_ns: the guest's CLOCK_REALTIME there.
            awaits_program: whether virtual time stands still there until a program is asked for.
        """
        self.zero_ns = await self._arm(LEAD_NS, date_ns, awaits_program=awaits_program)

    async def _arm(self, lead_ns: int, date_ns: int, *, awaits_program: bool = False) -> int:
        """Holds the clock and arms the schedule; the run's virtual 0 by the clock of the present kernel."""
        await have_session_nice(self._processes()[-1], self._placement.nice)
        await self._command(replace(self._orders, tdf=None, end_ns=None))
        zero_ns = self.page.virtual_ns(time.monotonic_ns()) + lead_ns
        await self.channel.send(Arm(lead_ns=lead_ns, date_ns=date_ns, awaits_program=awaits_program))
        if not isinstance(message := await self.receive(), Armed):
            raise GuestError(f"guest {self.name} said {message.tag} instead of armed")
        self.page.begin_histograms()
        return zero_ns

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
        await self._is_there.wait()
        await self._command(orders)

    async def _command(self, orders: Orders) -> None:
        end_ns = None if orders.end_ns is None else orders.end_ns - self._shift_ns
        sequence = self.page.command(replace(orders, end_ns=end_ns))
        self._orders = replace(orders, since_host_ns=None)
        self._pace = orders.tdf or self._pace
        await self._until(lambda: self.page.applied(sequence), "take over a command")

    async def hold(self) -> None:
        """Stops virtual time where it is."""
        await self._is_there.wait()
        await self.order(replace(self._orders, tdf=None, end_ns=None))

    async def release(self, tdf: Fraction, drive: Drive | None = None, max_speed: Fraction | None = None) -> None:
        """Lets virtual time go on, with no end, on the present drive unless another is given."""
        await self._is_there.wait()
        await self.order(Orders(tdf, drive or self._orders.drive, None, max_speed))

    async def set_tdf(self, tdf: Fraction, since_host_ns: int | None = None) -> None:
        """Changes the pace of a running clock; drive, end and highest speed stay. A held one stays held."""
        await self._is_there.wait()
        if self._orders.tdf is not None:
            await self.order(replace(self._orders, tdf=tdf, since_host_ns=since_host_ns))

    async def set_max_speed(self, speed: Fraction | None, since_host_ns: int | None = None) -> None:
        """Changes how fast virtual time may run at most; a held clock stays held, and an end stays."""
        await self._is_there.wait()
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
        await self._is_there.wait()
        now_ns = self.virtual_ns()
        if virtual_ns < now_ns:
            raise ValueError(f"{virtual_ns} ns: virtual time is already at {now_ns} ns and never goes back")
        pace = tdf or self._orders.tdf or self._pace
        await self.order(replace(self._orders, tdf=pace, end_ns=virtual_ns, since_host_ns=since_host_ns))
        while not self.is_held(time.monotonic_ns()) or self._away_ns is not None:
            if self._away_ns is not None:
                await self._is_there.wait()
                continue
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
        await self._is_there.wait()
        next_ns, patience = 0, Patience(REST_LOOKS_MAX)

        def is_known() -> bool:
            nonlocal next_ns
            next_ns = self.page.read("deadline_ns")
            if next_ns <= self.page.virtual_ns(time.monotonic_ns()):
                return False
            # In this order: what was set before it rests, and still is, is final.
            rests = self.page.read("rests") == 1 and self.page.read("deadline_ns") == next_ns
            return rests or patience.ends(0)

        await self._until(is_known, "set its next timer")
        return next_ns if next_ns == NEVER_NS else next_ns + self._shift_ns

    def is_stopped(self) -> bool:
        """Whether somebody has stopped the kernel's process, as by SIGSTOP."""
        return not self._suspension.is_on and any(map(is_stopped, self._processes()))

    def is_at_work(self) -> bool:
        """Whether the kernel's process runs or would, if the host let it."""
        return any(map(is_at_work, self._processes()))

    def _processes(self) -> list[int]:
        """What was started on the host, down to the kernel."""
        return descent(self.process.pid, depth(self._placement))

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
        if self._away_ns is not None:
            return self._away_ns
        return max(self._floor_ns, self._place() + self._shift_ns - self.zero_ns)

    def counters(self) -> Counters:
        """What it has counted by now."""
        if self._before is None:
            return self.page.counters(self.zero_ns)
        before, begun = self._before
        if self._away_ns is not None:
            return before
        return before.and_then(self.page.counters(self.zero_ns - self._shift_ns), begun)

    def is_held(self, host_ns: int) -> bool:
        """Whether its virtual time stands still at `host_ns` of the host's monotonic clock."""
        return self._away_ns is not None or self.page.is_held(host_ns)

    def pace(self) -> Fraction | None:
        """The TDF that its clock follows now; None while it is held."""
        return self.page.timeline().tdf if self._away_ns is None else None

    def virtual_ns(self) -> int:
        """The guest's virtual now, nanoseconds since its start."""
        if self._away_ns is not None:
            return self.zero_ns + self._away_ns
        return max(self.zero_ns + self._floor_ns, self.page.virtual_ns(time.monotonic_ns()) + self._shift_ns)

    async def suspend(self) -> int:
        """See `kind.Guest.suspend`."""
        await self._is_there.wait()
        is_event = self._orders.drive == "event"
        written = await self._suspension.begin(self._processes()[-1], self._placement, may_interrupt=not is_event)
        self._core.free()
        return written

    async def resume(self, core: cores.Core) -> None:
        """See `kind.Guest.resume`."""
        if await self._suspension.end(core):
            self._core = core

    async def send(self, message: ToAgent) -> None:
        """Tells its agent something; that the guest is gone is noticed by `receive`."""
        await self._is_there.wait()
        await self._say(message)

    async def _say(self, message: ToAgent) -> None:
        self._said.append(message)
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
        await self._is_there.wait()
        await self._power_off()

    async def _power_off(self) -> None:
        await self.channel.send(Halt())
        await self._until(lambda: self.process.returncode is not None, "power off")

    def kill(self) -> None:
        """Ends the guest at once; what waits for it notices."""
        # What was started, warden or guard, is to live on until it has ended all that is left.
        self.page.end_guest()

    async def close(self) -> None:
        """Ends the guest at once, and everything that it has made with it."""
        self.kill()
        with contextlib.suppress(TimeoutError):
            await within(END_HOST_S_MAX, asyncio.shield(self._mourning))
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
        self._suspension.close()
        self._log.close()
        self._core.free()
