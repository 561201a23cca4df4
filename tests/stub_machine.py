"""A machine without a kernel, behind the same port as any other: its guests only say that programs start and end.

Each program takes a millisecond of a virtual time that costs nothing, one after the other; programs in the background
go on until the run ends. What is tested with it is what stands on the port: the life of a run, its record, its control.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path

from dilaton.host.counters import Counters, Wires
from dilaton.host.errors import GuestError, MachineLostError
from dilaton.host.identity import Identity
from dilaton.host.messages import Event, Exited, Finished, FromAgent, Outcome, Started, Stop, ToAgent
from dilaton.host.orders import Orders
from dilaton.host.port import Guest, Progress
from dilaton.host.sessions.frames import Request
from dilaton.host.sessions.session import Session
from dilaton.host.sessions.streams import Streams
from dilaton.plan.alone import Alone
from dilaton.plan.model import Plan
from tests import stub_lines

STEP_NS = 1_000_000


@dataclass
class StubMachine:
    """The machine, and what its programs do.

    Attributes:
        statuses: With which programs exit, by name; 0 where nothing is said.
        endless: A program that goes on until it is stopped.
        dies_at_ns: The virtual instant at which the guest ends by itself.
        loses: The one of several machines that is lost before guests have booted.
        guests: What was booted.
    """

    statuses: Mapping[str, int] = field(default_factory=dict)
    endless: str = ""
    dies_at_ns: int | None = None
    loses: str | None = None
    guests: list[StubGuests] = field(default_factory=list)
    own_places: tuple[Path, ...] = ()
    parts_place: Path = Path("/stub")

    async def boot(
        self, planned: Plan, run_dir: Path, *, jailed: bool, disk_bytes: int, progress: Callable[[Progress], None]
    ) -> StubGuests:
        if self.loses is not None:
            raise MachineLostError(self.loses, f"{self.loses}: gone")
        progress(Progress(1, 1, "nodes"))
        self.guests.append(guests := StubGuests(planned, self))
        for guest in guests.all:
            await guest.streams.open()
        return guests

    @contextlib.asynccontextmanager
    async def alone(self, alone: Alone, request: Request) -> AsyncIterator[tuple[Guest, Session]]:
        raise GuestError("a stub runs no commands")
        yield


class StubGuest:
    """One guest: a clock that its run moves."""

    kernel = "0.0-stub"

    def __init__(self, name: str) -> None:
        self.name = name
        self.now_ns = 0
        self.streams, far_fd = Streams.of_guest()
        stub_lines.serve(far_fd)
        self.told: list[ToAgent] = []
        self.stopping = asyncio.Event()

    def reached_ns(self) -> int:
        return self.now_ns

    def counters(self) -> Counters:
        return Counters(virtual_ns=self.now_ns, reads=1)

    def is_stopped(self) -> bool:
        return False

    async def send(self, message: ToAgent) -> None:
        self.told.append(message)
        if isinstance(message, Stop):
            self.stopping.set()


class StubGuests:
    """The guests of a plan, whose programs are all in the first: what it does, and the orders that clocks follow."""

    def __init__(self, planned: Plan, machine: StubMachine) -> None:
        self._planned, self._machine = planned, machine
        self.all = [StubGuest(guest.name) for guest in planned.guests]
        self._guest = self.all[0]
        self._orders = Orders(None)
        self._moved = asyncio.Condition()
        self.is_closed = False
        self.stopped_while_held: bool | None = None
        """Whether virtual time stood when all were told to stop."""

    def homes(self) -> tuple[str, ...]:
        return ()

    def identity(self) -> Identity:
        return Identity("stub", "0" * 64)

    def pace(self) -> Fraction | None:
        return self._orders.tdf

    def disks(self) -> dict[str, int]:
        return {}

    async def suspend(self) -> int:
        return 0

    async def resume(self) -> None:
        pass  # nothing is put away

    def wires(self) -> Wires | None:
        return None

    def look(self) -> tuple[int, bool]:
        return self._guest.now_ns, self.is_held()

    def latest_ns(self) -> int:
        return self._guest.now_ns

    def is_held(self) -> bool:
        return self._orders.tdf is None or self._guest.now_ns == self._orders.end_ns

    async def arm(self, date_ns: int) -> None:
        await self.hold()

    async def order(self, orders: Orders) -> None:
        async with self._moved:
            self._orders = orders
            self._moved.notify_all()

    async def hold(self) -> None:
        await self.order(Orders(None))

    stop_clocks = hold

    async def set_tdf(self, tdf: Fraction) -> None:
        await self.order(Orders(self._orders.tdf and tdf, end_ns=self._orders.end_ns))

    async def set_max_speed(self, speed: Fraction | None) -> None:
        pass  # it takes no host time anyhow

    async def run_until(self, at_ns: int, tdf: Fraction | None) -> None:
        await self.order(Orders(tdf or Fraction(1), end_ns=at_ns))
        async with self._moved:
            await self._moved.wait_for(self.is_held)

    async def step(self, tdf: Fraction) -> None:
        await self.run_until(self._guest.now_ns + STEP_NS, tdf)

    async def _reach(self, at_ns: int) -> None:
        """Lets virtual time go on to `at_ns`, as far as orders allow."""
        async with self._moved:
            while self._guest.now_ns < at_ns:
                await self._moved.wait_for(lambda: not self.is_held())
                end_ns = self._orders.end_ns
                for guest in self.all:
                    guest.now_ns = at_ns if end_ns is None else min(at_ns, end_ns)
                self._moved.notify_all()
        if self._machine.dies_at_ns is not None and at_ns >= self._machine.dies_at_ns:
            raise GuestError(f"guest {self._guest.name} ended by itself")

    async def follow(self, told: Callable[[int, FromAgent | Event], None]) -> list[Finished]:
        failed = ""
        for number, program in enumerate(self._planned.processes):
            name, node = program.name, program.node
            await self._reach(number * STEP_NS)
            told(0, Started(t_ns=self._guest.now_ns, process=name, node=node, pid=2 + number))
            if program.background:
                continue
            if program.name == self._machine.endless:
                await self._guest.stopping.wait()
            await self._reach((number + 1) * STEP_NS)
            stopped = self._guest.stopping.is_set()
            status = self._machine.statuses.get(program.name, 0)
            expected = stopped or status == program.expect_exit
            failed = failed or ("" if expected else f"{program.name} exited with status {status}")
            told(
                0,
                Exited(
                    t_ns=self._guest.now_ns,
                    process=name,
                    node=node,
                    status=status,
                    expected=expected,
                    timed_out=False,
                    stopped=stopped,
                ),
            )
        outcome: Outcome = "stopped" if self._guest.stopping.is_set() else "failed" if failed else "done"
        return [Finished(t_ns=guest.now_ns, outcome=outcome, reason=failed) for guest in self.all]

    async def send(self, message: ToAgent) -> None:
        if isinstance(message, Stop):
            self.stopped_while_held = self.is_held()
        await self._guest.send(message)

    async def halt(self) -> None:
        pass  # there is nothing that runs

    def kill(self) -> None:
        self._guest.stopping.set()

    async def close(self) -> None:
        for guest in self.all:
            await guest.streams.close()
        self.is_closed = True
