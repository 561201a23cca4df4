"""This machine, as runs see it: guests are kernels in user space, each in its jail."""

from __future__ import annotations

import contextlib
import json
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.host.errors import GuestError
from dilaton.host.here.guests import open_files
from dilaton.host.here.guests.guest import LEAD_NS, Guest
from dilaton.host.here.guests.guests import Guests
from dilaton.host.here.guests.kernel import Placement, Wanted
from dilaton.host.here.jail import jail
from dilaton.host.orders import REPEATABLE_DATE_NS
from dilaton.host.port import Progress
from dilaton.plan.alone import GUEST, Alone
from dilaton.plan.bind import Bind

if TYPE_CHECKING:
    from dilaton.host.here.memory.wire import Share
    from dilaton.host.sessions.frames import Request
    from dilaton.host.sessions.session import Session
    from dilaton.plan.model import Plan


class Here:
    """This machine."""

    own_places = jail.OWN_PLACES
    parts_place = jail.MOUNT

    def __init__(self, hidden: tuple[Path, ...] = (), share: Share | None = None, behind: int = 0) -> None:
        """Starts nothing yet.

        Args:
            hidden: Directories that guests in jails do not see.
            share: What it has of a run; None: all.
            behind: By how much nicer guests are than this process.
        """
        self._hidden, self._share, self._behind = hidden, share, behind

    async def boot(
        self, planned: Plan, run_dir: Path, *, jailed: bool, disk_bytes: int, progress: Callable[[Progress], None]
    ) -> Guests:
        """Boots the guests of a plan, one for each core at a time; see `port.Machine`."""
        of_volumes = (volume.written for node in planned.nodes for volume in node.volumes)
        written = filter(None, (*(node.written for node in planned.nodes), *of_volumes))
        archives = (Bind(os.path.dirname(path), writable=False) for path in written)
        own = (bind for node in planned.nodes for bind in node.binds)
        binds = tuple(dict.fromkeys([*own, *archives]))
        seed = planned.seed if planned.time.drive == "event" else None
        for name in _shared(planned):
            (run_dir / name).mkdir(exist_ok=True)
        placement = Placement(run_dir, jailed, binds, disk_bytes=disk_bytes, hidden=self._hidden, behind=self._behind)
        return await Guests.boot(planned, placement, seed, progress, self._share)

    @contextlib.asynccontextmanager
    async def alone(self, alone: Alone, request: Request) -> AsyncIterator[tuple[Guest, Session]]:
        """A program in the guest of a node alone, which is gone at the end of the context.

        The clock is released once the guest knows what to execute: an idle guest skips its time, minutes of it until
        the host has asked. The event drive lets in what comes from the host by itself, and only once it goes; so there
        the agent has it stand still from virtual 0 until it is asked.

        There is no run directory: the plan goes into the jail as a file in memory, the console into another. So there
        is nothing to clean up, whatever is killed when.

        Raises:
            HostLacksError: This machine lacks a part.
            GuestError: The guest does not come up, or ends while the program runs.
        """
        plan = json.dumps(alone.plan()).encode()
        placement = Placement(None, jailed=True, binds=alone.binds, files={"plan.json": plan})
        repeatable = alone.drive == "event"
        open_files.allow()
        guest = await Guest.start(Wanted(GUEST, alone.memory_bytes, seed=alone.seed if repeatable else None), placement)
        try:
            await guest.build(lambda _: None)
            if repeatable:
                await guest.arm(REPEATABLE_DATE_NS, awaits_program=True)
                await guest.release(alone.tdf, alone.drive, alone.max_speed)
                session = guest.streams.begin(request)
            else:
                # The program starts now, and virtual 0 is a moment later.
                await guest.arm(time.time_ns() + LEAD_NS)
                session = guest.streams.begin(request)
                await session.opened.wait()
                await guest.release(alone.tdf, alone.drive, alone.max_speed)
            try:
                yield guest, session
            except GuestError:
                # The program's line has ended, and with it the agent's, which tells why.
                while True:
                    await guest.receive()
            # What was written to this machine's files is still on its way there.
            await guest.halt()
        finally:
            await guest.close()


def _shared(planned: Plan) -> list[str]:
    """The directories within that of a run in which several guests write.

    Whoever makes one goes another way through its kernel than who finds it there, which shows in random numbers and
    so in instants. Which guest would be the first is the host's doing, so they are there before any guest is.
    """
    measure = planned.measure
    measures = (
        measure.outputs
        or measure.captures
        or any((measure.interfaces_period_ns, measure.tcp_period_ns, measure.nodes_period_ns))
    )
    return ["nodes", *(["measure"] if measures else []), *(["captures"] if measure.captures else [])]
