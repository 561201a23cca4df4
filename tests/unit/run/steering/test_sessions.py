"""What a run passes on between a guest and whoever asked for a session, and what it keeps from the guest."""

from __future__ import annotations

import asyncio
import select
import socket
import struct
from collections.abc import Callable

import pytest

from dilaton.host.sessions.frames import HEADER, Kind, Request
from dilaton.host.sessions.session import Send
from dilaton.run.observer import RunClock
from dilaton.run.record.events import SessionBegan
from dilaton.run.steering.sessions import ONLY, Relay, SessionControl
from tests.conftest import PATIENCE_HOST_S

Frames = list[tuple[Kind, int, bytes]]


def forwarded(*frames: bytes) -> Frames:
    """What of this reaches the guest."""
    sent: Frames = []

    async def scenario() -> None:
        reader = asyncio.StreamReader()
        reader.feed_data(b"".join(frames))
        reader.feed_eof()
        await Relay(lambda *frame: sent.append(frame), None).forward(reader)  # type: ignore[arg-type]

    asyncio.run(scenario())
    return sent


def frame(kind: int, stream: int = 0, payload: bytes = b"") -> bytes:
    return HEADER.pack(ONLY, kind, stream, 0, len(payload)) + payload


def test_bytes_grants_signals_and_sizes_reach_the_guest() -> None:
    two, eight = struct.pack("<I", 2), struct.pack("<II", 24, 80)
    frames: Frames = [(Kind.DATA, 0, b"x"), (Kind.GRANT, 1, two), (Kind.SIGNAL, 0, two), (Kind.SIZE, 0, eight)]
    assert forwarded(*(frame(*one) for one in frames)) == frames


@pytest.mark.parametrize(
    "garbled",
    [
        frame(Kind.OPEN, 0, b"a\0"),
        frame(Kind.EXITED, 0, bytes(8)),
        frame(Kind.SIGNAL, 0, struct.pack("<I", 1000)),
        frame(Kind.SIGNAL, 0, b"2"),
        frame(Kind.SIZE, 0, bytes(4)),
        frame(Kind.DATA, 3, b"x"),
        frame(77),
    ],
)
def test_what_a_guest_must_not_get_ends_the_session(garbled: bytes) -> None:
    assert forwarded(garbled, frame(Kind.DATA, 0, b"x")) == []


class Line:
    """A stream line whose programs end at once."""

    def begin_for(self, make: Callable[[Send], Relay], _: bytes) -> Relay:
        relay = make(lambda *_: None)
        relay.receive(Kind.EXITED, 0, struct.pack("<II", 0, 0))
        return relay


def clock() -> RunClock:
    return RunClock(0, 0, None, 0)


def began(now: RunClock) -> SessionBegan:
    return SessionBegan(t_ns=now.virtual_ns, node="a", program="true", host_s=0.0)


def test_who_does_not_hang_up_does_not_keep_a_run_that_is_over() -> None:
    async def scenario() -> list[str]:
        here, there = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=here)
        told: list[str] = []
        control = SessionControl({"a": 0}, [Line()], None, lambda _, event: told.append(event.tag), clock)  # type: ignore[list-item,arg-type]
        with there:
            carried = asyncio.create_task(control._carry(Request("a", [b"true"]), "true", began, reader, writer))
            while "session-ended" not in told:
                await asyncio.sleep(0)
            assert not carried.done(), "what was written is still on its way"
            control._closed.set()
            await asyncio.wait_for(carried, PATIENCE_HOST_S)
        writer.close()
        return told

    assert asyncio.run(scenario()) == ["session-began", "session-ended"]


def test_the_end_of_a_program_is_an_event_before_it_is_heard_of() -> None:
    async def scenario() -> list[bool]:
        here, there = socket.socketpair()
        reader, writer = await asyncio.open_unix_connection(sock=here)
        heard: list[bool] = []
        control = SessionControl({"a": 0}, [Line()], None, lambda *_: heard.append(can_be_read(there)), clock)  # type: ignore[list-item,arg-type]
        with there:
            carried = asyncio.create_task(control._carry(Request("a", [b"true"]), "true", began, reader, writer))
            await asyncio.to_thread(there.recv, HEADER.size)
        await carried
        writer.close()
        return heard

    def can_be_read(end: socket.socket) -> bool:
        return bool(select.select([end], [], [], 0)[0])

    assert asyncio.run(scenario()) == [False, False], "neither at its begin nor at its end"
