"""A terminal in a node of a run, for who reads and writes it in an event loop: a server, for people elsewhere.

What a program writes is kept until the reader has taken it, and only then granted again, so a reader that rests stops
its own program and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

from dilaton.host.sessions.frames import STDERR, STDIN, STDOUT, Ending, Kind
from dilaton.host.sessions.session import Send
from dilaton.host.sessions.streams import Streams
from dilaton.run.control.answers import SESSION_OPEN
from dilaton.run.control.requests import take_over

SHELL = (
    "sh",
    "-c",
    """export PS1="$HOSTNAME:\\$PWD# "
[ -t 0 ] && command -v bash > /dev/null && exec bash --rcfile /dev/fd/3 3<<'END'
PS1='\\h:\\w\\$ '
END
command -v bash > /dev/null && exec bash
exec sh""",
)
"""What is executed when nothing is named: a shell that says on which node it is.

It does not read `~/.bashrc`, which is made for this machine: what that executes takes CPU time of the node, and so time
of all in the lab. Two lines of it for one version manager took 11 to 17 s of a busy host until the first prompt.
"""

WINDOW_BYTES = 1 << 16
"""Of a program's output that nobody has taken yet."""

FRAME_BYTES_MAX = 1 << 14
"""Of what is typed, in one frame to a program."""

TYPED_BYTES_MAX = 1 << 20
"""Of what was typed and no program has taken yet."""


ERRORS_BYTES = 1 << 12
"""Of the end of what a program without a terminal has said is wrong."""


class Terminal:
    """A program with a terminal, or with pipes; see `terminal`. One reader, one writer."""

    def __init__(self, send: Send) -> None:
        """Use `terminal`."""
        self._send = send
        self._output: list[bytes] = []
        self._typed = bytearray()
        self._room = 0
        self._errors = b""
        self._moved = asyncio.Event()
        self.ending: Ending | None = None
        """How the program ended; None: it has not."""
        for stream in (STDOUT, STDERR):
            self._grant(stream, WINDOW_BYTES)

    async def read(self) -> bytes:
        """What the program has written since; waits for something. Nothing: it has ended, and all was read."""
        while not self._output and self.ending is None:
            await self._moved.wait()
        taken, self._output = b"".join(self._output), []
        self._grant(STDOUT, len(taken))
        return taken

    def write(self, typed: bytes) -> bool:
        """Types something, which is kept until the program takes it; False: too much waits, and this was dropped."""
        if len(self._typed) + len(typed) > TYPED_BYTES_MAX:
            return False
        self._typed += typed
        self._type()
        return True

    async def hand_over(self, typed: bytes) -> None:
        """Types something, and waits until the program has taken it, or has ended."""
        self._typed += typed
        self._type()
        while self._typed and self.ending is None:
            await self._moved.wait()

    def end_input(self) -> None:
        """Nothing more is typed: what the program reads ends, once it has been handed over."""
        if self.ending is None:
            self._send(Kind.CLOSE, STDIN, b"")

    @property
    def errors(self) -> str:
        """The end of what it has written as errors, which a program with a terminal writes there."""
        return self._errors.decode(errors="replace").strip()

    def resize(self, rows: int, columns: int) -> None:
        """Tells the terminal its new size."""
        self._send(Kind.SIZE, 0, struct.pack("<II", rows, columns))

    def receive(self, kind: Kind, stream: int, payload: bytes) -> None:
        """Takes in a frame of the program's."""
        match kind:
            case Kind.DATA if stream == STDOUT:
                self._output.append(payload)
            case Kind.DATA:
                self._errors = (self._errors + payload)[-ERRORS_BYTES:]
                self._grant(stream, len(payload))
            case Kind.GRANT:
                self._room += struct.unpack("<I", payload)[0]
                self._type()
            case Kind.EXITED:
                status, number = struct.unpack("<II", payload)
                self.ending = Ending(128 + number if number else status)
            case Kind.FAILED:
                self.ending = Ending(struct.unpack_from("<I", payload)[0], payload[4:].decode(errors="replace"))
        self._move()

    def lose(self) -> None:
        """The run has ended, and with it the program."""
        self.ending = self.ending or Ending(129, "the run has ended")
        self._move()

    def _type(self) -> None:
        while self._typed and self._room and self.ending is None:
            count = min(len(self._typed), self._room, FRAME_BYTES_MAX)
            self._room -= count
            self._send(Kind.DATA, STDIN, bytes(self._typed[:count]))
            del self._typed[:count]

    def _grant(self, stream: int, count: int) -> None:
        if count and self.ending is None:
            self._send(Kind.GRANT, stream, struct.pack("<I", count))

    def _move(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()


@contextlib.asynccontextmanager
async def terminal(
    run_dir: Path, node: str, argv: Sequence[str], size: tuple[int, int] | None, env: Mapping[str, str]
) -> AsyncIterator[Terminal]:
    """A program in a node, which is hung up on at the end of the context.

    Args:
        run_dir: The run.
        node: Where.
        argv: Program and arguments; none: a shell.
        size: Rows and columns of its terminal; None: its streams are pipes.
        env: Variables beside those that all programs of the node have.

    Raises:
        ControlError: no run goes on there, or it refuses.
    """
    asked = {"node": node, "argv": list(argv or SHELL), "terminal": size, "env": dict(env)}
    line, _ = await asyncio.to_thread(lambda: take_over(run_dir, SESSION_OPEN, **asked))
    streams = Streams(line)
    await streams.open()
    try:
        yield streams.expect(Terminal)
    finally:
        await streams.close()
