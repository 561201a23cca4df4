"""What a guest of any kind can be asked on this machine, beyond what runs ask of it.

A kernel in user space is one kind (`guest.py`). Another one, such as a whole virtual machine, has these methods too,
and is started where `Guests.boot` starts kernels.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Protocol

from dilaton.host import port
from dilaton.host.here.guests.cores import Core
from dilaton.host.messages import Event, FromAgent, HandsOver
from dilaton.host.orders import Orders


class Guest(port.Guest, Protocol):
    """A running guest. Instants are nanoseconds of its own clock, since its start."""

    @property
    def zero_ns(self) -> int:
        """The run's virtual 0, from `arm` on."""

    async def build(self, progress: Callable[[port.Progress], None]) -> None:
        """Lets the agent make its part of the plan in the run directory."""

    async def arm(self, date_ns: int) -> None:
        """Holds the clock, says where virtual 0 is, and arms the schedule; `date_ns` is CLOCK_REALTIME there."""

    def virtual_ns(self) -> int:
        """Virtual now."""

    def is_held(self, host_ns: int) -> bool:
        """Whether virtual time stands still at `host_ns` of the host's monotonic clock."""

    def pace(self) -> Fraction | None:
        """The TDF that its clock follows now; None while it is held."""

    async def order(self, orders: Orders) -> None:
        """Gives the clock its orders, and waits until it has taken them over."""

    async def hold(self) -> None:
        """Stops virtual time where it is."""

    async def set_tdf(self, tdf: Fraction, since_host_ns: int | None = None) -> None:
        """Changes the pace of a running clock; a held one stays held."""

    async def set_max_speed(self, speed: Fraction | None, since_host_ns: int | None = None) -> None:
        """Changes how fast virtual time may run at most; a held clock stays held."""

    async def run_until(self, virtual_ns: int, tdf: Fraction | None = None, since_host_ns: int | None = None) -> int:
        """Lets virtual time go on to exactly `virtual_ns`, and returns where it stands then.

        Raises:
            ValueError: The instant is past.
        """

    def is_at_work(self) -> bool:
        """Whether its kernel runs, or would if the host let it; not while it waits for other guests."""

    async def next_timer_ns(self) -> int:
        """When the next timer of a guest that stands still expires; `NEVER_NS` when none is set."""

    async def receive(self) -> FromAgent | Event:
        """The agent's next message.

        Raises:
            GuestError: The guest ended, or the agent says that it cannot go on.
        """

    async def boot_anew(self, left: HandsOver, take_part: Callable[[int], None]) -> None:
        """Has another kernel go on with the run, which the present one has left to it; see `Guest.boot_anew`."""

    async def suspend(self) -> int:
        """Puts it away, whose clock is held: memory to disk, and its core free; returns the bytes of its memory.

        Raises:
            GuestError: It cannot be put away, and goes on as it was. So with an OSError of the disk.
        """

    async def resume(self, core: Core) -> None:
        """Goes on as it was, on that core, which it holds; does nothing if it is not put away.

        Raises:
            OSError: Its memory cannot be brought back, and it is lost.
        """

    async def halt(self) -> None:
        """Powers it off in good order."""

    def kill(self) -> None:
        """Ends it at once; what waits for it notices."""

    async def close(self) -> None:
        """Ends it at once, and everything that it has made with it."""
