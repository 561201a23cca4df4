"""Event streams (server-sent events): what happens, as it happens, numbered, so that nothing is missed or told twice.

A client that comes again names the last number that it has (`Last-Event-ID`, which browsers send by themselves), and
goes on from there. Whoever reads slowly is told slowly: nothing waits for them, and nothing is kept for them in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
from collections.abc import AsyncGenerator
from functools import partial
from typing import Annotated, Any

from fastapi import Header, Query
from fastapi.responses import StreamingResponse
from sqlalchemy import func, select

from dilaton.run.control.errors import ControlError
from dilaton.run.control.happenings import line_of
from dilaton.server.access.callers import Caller, remembered, renewed
from dilaton.server.api.endpoints import LOGGED_IN, PREFIX, Endpoints, Server, TheRun, Who, needs
from dilaton.server.api.streamed import Streamed
from dilaton.server.bell import rung
from dilaton.server.database.events import READ_AT_ONCE
from dilaton.server.database.store import surely
from dilaton.server.database.tables import EventRow
from dilaton.server.problems import Problem
from dilaton.server.state import State

ENDPOINTS = Endpoints()

MEDIA_TYPE = "text/event-stream"

HEARTBEAT_HOST_S = 15.0
"""After which a silent stream says that it is alive; whoever may not listen any more is cut off by then."""

LastEvent = Annotated[str, Header(alias="Last-Event-ID", max_length=20)]


@ENDPOINTS.add("GET", f"{PREFIX}/events", LOGGED_IN, response_class=StreamingResponse)
async def stream_events(
    who: Who, server: Server, last_event_id: LastEvent = "", after: Annotated[int | None, Query(ge=0)] = None
) -> Streamed:
    """What happens to all that one may see, from now on, or from behind a number."""
    last = _number(last_event_id) if last_event_id else after
    if last is None:
        last = await asyncio.to_thread(_newest, server)
    return _stream(_events(server, who, last))


@ENDPOINTS.add("GET", f"{PREFIX}/runs/{{run}}/happenings", needs(("Run.Read", "run")), response_class=StreamingResponse)
async def stream_happenings(run: TheRun, server: Server, last_event_id: LastEvent = "") -> Streamed:
    """All that has happened in a run that goes on, and all that happens until it ends (docs/control-protocol.md)."""
    return _stream(_happenings(server, run.identity, _number(last_event_id) if last_event_id else 0))


def _stream(lines: AsyncGenerator[str, None]) -> Streamed:
    # A proxy in between is not to gather what is to come at once.
    return Streamed(lines, MEDIA_TYPE, headers={"X-Accel-Buffering": "no"})


def _number(said: str) -> int:
    if not re.fullmatch(r"[0-9]{1,18}", said):
        raise Problem(422, "argument", "Last-Event-ID: a number", field="Last-Event-ID")
    return int(said)


def _said(number: int, kind: str, data: str) -> str:
    """An event as it is sent; JSON has no line breaks outside of texts, and escapes those inside."""
    return f"id: {number}\nevent: {kind}\ndata: {data}\n\n"


def _newest(server: State) -> int:
    with server.store.reading() as session:
        return session.scalar(select(func.max(EventRow.number))) or 0


def _oldest(server: State) -> int:
    with server.store.reading() as session:
        return session.scalar(select(func.min(EventRow.number))) or 0


async def _events(server: State, who: Caller, last: int) -> AsyncGenerator[str, None]:
    # So that a client that loses the connection before anything has happened knows where it was.
    yield f"id: {last}\nevent: ready\ndata: {{}}\n\n"
    oldest = await surely(partial(_oldest, server))
    if 0 < last < oldest - 1:
        # Who was away for too long looks anew, rather than believing that nothing has happened.
        last = oldest - 1
        yield f"id: {last}\nevent: lost\ndata: {{}}\n\n"
    while True:
        ring = server.bell.waiting()
        rows = await server.newest.behind(last)
        # Once they are read, since what they tell of may be what lets somebody hear of it. Of each that listens this is
        # asked at each event, so not by a thread as long as nothing has changed.
        now = remembered(server.store, server.policy, who) or await surely(partial(_still, server, who))
        if now is None:
            return
        for row in rows:
            last = row.number
            if now.access.may(row.permission, row.path):
                data = {"at_ms": row.at_ms, "path": row.path, **row.data}
                yield _said(row.number, row.kind, json.dumps(data))
        if len(rows) < READ_AT_ONCE and not await rung(ring, HEARTBEAT_HOST_S):
            yield ": alive\n\n"


def _still(server: State, who: Caller) -> Caller | None:
    """Who is listening, with what they may do now; None: they may not listen any more."""
    try:
        return renewed(server.store, server.policy, who)
    except Problem:
        return None


async def _happenings(server: State, identity: str, last: int) -> AsyncGenerator[str, None]:
    """A run tells everyone all from its beginning, so the number of a happening is its place."""
    number = 0
    try:
        async with contextlib.aclosing(server.keeper.live(identity).follow()) as happenings:
            async for happening in happenings:
                number += 1
                if number > last:
                    line: dict[str, Any] = json.loads(line_of(happening))
                    yield _said(number, str(line["kind"]), json.dumps(line))
    except ControlError:
        yield _said(last, "gone", "{}")
    else:
        yield _said(number, "over", "{}")
