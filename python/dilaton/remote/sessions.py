"""Programs in nodes of a server's runs: their streams over a WebSocket, as if the run were here.

Whoever has a session reads and writes one end of a pair of sockets, as of a run of this machine; what passes the other
end is carried to the server and back. Both directions stop when the slower side does.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any

from dilaton.remote.asking import ServerError, refusal
from dilaton.remote.server import RemoteRun
from dilaton.run.control.session_client import Reached

PIECE_BYTES = 1 << 15


def reached(run: RemoteRun) -> Reached:
    """A run of a server, in whose nodes programs can be started; what goes wrong is a `ServerError`.

    Raises:
        ServerError: the package websockets is not installed.
    """
    try:
        from websockets.asyncio.client import ClientConnection, connect
        from websockets.exceptions import ConnectionClosed, InvalidHandshake, InvalidStatus
    except ImportError:
        raise ServerError("programs in nodes of a server take the package websockets: pip install websockets") from None

    def line(
        node: str, argv: Sequence[str], terminal: tuple[int, int] | None, env: Mapping[str, str]
    ) -> contextlib.AbstractAsyncContextManager[socket.socket]:
        return opened("sessions", {"node": node, "argv": list(argv), "env": dict(env), "terminal": terminal})

    def port(node: str, port: int) -> contextlib.AbstractAsyncContextManager[socket.socket]:
        return opened("sessions", {"node": node, "port": port})

    def tunnel(node: str, addresses: Sequence[str]) -> contextlib.AbstractAsyncContextManager[socket.socket]:
        return opened("tunnels", {"node": node, "addresses": list(addresses)})

    @contextlib.asynccontextmanager
    async def opened(kind: str, asked: dict[str, Any]) -> AsyncIterator[socket.socket]:
        url, headers = run.asker.websocket(f"{run.path}/{kind}")
        try:
            connection = await connect(url, additional_headers=headers, compression=None, max_size=None)
        except InvalidStatus as error:
            raise refusal(run.asker.url, error.response.status_code, bytes(error.response.body or b"")) from error
        except (OSError, InvalidHandshake) as error:
            raise ServerError(f"{run.asker.url}: {error or type(error).__name__}") from error
        async with connection:
            try:
                await connection.send(json.dumps(asked))
                said = await connection.recv()
            except ConnectionClosed as error:
                raise ServerError(f"{run.asker.url}: {error}") from error
            if said != "{}":
                problem = said.encode() if isinstance(said, str) else said
                raise refusal(run.asker.url, 409, problem)
            ours, theirs = socket.socketpair()
            ours.setblocking(False)
            reader, writer = await asyncio.open_unix_connection(sock=ours)
            carrying = [asyncio.create_task(one) for one in (to_server(connection, reader), here(connection, writer))]
            try:
                yield theirs
            finally:
                for task in carrying:
                    task.cancel()
                await asyncio.gather(*carrying, return_exceptions=True)
                writer.close()

    async def to_server(connection: ClientConnection, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionClosed):
            while data := await reader.read(PIECE_BYTES):
                await connection.send(data)

    async def here(connection: ClientConnection, writer: asyncio.StreamWriter) -> None:
        """Ends with the connection, and then the line does."""
        try:
            async for data in connection:
                writer.write(data if isinstance(data, bytes) else b"")
                await writer.drain()
        except (ConnectionClosed, ConnectionError):
            pass
        finally:
            writer.close()

    return Reached(run.identity, line, port, tunnel)
