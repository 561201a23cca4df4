"""Machines that are all this one: each has a host agent of its own, and shares nothing with the others but the host."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.cluster.engines.engine import Host, Order
from dilaton.cluster.engines.processes import Processes
from dilaton.cluster.files import archive

if TYPE_CHECKING:
    from dilaton.plan.model import Plan


class Local:
    """The engine of that many machines."""

    def __init__(self, machines: int) -> None:
        """Starts nothing yet."""
        # Each may take all of it, since they share it; that all together do not take more is seen to by the plan.
        memory_bytes = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
        self._hosts = [Host(f"machine{number}", memory_bytes) for number in range(machines)]
        self._agents = Processes()
        self._directories: list[str] = []

    def address(self) -> str:
        """See `Engine`: nobody else can reach it there."""
        return "127.0.0.1:0"

    async def hosts(self, planned: Plan, *, jailed: bool) -> Sequence[Host]:
        """See `Engine`: they are as this one."""
        return self._hosts

    def directory(self, number: int, run_dir: Path) -> Path | None:
        """See `Engine`: within the run directory, so that nothing is left elsewhere, whatever is killed."""
        return run_dir / f"machine{number}"

    async def start(self, host: Host, order: Order) -> None:
        """See `Engine`."""
        await self._agents.start(host.name, [sys.executable, "-m", "dilaton.cluster.host_agent"])
        self._directories.append(order.directory)
        await self._agents.tell(host.name, order)

    def there(self, host: Host) -> int:
        """See `Engine`."""
        return self._agents.there(host.name)

    async def ended(self, host: Host) -> str:
        """See `Engine`."""
        return await self._agents.ended(host.name)

    async def stop(self, lost: Sequence[Host] = ()) -> None:
        """See `Engine`."""
        await self._agents.stop([host.name for host in lost])
        for directory in self._directories:
            # Of an agent that was killed.
            await archive.remove(directory)
