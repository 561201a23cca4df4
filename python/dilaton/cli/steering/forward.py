"""`dilaton forward`: ports of this machine that lead to ports of nodes of a run that goes on."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass

from dilaton.cli.errors import BadInputError, complain, refusing
from dilaton.host.errors import GuestError
from dilaton.remote.asking import ServerError
from dilaton.run.control.errors import ControlError
from dilaton.run.control.port_client import join
from dilaton.run.control.session_client import Reached, reached
from dilaton.run.files.outputs import read_output
from dilaton.service.catalogue import find
from dilaton.service.live import AsyncRun

HERE = "127.0.0.1"
"""Where ports are listened on: nobody else's machine gets into the lab by this one."""

PORT_MAX = 65_535


@dataclass(frozen=True)
class Way:
    """A port of this machine, 0 for any that is free, and one of a node."""

    local: int
    node: str
    port: int


def ways_of(texts: Sequence[str]) -> list[Way]:
    """Reads `[LOCAL:]NODE:PORT` each.

    Raises:
        BadInputError: one is something else.
    """
    return [_way(text) for text in texts]


def _way(text: str) -> Way:
    head, _, port = text.rpartition(":")
    local, _, node = head.rpartition(":")
    if not node or not _is_port(port) or (local and not _is_port(local)) or port == "0":
        raise BadInputError(f"{text}: not [PORT:]NODE:PORT, as 8080:web:80, with ports from 1 to {PORT_MAX}")
    return Way(int(local or 0), node, int(port))


def _is_port(text: str) -> bool:
    return text.isascii() and text.isdigit() and int(text) <= PORT_MAX


@refusing(ControlError)
def forward(run: str, texts: Sequence[str]) -> int:
    """Forwards ports until Ctrl-C or the end of the run; returns the exit status.

    Args:
        run: The run.
        texts: `[LOCAL:]NODE:PORT` each.

    Raises:
        BadInputError: there is no such run or node, a text is something else, or a port here is taken.
    """
    ways = ways_of(texts)
    run_dir = find(run)
    nodes = [str(node["name"]) for node in json.loads(read_output(run_dir / "plan.json"))["nodes"]]

    async def over() -> None:
        async with contextlib.aclosing(AsyncRun(run_dir).follow()) as happenings:
            async for _ in happenings:
                pass

    return forward_here(reached(run_dir), nodes, ways, over)


def forward_here(run: Reached, nodes: Collection[str], ways: Sequence[Way], over: Callable[[], Awaitable[None]]) -> int:
    """Forwards ports until Ctrl-C or the end of the run; returns the exit status.

    Args:
        run: The run.
        nodes: Its nodes.
        ways: What is forwarded to where.
        over: Returns when the run has ended.

    Raises:
        BadInputError: there is no such node, or a port here is taken.
    """
    for way in ways:
        if way.node not in nodes:
            raise BadInputError(f"{way.node}: no such node; there are {', '.join(sorted(nodes))}")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(_forwarded(run, ways, over))
    return 0


async def _forwarded(run: Reached, ways: Sequence[Way], over: Callable[[], Awaitable[None]]) -> None:
    async with contextlib.AsyncExitStack() as stack:
        for way in ways:
            try:
                server = await asyncio.start_server(_carrying(run, way), HERE, way.local)
            except OSError as error:
                raise BadInputError(f"{HERE}:{way.local}: {error.strerror or error}") from error
            await stack.enter_async_context(server)
            print(f"{HERE}:{server.sockets[0].getsockname()[1]} -> {way.node}:{way.port}", flush=True)
        await over()


def _carrying(run: Reached, way: Way) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            if wrong := await join(run, way.node, way.port, reader, writer):
                complain(f"{way.node}:{way.port}: {wrong}")
        except ConnectionError:
            pass  # whoever has connected has gone
        except (ControlError, GuestError, ServerError) as error:
            complain(error)
        finally:
            writer.close()

    return carry
