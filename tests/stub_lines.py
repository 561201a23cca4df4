"""The far end of a stream line without a guest: every session is a terminal whose program repeats what is typed.

It says `ready` first and its new size when it gets one; `flood` has it write a megabyte, `exit` ends it with status 3.
As an agent does, it writes no more than it was granted.
"""

from __future__ import annotations

import socket
import struct
import threading
from collections import defaultdict

from dilaton.host.sessions.frames import HEADER, LINE, STDIN, STDOUT, Kind

FLOOD = b"".join(b"%07x\n" % number for number in range(1 << 17))
PIECE_BYTES = 1 << 14


def serve(far_fd: int) -> None:
    """Serves a line, in a thread of its own, until it ends."""
    threading.Thread(target=_Line(socket.socket(fileno=far_fd)).serve, daemon=True).start()


class _Line:
    def __init__(self, line: socket.socket) -> None:
        self._line = line
        self._room: dict[int, int] = defaultdict(int)
        self._unsaid: dict[int, bytes] = defaultdict(bytes)

    def serve(self) -> None:
        with self._line, self._line.makefile("rb") as reading:
            try:
                while len(head := reading.read(HEADER.size)) == HEADER.size:
                    session, kind, stream, _, length = HEADER.unpack(head)
                    self._send(LINE, Kind.GRANT, 0, struct.pack("<I", HEADER.size + length))
                    self._take(session, kind, stream, reading.read(length))
            except OSError:
                pass  # the run is over

    def _take(self, session: int, kind: int, stream: int, payload: bytes) -> None:
        match kind:
            case Kind.OPEN:
                self._send(session, Kind.GRANT, STDIN, struct.pack("<I", 1 << 16))
                self._say(session, b"ready\r\n")
            case Kind.SIZE:
                self._say(session, b"%d x %d\r\n" % struct.unpack("<II", payload))
            case Kind.GRANT if stream == STDOUT:
                self._room[session] += struct.unpack("<I", payload)[0]
                self._say(session, b"")
            case Kind.DATA if payload == b"exit":
                self._send(session, Kind.EXITED, 0, struct.pack("<II", 3, 0))
            case Kind.DATA:
                self._send(session, Kind.GRANT, STDIN, struct.pack("<I", len(payload)))
                self._say(session, FLOOD if payload == b"flood" else payload)

    def _say(self, session: int, said: bytes) -> None:
        self._unsaid[session] += said
        while count := min(len(self._unsaid[session]), self._room[session], PIECE_BYTES):
            self._send(session, Kind.DATA, STDOUT, self._unsaid[session][:count])
            self._unsaid[session] = self._unsaid[session][count:]
            self._room[session] -= count

    def _send(self, session: int, kind: Kind, stream: int, payload: bytes) -> None:
        self._line.sendall(HEADER.pack(session, kind, stream, 0, len(payload)) + payload)
