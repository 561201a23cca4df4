"""What goes through a door: a request to a port of a node and its answer, or the messages of a WebSocket.

Each has a connection of its own into the node. Of what the browser says only what it says to the door itself is kept
back; of what the node says, what would be about more than the door's own host.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Iterable
from pathlib import Path

import h11
from starlette.types import Receive, Scope, Send
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake
from websockets.typing import Origin, Subprotocol

from dilaton.host.errors import GuestError
from dilaton.host.tasks import first_of
from dilaton.run.control.errors import ControlError
from dilaton.run.control.port_client import join
from dilaton.run.control.session_client import reached
from dilaton.server.settings import MESSAGE_BYTES_MAX

PIECE_BYTES = 1 << 15

OPEN_HOST_S = 60.0
"""How long a node has to answer the handshake of a WebSocket."""

HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection".split()
    + b"te trailer transfer-encoding upgrade expect".split()
)
"""Headers that are about one connection (RFC 9110, 7.6.1)."""

BEYOND = frozenset((b"clear-site-data", b"alt-svc"))
"""Headers of an answer about more than its host: all cookies of a domain; other hosts that may answer for this one."""

BROKEN = (ConnectionError, EOFError, TimeoutError, h11.RemoteProtocolError, InvalidHandshake)
"""How a node answers that does not, or not to the end."""

Header = tuple[bytes, bytes]


class ClosedError(Exception):
    """There is no answer from a node; the text says why."""


@contextlib.asynccontextmanager
async def connected(run_dir: Path, node: str, port: int) -> AsyncIterator[socket.socket]:
    """A connection to a port of a node of a run, until the end of the context.

    Raises:
        ClosedError: why there was none, or what broke it off, where the context ends by an error of the connection.
    """
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=theirs)
    failed: list[str] = []

    async def joined() -> None:
        try:
            if wrong := await join(reached(run_dir), node, port, reader, writer):
                failed.append(wrong)
        except ConnectionError:
            pass  # whoever has connected has gone
        except ControlError as error:
            failed.append(error.message)
        except GuestError as error:
            failed.append(str(error))
        finally:
            writer.close()

    joining = asyncio.create_task(joined())
    try:
        yield ours
    except BROKEN as error:
        if not joining.done():
            await asyncio.wait({joining}, timeout=1)
        raise ClosedError(f"{node}:{port}: {failed[0] if failed else error or type(error).__name__}") from error
    finally:
        ours.close()
        joining.cancel()
        await asyncio.gather(joining, return_exceptions=True)


def to_node(headers: Iterable[Header], cookie: bytes) -> list[Header]:
    """The headers of a request as the node gets them, without the door's own cookie."""
    headers = list(headers)
    left_out = HOP | _named(headers)
    found = []
    for name, value in headers:
        if name == b"cookie":
            pairs = [one for one in value.split(b"; ") if one.partition(b"=")[0].strip() != cookie]
            value = b"; ".join(pairs)
            if not value:
                continue
        if name not in left_out:
            found.append((name, value))
    return [*found, (b"connection", b"close")]


def from_node(headers: Iterable[Header]) -> list[Header]:
    """The headers of an answer as the browser gets them; cookies are of this host alone."""
    headers = list(headers)
    left_out = HOP | BEYOND | _named(headers)
    return [
        (name, _of_host(value) if name == b"set-cookie" else value) for name, value in headers if name not in left_out
    ]


def _named(headers: list[Header]) -> frozenset[bytes]:
    """Headers that `Connection` says are about one connection."""
    said = b",".join(value for name, value in headers if name == b"connection")
    return frozenset(one.strip().lower() for one in said.split(b","))


def _of_host(cookie: bytes) -> bytes:
    parts = cookie.split(b";")
    return b";".join(part for part in parts if part.partition(b"=")[0].strip().lower() != b"domain")


async def carry_request(line: socket.socket, scope: Scope, receive: Receive, send: Send, headers: list[Header]) -> None:
    """Sends a request, and passes on the answer, as fast as the slower side takes them.

    Raises:
        ClosedError, EOFError, ConnectionError, h11.RemoteProtocolError: there is no answer, or it has no end.
        h11.LocalProtocolError: the request is none that HTTP/1.1 has.
    """
    loop, node = asyncio.get_running_loop(), h11.Connection(h11.CLIENT)
    target = scope["raw_path"] + (b"?" + scope["query_string"] if scope["query_string"] else b"")
    if any(name == b"transfer-encoding" for name, _ in scope["headers"]):
        headers = [*headers, (b"transfer-encoding", b"chunked")]

    async def say(event: h11.Event) -> None:
        await loop.sock_sendall(line, node.send(event) or b"")

    async def asked() -> None:
        # Who answers before it has all, and closes, has answered.
        with contextlib.suppress(ConnectionError):
            await say(h11.Request(method=scope["method"], target=target, headers=headers))
            while (message := await receive())["type"] == "http.request":
                if message.get("body"):
                    await say(h11.Data(message["body"]))
                if not message.get("more_body"):
                    await say(h11.EndOfMessage())
        while message["type"] != "http.disconnect":
            message = await receive()

    async def answered() -> None:
        has_begun = False
        while not isinstance(event := node.next_event(), h11.EndOfMessage | h11.ConnectionClosed):
            match event:
                case h11.NEED_DATA:
                    node.receive_data(await loop.sock_recv(line, PIECE_BYTES))
                case h11.Response():
                    has_begun = True
                    head = {"type": "http.response.start", "status": event.status_code}
                    await send(head | {"headers": from_node(event.headers)})
                case h11.Data():
                    await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
        if not has_begun:
            raise EOFError("has answered nothing")
        await send({"type": "http.response.body", "body": b""})

    await first_of(asked(), answered())


async def carry_messages(
    line: socket.socket, scope: Scope, receive: Receive, send: Send, headers: list[Header]
) -> None:
    """Makes a WebSocket to the node, and passes its messages on, both ways.

    Raises:
        ConnectionError, InvalidHandshake, TimeoutError: the node makes none.
    """
    said = {name.decode("latin-1"): value.decode("latin-1") for name, value in headers}
    query = scope["query_string"].decode("latin-1")
    uri = f"ws://{said['host']}{scope['raw_path'].decode('latin-1')}{query and f'?{query}'}"
    kept = {"cookie", "authorization", "user-agent", "accept-language"}
    async with connect(
        uri,
        sock=line,
        origin=Origin(said["origin"]),
        additional_headers={name: value for name, value in said.items() if name in kept},
        user_agent_header=None,
        subprotocols=[Subprotocol(name) for name in scope["subprotocols"]] or None,
        compression=None,
        proxy=None,
        max_size=MESSAGE_BYTES_MAX,
        ping_interval=None,
        open_timeout=OPEN_HOST_S,
    ) as node:
        await receive()  # websocket.connect
        await send({"type": "websocket.accept", "subprotocol": node.subprotocol})
        await first_of(_from_browser(receive, node), _to_browser(send, node))


async def _from_browser(receive: Receive, node: ClientConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        while (message := await receive())["type"] == "websocket.receive":
            await node.send(message["bytes"] if message.get("bytes") is not None else message["text"])


async def _to_browser(send: Send, node: ClientConnection) -> None:
    with contextlib.suppress(ConnectionClosed):
        async for message in node:
            kind = "text" if isinstance(message, str) else "bytes"
            await send({"type": "websocket.send", kind: message})
    code = node.close_code or 1000
    # 1005 and 1006 say that there was no code, and are not sent.
    await send({"type": "websocket.close", "code": 1000 if code in (1005, 1006) else code})
