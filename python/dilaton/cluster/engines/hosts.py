"""Hosts by their names: a host agent is started on each by ssh, or whatever does as it does.

Of a host nothing is needed but that Dilaton is installed there, and that this user may start it without being asked for
a password. An agent says what its machine has before it is told of a run (`having.py`), and connects to the hub by
itself. What ends it is what ends every agent: the end of its standard input, which ssh passes on, or of its connection.
"""

from __future__ import annotations

import asyncio
import re
import socket
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.cluster.engines import having
from dilaton.cluster.engines.engine import Host, Order
from dilaton.cluster.engines.having import MARK, Has, Needs
from dilaton.cluster.engines.processes import Processes
from dilaton.cluster.values import from_json
from dilaton.host.errors import GuestError, HostLacksError

if TYPE_CHECKING:
    from dilaton.plan.model import Plan

NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9_:\[][A-Za-z0-9_.:%\[\]-]*")
"""What names a host: as ssh takes it, and never one of its options."""

THIS = "localhost"
"""The host that is this machine, where nothing is needed to start an agent."""

ANSWER_HOST_S_MAX = 60.0
"""In which a host says what it has: ssh gives up by itself much earlier, and digests take milliseconds."""

ANY_PORT = 9
"""To which nothing is sent: by which of this machine's addresses a host is reached is asked of the kernel."""


@dataclass(frozen=True)
class Way:
    """How hosts are reached.

    Attributes:
        shell: The command that executes another on a host, as `ssh` does: a host's name and a line for a shell follow.
        program: Dilaton's on the hosts, as words for a shell.
        hub: Where the hub listens, an address of this machine, with a port or without; empty: where hosts reach it.
    """

    shell: Sequence[str]
    program: str
    hub: str


class Hosts:
    """The engine of hosts that are named."""

    def __init__(self, names: Sequence[str], way: Way) -> None:
        """Starts nothing yet.

        Raises:
            ValueError: One of them cannot be a host, or is named twice.
        """
        for number, name in enumerate(names):
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r}: not the name of a host, such as ws1, alice@ws1 or 192.0.2.7")
            if name in names[:number]:
                raise ValueError(f"{name}: named twice")
        self._names, self._way = names, way
        self._agents = Processes()

    def address(self) -> str:
        """See `Engine`.

        Raises:
            GuestError: Hosts reach this machine by no address, or by several.
        """
        if self._way.hub:
            return self._way.hub if re.search(r"(\]|^[^:]*):\d+$", self._way.hub) else f"{_bracketed(self._way.hub)}:0"
        found = {_address_to(name): name for name in self._names if name != THIS}
        if len(found) > 1:
            raise GuestError(
                f"hosts reach this machine by several addresses: {', '.join(found)}; set DILATON_HUB to one for all"
            )
        return f"{_bracketed(next(iter(found), '127.0.0.1'))}:0"

    async def look(self, needed: Needs) -> list[Has | str]:
        """What each host has, or why that is not known; agents wait for orders then."""
        found = await asyncio.gather(*(self._ask(name, needed) for name in self._names), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException) and not isinstance(each, GuestError):
                raise each
        return [str(each) if isinstance(each, BaseException) else each for each in found]

    async def _ask(self, name: str, needed: Needs) -> Has:
        remote = [*self._way.shell, name, f"{self._way.program} cluster host-agent"]
        here = [sys.executable, "-m", "dilaton.cluster.agent", "--say"]
        await self._agents.start(name, here if name == THIS else remote)
        await self._agents.tell(name, needed)
        try:
            async with asyncio.timeout(ANSWER_HOST_S_MAX):
                return from_json(Has, await self._agents.hear(name, MARK))
        except TimeoutError:
            raise GuestError(f"nothing was heard for {ANSWER_HOST_S_MAX:g} s") from None
        except ValueError as error:
            raise GuestError(f"it said what no host agent says, or one of another version: {error}") from error

    async def hosts(self, planned: Plan, *, jailed: bool) -> Sequence[Host]:
        """See `Engine`: each has what the plan needs."""
        needed = having.needs(planned, jailed=jailed)
        here, found = await asyncio.gather(asyncio.to_thread(having.has, needed), self.look(needed))
        wrong = []
        for name, there in zip(self._names, found, strict=True):
            wrong += [f"{name}: {why}" for why in having.refusals(needed, here, there, drive=planned.time.drive)]
        if wrong:
            raise HostLacksError("\n".join(wrong), f"dilaton cluster status {' '.join(self._names)}")
        return [
            Host(name, there.memory_bytes)
            for name, there in zip(self._names, found, strict=True)
            if not isinstance(there, str)
        ]

    def directory(self, number: int, run_dir: Path) -> Path | None:
        """See `Engine`: each finds a place of its own."""
        return None

    async def start(self, host: Host, order: Order) -> None:
        """See `Engine`: it is there and waits."""
        await self._agents.tell(host.name, order)

    async def ended(self, host: Host) -> str:
        """See `Engine`."""
        return await self._agents.ended(host.name)

    async def stop(self, lost: Sequence[Host] = ()) -> None:
        """See `Engine`."""
        await self._agents.stop([host.name for host in lost])


def _address_to(name: str) -> str:
    """The address of this machine from which a host is reached."""
    host = name.rpartition("@")[2].strip("[]")
    try:
        family, kind, _, _, address = socket.getaddrinfo(host, ANY_PORT, type=socket.SOCK_DGRAM)[0]
        with socket.socket(family, kind) as asking:
            asking.connect(address)
            return str(asking.getsockname()[0])
    except OSError as error:
        raise GuestError(
            f"{name}: by which address it reaches this machine is not known ({error.strerror}); set DILATON_HUB to it"
        ) from error


def _bracketed(address: str) -> str:
    return f"[{address.strip('[]')}]" if ":" in address else address
