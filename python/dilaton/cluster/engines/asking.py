"""Machines that are asked what they have before they are told of a run: what engines have in common whose machines are
other hosts than this one.

An agent is started on each, says what its machine has (`having.py`), and waits for its order. It connects to the hub by
itself. What ends it is what ends every agent: the end of its standard input, which whatever has started it passes on,
or of its connection. From its first word on it is to be heard of as any other (`beats.py`); how long that takes is a
matter of whatever starts it, a login or a queue.
"""

from __future__ import annotations

import asyncio
import re
import socket
from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.cluster.beats import watch
from dilaton.cluster.engines import having
from dilaton.cluster.engines.engine import Host, Order
from dilaton.cluster.engines.having import MARK, Has, Needs
from dilaton.cluster.engines.processes import Agents, Processes
from dilaton.cluster.values import from_json
from dilaton.host.errors import GuestError, HostLacksError, MachineLostError
from dilaton.host.tasks import all_of, beside

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

FIRST_BEATS_MAX = 300
"""In so many beats the agent of a host says its first word: ssh gives up a host by itself much earlier."""

ANY_PORT = 9
"""To which nothing is sent: by which of this machine's addresses a host is reached is asked of the kernel."""


class Asking(ABC):
    """An engine but for which machines there are and how an agent is started on one."""

    def __init__(self, hub: str, agents: Agents | None = None) -> None:
        """Starts nothing yet.

        Args:
            hub: Where the hub listens, with a port or without; empty: where hosts reach this machine.
            agents: The agents; None: processes of this machine's, which reach others.
        """
        self._hub = hub
        self._agents = agents or Processes()

    @property
    @abstractmethod
    def names(self) -> Sequence[str]:
        """Of the machines."""

    @property
    @abstractmethod
    def fix(self) -> str:
        """The command that shows what they have."""

    @abstractmethod
    def _command(self, name: str) -> Sequence[str]:
        """What starts an agent on a machine, and is it as far as its standard streams are concerned."""

    @abstractmethod
    def _reached_at(self, name: str) -> str | None:
        """The name or address at which a machine is reached; None: it is this one."""

    def address(self) -> str:
        """See `Engine`.

        Raises:
            GuestError: Hosts reach this machine by no address, or by several.
        """
        if self._hub:
            return self._hub if re.search(r"(\]|^[^:]*):\d+$", self._hub) else f"{_bracketed(self._hub)}:0"
        reached = (self._reached_at(name) for name in self.names)
        found = {_address_to(name): name for name in reached if name is not None}
        if len(found) > 1:
            raise GuestError(
                f"hosts reach this machine by several addresses: {', '.join(found)}; set DILATON_HUB to one for all"
            )
        return f"{_bracketed(next(iter(found), '127.0.0.1'))}:0"

    async def look(self, needed: Needs) -> list[Has | GuestError]:
        """What each host has, or why that is not known; agents wait for orders then."""
        return await all_of(self._look(name, needed) for name in self.names)

    async def _look(self, name: str, needed: Needs) -> Has | GuestError:
        try:
            await self._agents.start(name, self._command(name))
            await self._agents.tell(name, needed)
            hearing = self._agents.hear(name, MARK)
            there, printed = partial(self._agents.there, name), partial(self._agents.printed, name)
            heard = await beside(hearing, watch(name, there, printed, FIRST_BEATS_MAX))
            return from_json(Has, heard)
        except ValueError as error:
            return GuestError(f"it said what no host agent says, or one of another version: {error}")
        except GuestError as error:
            return error

    async def hosts(self, planned: Plan, *, jailed: bool) -> Sequence[Host]:
        """See `Engine`: each has what the plan needs.

        Raises:
            MachineLostError: An agent was lost before it said what its host has, which may be all that is needed.
        """
        needed = having.needs(planned, jailed=jailed)
        here, found = await asyncio.gather(asyncio.to_thread(having.has, needed), self.look(needed))
        wrong = []
        for name, there in zip(self.names, found, strict=True):
            if isinstance(there, MachineLostError):
                raise MachineLostError(name, f"{name} did not join the run: {there}")
            wrong += [f"{name}: {why}" for why in having.refusals(needed, here, there, drive=planned.time.drive)]
        if wrong:
            raise HostLacksError("\n".join(wrong), self.fix)
        return [
            Host(name, there.memory_bytes)
            for name, there in zip(self.names, found, strict=True)
            if isinstance(there, Has)
        ]

    def directory(self, number: int, run_dir: Path) -> Path | None:
        """See `Engine`: each finds a place of its own."""
        return None

    async def start(self, host: Host, order: Order) -> None:
        """See `Engine`: it is there and waits."""
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


def _address_to(name: str) -> str:
    """The address of this machine from which a host is reached.

    Raises:
        GuestError: That is not known.
    """
    try:
        family, kind, _, _, address = socket.getaddrinfo(name, ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as asking:
            asking.connect(address)
            return str(asking.getsockname()[0])
    except OSError as error:
        raise GuestError(
            f"{name}: by which address it reaches this machine is not known ({error.strerror}); set DILATON_HUB to it"
        ) from error


def _bracketed(address: str) -> str:
    return f"[{address.strip('[]')}]" if ":" in address else address
