"""The host's end of a stream line: what goes out, and how much of it at a time."""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from dilaton.host.errors import GuestError
from dilaton.host.sessions.frames import HEADER, LINE, Ending, Kind, Request
from dilaton.host.sessions.session import Session
from dilaton.host.sessions.streams import LINE_WINDOW_BYTES, Streams
from tests.conftest import PATIENCE_HOST_S


def frame(session: int, kind: Kind, stream: int = 0, payload: bytes = b"") -> bytes:
    return HEADER.pack(session, kind, stream, 0, len(payload)) + payload


def test_a_request_is_a_list_of_strings_each_with_an_end() -> None:
    request = Request("h1", [b"echo", b"a b\xff"], {b"X": b"1"}, "/x", "root", (24, 80))
    assert request.encode() == b"h1\x0024 80\0root\0/x\x002\0echo\0a b\xff\0X=1\0"
    assert Request("h1", [b"true"]).encode() == b"h1\0\0root\0/\x001\0true\0"


def test_no_more_is_under_way_than_the_line_takes_and_all_of_it_arrives() -> None:
    async def scenario() -> bytes:
        streams, guest_fd = Streams.of_guest()
        guest = socket.socket(fileno=guest_fd)
        await streams.open()
        streams.begin(Request("h1", [b"x" * 8000]))
        arrived = b""
        guest.setblocking(False)
        while len(arrived) < 8000:
            await asyncio.sleep(0)
            try:
                part = guest.recv(1 << 16)
            except BlockingIOError:
                continue
            assert len(part) <= LINE_WINDOW_BYTES
            arrived += part
            guest.send(frame(LINE, Kind.GRANT, 0, struct.pack("<I", len(part))))
        guest.close()
        await streams.close()
        return arrived

    request = Request("h1", [b"x" * 8000]).encode()
    assert asyncio.run(scenario()) == frame(1, Kind.OPEN, 0, request)


def test_what_a_program_wrote_that_ended_before_its_streams_are_connected_is_passed_on() -> None:
    async def scenario() -> tuple[Ending, bytes]:
        streams, guest_fd = Streams.of_guest()
        read, write = os.pipe()
        with socket.socket(fileno=guest_fd) as guest, open(os.devnull, "rb") as null:
            await streams.open()
            session = streams.begin(Request("h1", [b"x"]))
            # The end of an output alone is none: what its program left in the other comes with its end.
            guest.send(frame(1, Kind.CLOSE, 2) + frame(1, Kind.DATA, 1, b"written"))
            guest.send(frame(1, Kind.EXITED, 0, struct.pack("<II", 3, 0)))
            await session.ended
            session.attach(null.fileno(), write, write)
            ending = await asyncio.wait_for(session.wait(), PATIENCE_HOST_S)
        await streams.close()
        os.close(write)
        with open(read, "rb") as output:
            return ending, output.read()

    assert asyncio.run(scenario()) == (Ending(3), b"written")


@asynccontextmanager
async def session_with_output() -> AsyncIterator[tuple[socket.socket, Session, int, int]]:
    """The guest's end of the line, a session, and both ends of the pipe that its output goes to."""
    streams, guest_fd = Streams.of_guest()
    with socket.socket(fileno=guest_fd) as guest:
        await streams.open()
        session = streams.begin(Request("h1", [b"x"]))
        read, write = os.pipe()
        session.attach(None, write, write)
        yield guest, session, read, write
    await streams.close()


@pytest.mark.parametrize(
    ("kind", "payload", "ending"),
    [
        (Kind.EXITED, struct.pack("<II", 3, 0), Ending(3)),
        (Kind.EXITED, struct.pack("<II", 0, 9), Ending(137)),
        (Kind.FAILED, struct.pack("<I", 127) + b"exec x: no", Ending(127, "exec x: no")),
    ],
)
def test_all_output_is_written_before_the_end_is_told(kind: Kind, payload: bytes, ending: Ending) -> None:
    async def scenario() -> tuple[Ending, bytes]:
        async with session_with_output() as (guest, session, read, write):
            guest.send(frame(1, Kind.DATA, 1, b"all of it") + frame(1, kind, 0, payload))
            ended = await session.wait()
            os.close(write)
        with os.fdopen(read, "rb") as output:
            return ended, output.read()

    assert asyncio.run(scenario()) == (ending, b"all of it")


def test_a_guest_that_is_gone_ends_its_sessions_with_an_error() -> None:
    async def scenario() -> None:
        streams, guest_fd = Streams.of_guest()
        await streams.open()
        session = streams.begin(Request("h1", [b"x"]))
        os.close(guest_fd)
        await session.wait()

    with pytest.raises(GuestError):
        asyncio.run(scenario())


def test_who_gives_up_does_not_wait_for_a_reader_that_rests() -> None:
    async def scenario() -> Ending:
        async with session_with_output() as (guest, session, read, write):
            more = b"x" * (fcntl.fcntl(write, fcntl.F_GETPIPE_SZ) + 1)
            guest.send(frame(1, Kind.DATA, 1, more) + frame(1, Kind.EXITED, 0, struct.pack("<II", 3, 0)))
            waiting = asyncio.create_task(session.wait())
            await session.ended
            session.give_up(143)
            ending = await asyncio.wait_for(waiting, PATIENCE_HOST_S)
            os.close(read)  # which ends the writer
        return ending

    assert asyncio.run(scenario()) == Ending(3)


@pytest.mark.parametrize(
    "said",
    [b"\xff" * 64, HEADER.pack(1, Kind.DATA, 1, 0, 1 << 31), frame(1, Kind.EXITED, 0, b"short")],
    ids=["no frame", "far too long", "no status"],
)
def test_a_line_on_which_anything_else_is_said_has_ended(said: bytes) -> None:
    async def scenario() -> None:
        streams, guest_fd = Streams.of_guest()
        await streams.open()
        session = streams.begin(Request("h1", [b"true"]))
        with socket.socket(fileno=guest_fd) as guest:
            guest.send(said)
            with pytest.raises(GuestError, match="the guest ended while a program ran in it"):
                await session.wait()
            await streams.close()

    asyncio.run(scenario())
