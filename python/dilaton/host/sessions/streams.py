"""The host's end of a stream line: sessions, that is programs started from outside, and the frames of their streams.

The agent's side and the reason for windows are in `crates/agent/src/streams.rs`, the frames in `PROTOCOL.md`. Who takes
the frames of a session connects it with files of this machine (`host/sessions/session.py`), or passes them on
(`run/steering/sessions.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Protocol, TypeVar

from dilaton.host.sessions.frames import HEADER, LINE, PAYLOAD_BYTES_MAX, Kind, Request
from dilaton.host.sessions.session import Send, Session

LINE_WINDOW_BYTES = 3072
"""How much may be on its way to the guest in all; `crates/agent/src/streams.rs` says why not more."""

READ_BYTES_MAX = 1 << 20
"""How much may have come over a line and not been looked at yet."""


class Receiver(Protocol):
    """Who takes the frames of a session."""

    def receive(self, kind: Kind, stream: int, payload: bytes) -> None:
        """Takes in a frame; none comes after one of the kinds `failed` and `exited`."""

    def lose(self) -> None:
        """The line has ended before the session."""


SomeReceiver = TypeVar("SomeReceiver", bound=Receiver)


class Sessions(ABC):
    """The sessions of a line, whatever carries their frames."""

    def __init__(self) -> None:
        """There are none yet."""
        self._receivers: dict[int, Receiver] = {}
        self._opened = LINE

    def begin(self, request: Request) -> Session:
        """Starts a program; the run must have begun, since the agent serves the line from then on."""
        return self.begin_for(Session, request.encode())

    def begin_for(self, make: Callable[[Send], SomeReceiver], request: bytes) -> SomeReceiver:
        """Starts a program, by the payload of the frame that does, for what `make` makes of the way back to it."""
        receiver = self.expect(make)
        self._send(self._opened, Kind.OPEN, payload=request)
        return receiver

    def expect(self, make: Callable[[Send], SomeReceiver]) -> SomeReceiver:
        """As `begin_for`, of a program that the other side starts without being asked to by a frame."""
        self._opened += 1
        number = self._opened

        def send(kind: Kind, stream: int, payload: bytes) -> None:
            self._send(number, kind, stream, payload)

        self._receivers[number] = receiver = make(send)
        return receiver

    @abstractmethod
    def _send(self, session: int, kind: Kind, stream: int = 0, payload: bytes = b"") -> None:
        """Sends a frame to the other side, after all that were sent before."""

    def _receive(self, session: int, kind: Kind, stream: int, payload: bytes) -> None:
        """Gives a frame to whom it is for; one of a session that is over is for nobody."""
        if receiver := self._receivers.get(session):
            receiver.receive(kind, stream, payload)
            if kind in (Kind.FAILED, Kind.EXITED):
                del self._receivers[session]

    def _lose(self, session: int) -> None:
        """Nothing more comes of a session, unless it is over."""
        if receiver := self._receivers.pop(session, None):
            receiver.lose()

    def _lose_all(self) -> None:
        for session in list(self._receivers):
            self._lose(session)


class Streams(Sessions):
    """The host's end of a line that is a socket."""

    def __init__(self, line: socket.socket, room_bytes: int | None = None) -> None:
        """Takes a line.

        Args:
            line: Connected with who serves sessions.
            room_bytes: What it takes before it has granted more; None: whatever comes.
        """
        super().__init__()
        self._line = line
        self._line.setblocking(False)
        self._unsent = bytearray()
        self._room_bytes = room_bytes
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    @classmethod
    def of_guest(cls) -> tuple[Streams, int]:
        """A new line to a guest, and the descriptor of its other end, to be inherited by the guest and then closed."""
        host, guest = socket.socketpair()
        return cls(host, LINE_WINDOW_BYTES), guest.detach()

    async def open(self) -> None:
        """Begins to read."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._line, limit=READ_BYTES_MAX)
        self._reading = asyncio.create_task(self._read(reader))
        self._flush()

    async def renew(self) -> int:
        """Another kernel is to be at the other end: what runs is lost to the line, and `open` begins to read anew.

        Returns:
            The descriptor of the new other end, to be inherited by the guest and then closed.
        """
        await self.close()
        self._line, guest = socket.socketpair()
        self._line.setblocking(False)
        self._unsent.clear()
        self._room_bytes, self._writer, self._reading = LINE_WINDOW_BYTES, None, None
        return guest.detach()

    def _send(self, session: int, kind: Kind, stream: int = 0, payload: bytes = b"") -> None:
        if not self._unsent:
            # What else is to be said now goes with it: a guest that reads it in one go or in several makes other steps.
            asyncio.get_running_loop().call_soon(self._flush)
        self._unsent += HEADER.pack(session, kind, stream, 0, len(payload)) + payload

    def _flush(self) -> None:
        count = len(self._unsent) if self._room_bytes is None else min(len(self._unsent), self._room_bytes)
        if count and self._writer is not None and not self._writer.is_closing():
            self._writer.write(bytes(self._unsent[:count]))
            del self._unsent[:count]
            if self._room_bytes is not None:
                self._room_bytes -= count

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                number, kind, stream, payload = await read_frame(reader)
                if number == LINE and self._room_bytes is not None:
                    self._room_bytes += struct.unpack("<I", payload)[0]
                    self._flush()
                else:
                    self._receive(number, kind, stream, payload)
        except (asyncio.IncompleteReadError, ConnectionError, ValueError, struct.error):
            pass  # the other side has ended, or says what is no frame, after which nothing makes sense
        finally:
            self._lose_all()

    async def close(self) -> None:
        """Ends the line; programs that still run are lost to it."""
        if self._reading is None or self._writer is None:
            self._line.close()
            return
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._flush()
        self._writer.close()


async def read_frame(reader: asyncio.StreamReader) -> tuple[int, Kind, int, bytes]:
    """The next frame: session, kind, stream, payload.

    Raises:
        asyncio.IncompleteReadError: The line has ended.
        ValueError: What came is no frame.
    """
    number, kind, stream, _, length = HEADER.unpack(await reader.readexactly(HEADER.size))
    if length > PAYLOAD_BYTES_MAX:
        raise ValueError(f"{length} bytes: more than a frame has")
    return number, Kind(kind), stream, await reader.readexactly(length)
