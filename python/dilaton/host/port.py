"""The port: what a machine, and the guests on it, can be asked.

Runs, and whatever shows or steers them, see guests through this page alone. What a guest is made of, a kernel in user
space or a whole virtual machine, and how its clock is reached, by memory that is shared or over a network, is known
only to what implements the port: `host/here` does so for this machine.

A guest of any kind keeps three promises: it is never past its horizon, it says what its next instant is, and frames
that it sends carry their instants. What it has counted is read as values (`counters.py`), orders to its clock are
values too (`orders.py`), and its agent speaks in messages (`messages.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dilaton.host.counters import Counters, Wires
from dilaton.host.identity import Identity
from dilaton.host.messages import Event, Finished, FromAgent, ToAgent
from dilaton.host.orders import Orders

if TYPE_CHECKING:
    # A run of one command needs no models, which take longer to import than it does to run.
    from dilaton.host.sessions.frames import Request
    from dilaton.host.sessions.session import Session
    from dilaton.host.sessions.streams import Sessions
    from dilaton.plan.alone import Alone
    from dilaton.plan.model import Plan


LEFT_OUT_FILE = "left-out.txt"
"""In the run directory: which files of guests are not there, a line each, and why. It is there if there is a line."""


@dataclass(frozen=True)
class Progress:
    """How far a guest is built: `done` of `total` of `what` are up."""

    done: int
    total: int
    what: str


class Guest(Protocol):
    """A guest of any kind, as a run sees it."""

    @property
    def name(self) -> str:
        """As in the plan."""

    @property
    def kernel(self) -> str:
        """The release of its kernel."""

    @property
    def streams(self) -> Sessions:
        """The line of the sessions in it."""

    def reached_ns(self) -> int:
        """The latest reading of its clock, since the run's virtual 0: `Counters.virtual_ns` alone, which costs less."""

    def counters(self) -> Counters:
        """What it has counted by now."""

    def is_stopped(self) -> bool:
        """Whether somebody has stopped it from outside, as by SIGSTOP."""

    async def send(self, message: ToAgent) -> None:
        """Tells its agent something. Whether the guest is still there is seen by who follows it."""


class Clocks(Protocol):
    """The clocks of all guests, as one. Instants are since the run's virtual 0; the TDF is the run's."""

    def look(self) -> tuple[int, bool]:
        """Virtual now, which is that of the guest furthest behind, and whether virtual time stands still there."""

    def latest_ns(self) -> int:
        """Virtual now of the guest that is furthest ahead."""

    def is_held(self) -> bool:
        """Whether virtual time stands still in all of them."""

    async def order(self, orders: Orders) -> None:
        """Gives all clocks their orders, and waits until they have taken them over.

        Raises:
            GuestError: A guest does not answer.
        """

    async def hold(self) -> None:
        """Stops virtual time, at one instant in all guests."""

    async def set_tdf(self, tdf: Fraction) -> None:
        """Changes the TDF of guests that have none of their own; held clocks stay held."""

    async def set_max_speed(self, speed: Fraction | None) -> None:
        """Changes how fast virtual time may run at most; held clocks stay held."""

    async def run_until(self, at_ns: int, tdf: Fraction | None) -> None:
        """Lets virtual time go on to exactly `at_ns`, and waits for that.

        Args:
            at_ns: A guest that is past it stays where it is.
            tdf: None for the one that each guest had.

        Raises:
            GuestError: A guest ended, or was released to run on.
        """

    async def step(self, tdf: Fraction) -> None:
        """Lets virtual time go on to the next timer of any guest, serves that, and holds.

        Raises:
            GuestError: No guest has a timer set, or one does not come to rest.
        """


class Guests(Clocks, Protocol):
    """The guests of a run, built, in the order of the plan. `close` ends them, in whatever state they are."""

    @property
    def all(self) -> Sequence[Guest]:
        """Each of them."""

    def homes(self) -> Sequence[str]:
        """The name of the machine that each is on; empty: all are on this one."""

    def identity(self) -> Identity:
        """Which kernel they run; it may read the kernel's file for that."""

    def pace(self) -> Fraction | None:
        """The TDF that the first one's clock follows now; None while it is held."""

    def disks(self) -> Mapping[str, int]:
        """Open files of this process with the contents of disks, by node: what the guests have written to them so far.

        Raises:
            GuestError: They are not on this machine.
        """

    async def suspend(self) -> int:
        """Puts all guests away, whose clocks are held: memory to disk, and cores free; returns the bytes of memory.

        Raises:
            GuestError: They cannot be put away here; all go on as they were. So with an OSError of the disk.
        """

    async def resume(self) -> None:
        """Lets guests that are put away go on as they were before.

        Raises:
            OSError: Memory cannot be brought back, and the run is lost.
        """

    def wires(self) -> Wires | None:
        """What went over the wires between them so far; None where there are none."""

    async def arm(self, date_ns: int) -> None:
        """Holds all clocks and arms all schedules; virtual 0 of the run is one instant.

        Args:
            date_ns: CLOCK_REALTIME at virtual 0.

        Raises:
            GuestError: A guest cannot be armed.
        """

    async def follow(self, told: Callable[[int, FromAgent | Event], None]) -> list[Finished]:
        """Takes what the agents say until all have finished.

        Args:
            told: Gets every message but the last of each guest, with the guest's number.

        Returns:
            The last message of each.

        Raises:
            GuestError: A guest ended, was stopped from outside, or its agent cannot go on; it names guest and instant.
        """

    async def send(self, message: ToAgent) -> None:
        """Says the same to all agents."""

    async def stop_clocks(self) -> None:
        """Stops each clock where it is."""

    async def halt(self) -> None:
        """Powers all guests off in good order; use `close` afterwards all the same."""

    def kill(self) -> None:
        """Ends all guests at once; what waits for them notices."""

    async def close(self) -> None:
        """Ends all guests, and everything that they have made with them."""


class Machine(Protocol):
    """What guests run on."""

    @property
    def own_places(self) -> Sequence[Path]:
        """Where a guest in a jail has places of its own, in which nothing of the machine is seen."""

    @property
    def parts_place(self) -> Path:
        """Where a guest in a jail finds what it is made of, and nothing else."""

    async def boot(
        self, planned: Plan, run_dir: Path, *, jailed: bool, disk_bytes: int, progress: Callable[[Progress], None]
    ) -> Guests:
        """Boots the guests of a plan and lets them build their parts of it.

        Args:
            planned: It is in the run directory already.
            run_dir: Where guests read the plan and write what comes of it.
            jailed: Whether each guest is in a jail.
            disk_bytes: What the run directory may take; no file that a guest makes is larger.
            progress: Told how far each of them is.

        Raises:
            HostLacksError: The machine lacks a part.
            GuestError: A guest does not come up.
        """

    def alone(self, alone: Alone, request: Request) -> AbstractAsyncContextManager[tuple[Guest, Session]]:
        """A program in the guest of a node alone, which is gone at the end of the context, and leaves nothing.

        Raises:
            HostLacksError: The machine lacks a part.
            GuestError: The guest does not come up.
        """
