"""What a run passes on between a guest and whoever asked for a session, and what it keeps from the guest."""

from __future__ import annotations

import asyncio
import struct

import pytest

from dilaton.host.frames import HEADER, Kind
from dilaton.run.session_control import ONLY, Relay

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
