"""A kernel of a guest from its start on, with what it is reached by; a guest may have several, one after the other."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import IO

from dilaton.host.here.guests import cores
from dilaton.host.here.guests.channel import Channel
from dilaton.host.here.guests.kernel import Kernel, Placement, Wanted
from dilaton.host.here.jail import jail, orphans
from dilaton.host.here.memory.clock_page import ClockPage
from dilaton.host.orders import REPEATABLE_DATE_NS, Orders
from dilaton.host.processes import descent, have_session_nice

BOOT_TDF = Fraction(1, 50)
"""Pace of a booting guest, on the work drive: the kernel counts jiffies where it does not idle, so its clock, at
whatever rate it reads, runs ahead of the host's until the guest is built."""

BOOT_SEED_STEP = 0xD1B5_4A32_D192_ED03
"""Between the seeds of a guest's kernels: odd, and far from that between guests."""

GUARD_DEPTH = 1
"""Generations from the process that is started without a jail, which is the kernel's guard, to the kernel."""

LOOK_HOST_S = 0.01
"""How often a kernel is looked for that is to let others go first."""


@dataclass(frozen=True)
class Started:
    """A kernel that was started, with what it is reached by."""

    process: asyncio.subprocess.Process
    page: ClockPage
    channel: Channel


def boot_orders(wanted: Wanted) -> Orders:
    """What the clock of a kernel that boots is ordered."""
    return Orders(BOOT_TDF * wanted.clock_rate, "work") if wanted.seed is None else Orders(Fraction(1), "event")


def of_boot(wanted: Wanted, boots: int) -> Wanted:
    """What is wanted of the kernel that goes on in a guest after so many others: a seed of its own."""
    return wanted if wanted.seed is None else replace(wanted, seed=wanted.seed + boots * BOOT_SEED_STEP)


async def started(wanted: Wanted, placement: Placement, core: cores.Core, log: IO[bytes], streams_fd: int) -> Started:
    """A kernel that boots; `streams_fd`, its end of the stream line, is closed here."""
    seed, rate = wanted.seed, wanted.clock_rate
    with contextlib.ExitStack() as undo, contextlib.ExitStack() as inherited:
        inherited.callback(os.close, streams_fd)
        page = ClockPage(time.time_ns() if seed is None else REPEATABLE_DATE_NS, seed, rate)
        undo.callback(page.close)
        inherited.callback(page.close_guest_side)
        channel = Channel()
        undo.callback(channel.close)
        inherited.callback(os.close, channel.guest_fd)
        undo.callback(orphans.end)
        page.command(boot_orders(wanted))
        lines = (channel.guest_fd, streams_fd)
        process = await _spawned(Kernel(wanted, placement, page, lines, core.number, log), page)
        undo.pop_all()
    return Started(process, page, channel)


def depth(placement: Placement) -> int:
    """Generations from the process that is started on the host to the kernel."""
    return jail.DEPTH if placement.jailed else GUARD_DEPTH


@contextlib.asynccontextmanager
async def going_behind(pid: int, placement: Placement) -> AsyncIterator[None]:
    """Has the session of a kernel that boots be as nice as this process, as soon as there is one.

    To boot takes a core for a while, and several that do so at once would keep all else from theirs. How nice the guest
    is beyond that, it is once it has booted: few boot at once.

    Args:
        pid: The process that was started on the host.
        placement: Where the guest runs.
    """
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    begun = asyncio.create_task(_go_behind(pid, placement, nice)) if nice > 0 else None
    try:
        yield
    finally:
        if begun is not None:
            if len(descent(pid, depth(placement))) <= depth(placement):
                # There is none any more.
                begun.cancel()
            await asyncio.gather(begun, return_exceptions=True)


async def _go_behind(pid: int, placement: Placement, nice: int) -> None:
    while len(found := descent(pid, depth(placement))) <= depth(placement):
        await asyncio.sleep(LOOK_HOST_S)
    await have_session_nice(found[-1], nice)


async def end_with_jail(kernel: Started) -> None:
    """Once the process on the host is gone, so is the kernel, also where that was bubblewrap's alone."""
    await kernel.process.wait()
    kernel.page.end_guest()


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
