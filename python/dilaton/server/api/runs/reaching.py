"""Nodes of runs reached by programs elsewhere: the streams of a program in a node, and a capture while it is made.

A WebSocket carries a *session* (docs/control-protocol.md): its first message says what is to be executed, the server
answers `{}`, and from then on binary messages are the bytes of the session's frames, both ways, cut anywhere. What is
in them is between the two ends, and the run looks at what it gets; here they are only passed on, as slowly as the
slower side takes them. When the connection ends, the program is hung up on, as with ssh.

A *tunnel* is a session whose streams are packets of a machine outside, which is in the network of a node as long as it
lasts. It is asked for by itself, since who may be in the network need not be one who may execute there what they like,
and the other way about.

A capture is a program of that kind, which the server starts: whoever may have the files that a run leaves, and not
execute there what they like, may see packets, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncGenerator, Callable, Coroutine
from functools import partial
from ipaddress import IPv4Address, IPv6Address
from pathlib import Path
from socket import socket as Socket
from typing import Annotated, Any

from fastapi import Query, WebSocket
from fastapi.responses import StreamingResponse
from pydantic import Field, ValidationError, model_validator
from starlette.websockets import WebSocketDisconnect

from dilaton.lab.parts.measure import SNAPLEN_MAX, SNAPLEN_MIN
from dilaton.run.control.answers import PORT_OPEN, SESSION_OPEN, SHOW, TUNNEL_OPEN
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import take_over
from dilaton.run.control.terminal_client import Terminal, terminal
from dilaton.run.files.directory import PLAN_FILE
from dilaton.server.access.callers import Caller
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheRun, Who, needs
from dilaton.server.api.runs.runs import FILES
from dilaton.server.api.runs.terminals import CONSOLE, WRONG, Rows, noted, stay_allowed
from dilaton.server.api.session import Asked
from dilaton.server.api.streamed import Streamed
from dilaton.server.database.tables import RunRow
from dilaton.server.problems import Problem, of_error
from dilaton.server.runs.files import opened
from dilaton.server.state import State
from dilaton.service.client import connected

ENDPOINTS = Endpoints()

REFUSED = 4004
"""Code by which a connection is closed: what it asked for cannot be; the message before says why."""

PIECE_BYTES = 1 << 15

PLAN_BYTES_MAX = 64 << 20

PCAPNG = "application/x-pcapng"

Word = Annotated[str, Field(max_length=131_072, pattern=r"^[^\x00]*$")]


class NewSession(Asked):
    """A program that is to be executed in a node, or a port of it that somebody outside is joined with."""

    node: str = Field(max_length=255)
    argv: list[Word] = Field(default=[], max_length=1000)
    """Program and arguments; none where there is a port."""
    port: Annotated[int, Field(ge=1, le=65_535)] | None = None
    """Of TCP: the input and the output of the session are those of a connection to it."""
    env: dict[Annotated[str, Field(max_length=255)], Word] = Field(default={}, max_length=100)
    """Variables beside those that all programs of the node have."""
    terminal: tuple[Rows, Rows] | None = None
    """Rows and columns; null: its streams are pipes."""

    @model_validator(mode="after")
    def _one_of_them(self) -> NewSession:
        if bool(self.argv) == (self.port is not None):
            raise ValueError("either argv or port")
        return self

    @property
    def done(self) -> list[str]:
        """What the audit log has of it."""
        return self.argv or ["port", str(self.port)]

    def taken_over(self, run_dir: Path) -> Socket:
        """A connection of the run that carries its frames.

        Raises:
            ControlError: no run goes on there, or it refuses.
        """
        if self.port is not None:
            return take_over(run_dir, PORT_OPEN, node=self.node, port=self.port)[0]
        return take_over(run_dir, SESSION_OPEN, **self.model_dump(mode="json", exclude={"port"}))[0]


class NewTunnel(Asked):
    """A machine outside that is to be in the network of a node; packets are the input and the output of the session."""

    node: str = Field(max_length=255)
    addresses: list[IPv4Address | IPv6Address] = Field(min_length=1, max_length=2)
    """Of the machine, in the lab; at most one of IPv4 and one of IPv6."""

    @property
    def done(self) -> list[str]:
        """What the audit log has of it."""
        return ["tunnel", *map(str, self.addresses)]

    def taken_over(self, run_dir: Path) -> Socket:
        """A connection of the run that carries its frames.

        Raises:
            ControlError: no run goes on there, or it refuses.
        """
        return take_over(run_dir, TUNNEL_OPEN, node=self.node, addresses=list(map(str, self.addresses)))[0]


@ENDPOINTS.add("WEBSOCKET", f"{PREFIX}/runs/{{run}}/sessions", CONSOLE)
async def carry_session(socket: WebSocket, run: TheRun, who: Who, server: Server) -> None:
    """Executes a program in a node, and carries its streams; see the messages in docs/server.md."""
    await _carry_asked(socket, run, who, server, NewSession, "Run.Console")


@ENDPOINTS.add("WEBSOCKET", f"{PREFIX}/runs/{{run}}/tunnels", needs(("Run.Vpn", "run")))
async def carry_tunnel(socket: WebSocket, run: TheRun, who: Who, server: Server) -> None:
    """Has a machine outside in the network of a node, and carries its packets; see docs/server.md."""
    await _carry_asked(socket, run, who, server, NewTunnel, "Run.Vpn")


async def _carry_asked(
    socket: WebSocket,
    run: RunRow,
    who: Caller,
    server: State,
    what: type[NewSession | NewTunnel],
    permission: str,
) -> None:
    """Carries what the first message asks for, as long as both sides want and its person has the permission."""
    await socket.accept()
    with contextlib.suppress(WebSocketDisconnect):
        try:
            asked = what.model_validate_json(await _first(socket))
        except ValidationError:
            await socket.close(WRONG)
            return
        try:
            with server.sessions.one_of(who.name):
                action = f"run.{permission.partition('.')[2].lower()}"
                await asyncio.to_thread(noted, server, who, run.path, asked.node, asked.done, action)
                line = await asyncio.to_thread(asked.taken_over, server.keeper.run_dir(run.identity))
                line.setblocking(False)
                reader, writer = await asyncio.open_unix_connection(sock=line)
                try:
                    await socket.send_text("{}")
                    code = await _carried(socket, reader, writer, stay_allowed(server, who, run.path, permission))
                finally:
                    writer.close()
                with contextlib.suppress(RuntimeError):  # it is closed already
                    await socket.close(code)
        except (Problem, ControlError) as error:
            problem = error if isinstance(error, Problem) else of_error(error)
            await socket.send_text(bytes(problem.response().body).decode())
            await socket.close(REFUSED)


async def _first(socket: WebSocket) -> str:
    """The first message, if it is text."""
    message = await socket.receive()
    if message["type"] == "websocket.disconnect":
        raise WebSocketDisconnect
    return str(message.get("text") or "")


async def _carried(
    socket: WebSocket, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, allowed: Coroutine[Any, Any, int]
) -> int:
    """Passes bytes on until one side ends or may not go on; returns why the connection is to be closed."""

    async def to_client() -> int:
        while data := await reader.read(PIECE_BYTES):
            await socket.send_bytes(data)
        return 1000

    async def to_node() -> int:
        while True:
            message = await socket.receive()
            if message["type"] == "websocket.disconnect":
                return 1000
            if (data := message.get("bytes")) is None:
                return WRONG
            writer.write(data)
            await writer.drain()

    work = [asyncio.ensure_future(one) for one in (to_client(), to_node(), allowed)]
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        return next(iter(done)).result()
    except (ConnectionError, WebSocketDisconnect):
        return 1000
    finally:
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/capture", FILES, response_class=StreamingResponse)
async def capture_packets(
    run: TheRun,
    who: Who,
    server: Server,
    place: Annotated[str, Query(max_length=300)],
    pcap_filter: Annotated[str | None, Query(alias="filter", max_length=10_000)] = None,
    snaplen: Annotated[int, Query(ge=SNAPLEN_MIN, le=SNAPLEN_MAX)] = SNAPLEN_MAX,
    count: Annotated[int | None, Query(ge=1, le=1 << 60)] = None,
) -> Streamed:
    """What passes an interface, `NODE:INTERFACE`, in virtual time, while it passes: pcapng, until the client leaves,
    `count` packets have come, or the run ends. What a client is too slow for is lost, and counted at the end."""
    run_dir = server.keeper.run_dir(run.identity)
    async with connected(run_dir) as connection:
        date_ns = (await connection.request(SHOW))["date_ns"]
    if date_ns is None:
        raise Problem(409, "state", "the run has not begun yet")
    plan = await asyncio.to_thread(plan_of, run_dir)
    node, argv = await server.checker.capture_command(
        {
            "plan": plan,
            "place": place,
            "date_ns": date_ns,
            "pcap_filter": pcap_filter or None,
            "snaplen": snaplen,
            "count": count,
        }
    )
    await asyncio.to_thread(noted, server, who, run.path, node, ["capture", place, pcap_filter or ""])
    async with contextlib.AsyncExitStack() as stack:
        stack.enter_context(server.captures.one_of(who.name))
        begun = await stack.enter_async_context(terminal(run_dir, node, argv, None, {}))
        if not (first := await begun.read()):
            why = begun.ending.reason if begun.ending is not None and begun.ending.reason else begun.errors
            raise Problem(409, "run-refused", why or "nothing can be captured there")
        # What was entered lasts as long as the answer does.
        allowed = partial(stay_allowed, server, who, run.path, "Run.Files")
        return Streamed(_packets(begun, first, allowed), PCAPNG, stack.pop_all())
    raise AssertionError("unreachable")


async def _packets(
    begun: Terminal, data: bytes, allowed: Callable[[], Coroutine[Any, Any, int]]
) -> AsyncGenerator[bytes, None]:
    """What is captured, until it ends, or its reader may not have it any more."""
    watching = asyncio.create_task(allowed())
    reading: asyncio.Task[bytes] | None = None
    try:
        while data:
            yield data
            reading = asyncio.create_task(begun.read())
            await asyncio.wait((reading, watching), return_when=asyncio.FIRST_COMPLETED)
            if watching.done():
                return
            data = reading.result()
    finally:
        watching.cancel()
        if reading is not None:
            reading.cancel()


def plan_of(run_dir: Path) -> str:
    """`plan.json` as it is: guests write into run directories, so a worker reads it.

    Raises:
        Problem: there is none, or it is too large to be one.
    """
    try:
        with opened(run_dir, PLAN_FILE) as file:
            if os.fstat(file.fileno()).st_size <= PLAN_BYTES_MAX:
                return file.read(PLAN_BYTES_MAX).decode(errors="replace")
    except OSError:
        pass
    raise Problem(409, "state", "the run has no plan yet, or one that is too large")
