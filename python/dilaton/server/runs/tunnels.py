"""Machines outside in the networks of runs, by WireGuard that ends at this server: a UDP port of it for each.

The process of the server answers them, as that of `dilaton vpn` does where that is typed: what comes by such a port is
taken only from who has the keys of the one tunnel (`service/vpn/`), which nobody has any more once it is over.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from socket import socket as Socket
from typing import Any

from dilaton.host.errors import GuestError
from dilaton.host.tasks import first_of
from dilaton.run.control.answers import TUNNEL_OPEN
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import take_over
from dilaton.run.control.session_client import over
from dilaton.run.control.terminal_client import Terminal
from dilaton.server.access.secrets import identity
from dilaton.service.vpn.configuration import Way
from dilaton.service.vpn.gateway import Gateway


@dataclass(frozen=True)
class Tunnel:
    """A machine outside in the network of a run.

    Attributes:
        identity: Its own.
        run, person: Of which run, and whose it is.
        way: How the lab is entered.
        port: Where its datagrams come.
    """

    identity: str
    run: str
    person: str
    way: Way
    port: int


class Tunnels:
    """All that there are; in one event loop."""

    def __init__(self) -> None:
        """There is none yet."""
        self._open: dict[str, tuple[Tunnel, asyncio.Task[None]]] = {}

    def of(self, run: str, person: str) -> list[Tunnel]:
        """Those of a person into a run."""
        return [tunnel for tunnel, _ in self._open.values() if (tunnel.run, tunnel.person) == (run, person)]

    async def begin(
        self,
        run: str,
        person: str,
        run_dir: Path,
        gateway: Gateway,
        port: int,
        allowed: Coroutine[Any, Any, Any],
        ended: Callable[[Tunnel, str], Coroutine[Any, Any, None]],
        undo: contextlib.ExitStack,
    ) -> Tunnel:
        """Has somebody in the network of a run, until the run ends or they may not be there any more.

        Args:
            run: The run.
            person: Who.
            run_dir: The directory of the run.
            gateway: What answers them.
            port: Where their datagrams come.
            allowed: Ends once they may not be there any more.
            ended: Is told of the end of the tunnel, with what the node said was wrong.
            undo: What is closed at the end, also where the tunnel does not begin.

        Raises:
            ControlError: no run goes on there, or it refuses.
        """
        tunnel = Tunnel(identity(), run, person, gateway.way, port)
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        async def carry() -> None:
            wrong = ""
            try:
                wrong = await _carried(run_dir, gateway, begun, allowed)
            except (ControlError, GuestError) as error:
                wrong = str(error)
                if not begun.done():
                    begun.set_exception(error)
            except Exception as error:
                if begun.done():
                    raise
                # Who asked for it hears what is wrong with us.
                begun.set_exception(error)
            finally:
                allowed.close()
                undo.close()
                self._open.pop(tunnel.identity, None)
                if not begun.cancel() and begun.exception() is None:
                    await ended(tunnel, wrong)

        self._open[tunnel.identity] = tunnel, asyncio.create_task(carry())
        await begun
        return tunnel

    async def end(self, identity: str) -> None:
        """Ends one, unless that has ended by itself."""
        if (found := self._open.get(identity)) is None:
            return
        task = found[1]
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def close(self) -> None:
        """Ends all."""
        await asyncio.gather(*map(self.end, list(self._open)))


async def _carried(
    run_dir: Path, gateway: Gateway, begun: asyncio.Future[None], allowed: Coroutine[Any, Any, Any]
) -> str:
    """Carries packets until the session ends; what its program said was wrong."""

    @contextlib.asynccontextmanager
    async def line() -> AsyncIterator[Socket]:
        addresses = list(map(str, gateway.way.addresses))
        yield (await asyncio.to_thread(take_over, run_dir, TUNNEL_OPEN, node=gateway.way.node, addresses=addresses))[0]

    async with over(line(), Terminal) as session:
        gateway.session = session
        begun.set_result(None)
        await first_of(gateway.carry(session), gateway.keep_alive(), allowed)
        return session.errors
