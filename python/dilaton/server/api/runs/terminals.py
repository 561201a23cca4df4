"""Terminals in nodes of runs, for browsers and programs: opened by a request, looked at over a WebSocket.

Bytes of the terminal are binary messages, both ways. Text messages are JSON: the server says first `{"from": N}`, the
number of the byte that comes next, and last `{"status": N, "reason": "…"}` when the program has ended; the client says
`{"rows": N, "columns": N}` when its window has another size. Who has lost the connection comes again with `?after=N`,
the number of bytes that they have, counted from the terminal's beginning.

A browser's WebSockets come with its cookies whichever page is behind them, so the page is looked at, as for everything
that changes something (`access/callers.py`).
"""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from functools import partial
from typing import Annotated

from fastapi import Query, WebSocket
from pydantic import BaseModel, Field, ValidationError
from starlette.websockets import WebSocketDisconnect

from dilaton.server.access.callers import Caller, renewed
from dilaton.server.api.endpoints import PREFIX, Endpoints, Server, TheRun, Who, needs
from dilaton.server.api.session import Asked
from dilaton.server.database.actions import note
from dilaton.server.database.store import surely
from dilaton.server.problems import Problem
from dilaton.server.runs.terminals import Kept
from dilaton.server.state import State

ENDPOINTS = Endpoints()

TERMINALS = f"{PREFIX}/runs/{{run}}/terminals"
CONSOLE = needs(("Run.Console", "run"))

ALLOWED_HOST_S = 15.0
"""How long somebody keeps a terminal at most who may not have it any more."""

PIECE_BYTES = 1 << 15
"""Of a message."""

TAKEN_OVER, NOT_ALLOWED, WRONG, TOO_MUCH = 4000, 4001, 4002, 4003
"""Codes by which a connection is closed: a newer one has the terminal, its person may not have it any more, it said
something else than the size of a window, it typed more than the program takes."""

Rows = Annotated[int, Field(ge=1, le=1000)]


class Size(Asked):
    """The size of a window."""

    rows: Rows
    columns: Rows


class NewTerminal(Size):
    """A terminal that is to be opened."""

    node: str = Field(max_length=255)
    argv: list[Annotated[str, Field(max_length=4096, pattern=r"^[^\x00]*$")]] = Field(default=[], max_length=100)
    """Program and arguments; none: a shell."""


class TerminalShown(BaseModel):
    """A terminal."""

    terminal: str
    """Its identity."""
    node: str
    argv: list[str]
    is_seen: bool
    """Whether a connection has it."""
    status: int | None
    """The exit status of its program, as a shell has it; null: it goes on."""

    @classmethod
    def of(cls, kept: Kept) -> TerminalShown:
        """As the server keeps it."""
        ending = kept.terminal.ending
        return cls(
            terminal=kept.name,
            node=kept.node,
            argv=kept.argv,
            is_seen=kept.viewer is not None,
            status=None if ending is None else ending.status,
        )


@ENDPOINTS.add("POST", TERMINALS, CONSOLE, status_code=201)
async def open_terminal(asked: NewTerminal, run: TheRun, who: Who, server: Server) -> TerminalShown:
    """Starts a program with a terminal in a node; nobody else sees it. Unseen it is hung up on after a minute."""
    await asyncio.to_thread(noted, server, who, run.path, asked.node, asked.argv)
    size = asked.rows, asked.columns
    kept = await server.terminals.open(
        server.keeper.run_dir(run.identity), run.identity, who.name, asked.node, asked.argv, size
    )
    return TerminalShown.of(kept)


@ENDPOINTS.add("GET", TERMINALS, CONSOLE)
async def list_terminals(run: TheRun, who: Who, server: Server) -> list[TerminalShown]:
    """One's own terminals in a run."""
    return [TerminalShown.of(kept) for kept in server.terminals.of(run.identity, who.name)]


@ENDPOINTS.add("DELETE", f"{TERMINALS}/{{terminal}}", CONSOLE, status_code=204)
async def close_terminal(terminal: str, run: TheRun, who: Who, server: Server) -> None:
    """Hangs up on a terminal."""
    server.terminals.find(run.identity, who.name, terminal).close()


@ENDPOINTS.add("WEBSOCKET", f"{TERMINALS}/{{terminal}}", CONSOLE)
async def look_at_terminal(
    socket: WebSocket,
    terminal: str,
    run: TheRun,
    who: Who,
    server: Server,
    after: Annotated[int, Query(ge=0, le=1 << 60)] = 0,
) -> None:
    """Reads and writes a terminal, from behind a byte on; see the messages in docs/server.md."""
    kept = server.terminals.find(run.identity, who.name, terminal)
    await socket.accept()
    viewer = kept.attach()
    work = [
        asyncio.create_task(one)
        for one in (
            _show(socket, kept, viewer, after),
            _hear(socket, kept),
            stay_allowed(server, who, run.path, "Run.Console"),
        )
    ]
    try:
        done, _ = await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        with suppress(RuntimeError, WebSocketDisconnect):  # it is closed already
            await socket.close(next(iter(done)).result())
    except WebSocketDisconnect:
        pass
    finally:
        kept.detach(viewer)
        for task in work:
            task.cancel()
        await asyncio.gather(*work, return_exceptions=True)


async def _show(socket: WebSocket, kept: Kept, viewer: object, after: int) -> int:
    """Sends what is written; returns why the connection is to be closed."""
    byte = min(max(after, kept.first), kept.end)
    await socket.send_text(json.dumps({"from": byte}))
    while data := await kept.behind(viewer, byte):
        if byte < kept.first:
            byte = kept.end - len(data)
            await socket.send_text(json.dumps({"from": byte}))
        for begin in range(0, len(data), PIECE_BYTES):
            await socket.send_bytes(data[begin : begin + PIECE_BYTES])
        byte += len(data)
    if kept.viewer is not viewer:
        return TAKEN_OVER
    ending = kept.terminal.ending
    said = {"status": ending.status, "reason": ending.reason} if ending else {"status": 129, "reason": "closed"}
    await socket.send_text(json.dumps(said))
    return 1000


async def _hear(socket: WebSocket, kept: Kept) -> int:
    """Types what is typed, and resizes; returns why the connection is to be closed."""
    while True:
        message = await socket.receive()
        if message["type"] == "websocket.disconnect":
            return 1000
        if (typed := message.get("bytes")) is not None:
            if not kept.terminal.write(typed):
                return TOO_MUCH
            continue
        try:
            size = Size.model_validate_json(message["text"])
        except ValidationError:
            return WRONG
        kept.terminal.resize(size.rows, size.columns)


async def stay_allowed(server: State, who: Caller, path: str, permission: str) -> int:
    """Waits until somebody has a permission no longer; returns why the connection is to be closed."""
    while True:
        await asyncio.sleep(ALLOWED_HOST_S)
        try:
            now = await surely(partial(renewed, server.store, server.policy, who))
        except Problem:
            return NOT_ALLOWED
        if not now.access.may(permission, path):
            return NOT_ALLOWED


def noted(server: State, who: Caller, path: str, node: str, argv: list[str], action: str = "run.console") -> None:
    """Writes down what somebody executes in a node."""
    with server.store.writing() as session:
        note(session, who.name, action, path, node=node, argv=argv)
