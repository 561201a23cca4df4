"""The stream line of a guest: sessions, that is programs started from outside, and the bytes of their streams.

The agent's side and the reason for windows are in `crates/agent/src/streams.rs`, the frames in `PROTOCOL.md`. Here the
bytes pass between the line and files of this machine: terminals, pipes, regular files. Some of these cannot be waited
for without a thread, and none may be made non-blocking, since they belong to the caller's shell too. So each stream
has a thread that reads or writes its file as slowly as that goes; the line itself is the event loop's.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import select
import socket
import struct
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from dilaton.host.errors import GuestError

HEADER = struct.Struct("<IBBHI")
WINDOW_BYTES = 1 << 20
"""Of a program's output, on the way to a file of this machine that does not take it."""

LINE_WINDOW_BYTES = 3072
"""Of everything on its way to the guest; `crates/agent/src/streams.rs` says why not more."""

LINE = 0
"""The session that stands for the line."""

READ_BYTES = 1 << 14
STDIN, STDOUT, STDERR = range(3)


class Kind(IntEnum):
    """What a frame is about; `PROTOCOL.md` says what each means."""

    OPEN = 1
    DATA = 2
    GRANT = 3
    CLOSE = 4
    SIGNAL = 5
    SIZE = 6
    FAILED = 7
    EXITED = 8


@dataclass(frozen=True)
class Request:
    """What a session executes.

    Attributes:
        node: Where.
        argv: Program and arguments, in bytes as the kernel has them.
        env: The whole environment.
        cwd: Working directory in the node.
        user: A user name or number of the node.
        terminal: Rows and columns of the terminal that it gets; None: pipes.
    """

    node: str
    argv: Sequence[bytes]
    env: Mapping[bytes, bytes] = field(default_factory=dict)
    cwd: str = "/"
    user: str = "root"
    terminal: tuple[int, int] | None = None

    def encode(self) -> bytes:
        """The payload of the frame that opens the session."""
        size = "{} {}".format(*self.terminal) if self.terminal else ""
        head = [self.node, size, self.user, self.cwd, str(len(self.argv))]
        words = [word.encode("utf-8", "surrogateescape") for word in head]
        words += [*self.argv, *(name + b"=" + value for name, value in self.env.items())]
        return b"".join(word + b"\0" for word in words)


@dataclass(frozen=True)
class Ending:
    """How a session ended.

    Attributes:
        status: Exit status, as a shell has it: 128 and the number of the signal that killed it; 127 when there is no
            such program, 126 when it cannot be executed.
        reason: Why it could not be executed; empty when it was.
    """

    status: int
    reason: str = ""


class Streams:
    """The host's end of a stream line. `guest_fd` is to be inherited by the guest and then closed."""

    def __init__(self) -> None:
        """Makes both ends."""
        self._host, guest = socket.socketpair()
        self._host.setblocking(False)
        self.guest_fd = guest.detach()
        self._sessions: dict[int, Session] = {}
        self._opened = LINE
        self._unsent = bytearray()
        self._room_bytes = LINE_WINDOW_BYTES
        self._writer: asyncio.StreamWriter | None = None
        self._reading: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Begins to read."""
        reader, self._writer = await asyncio.open_unix_connection(sock=self._host, limit=WINDOW_BYTES)
        self._reading = asyncio.create_task(self._read(reader))

    def begin(self, request: Request) -> Session:
        """Starts a program; the run must have begun, since the agent serves the line from then on."""
        self._opened += 1
        session = Session(self, self._opened)
        self._sessions[session.number] = session
        self.send(session.number, Kind.OPEN, payload=request.encode())
        return session

    def send(self, session: int, kind: Kind, stream: int = 0, payload: bytes = b"") -> None:
        """Sends a frame; a guest that is gone is noticed by `Session.ended`."""
        self._unsent += HEADER.pack(session, kind, stream, 0, len(payload)) + payload
        self._flush()

    def _flush(self) -> None:
        count = min(len(self._unsent), self._room_bytes)
        if count and self._writer is not None and not self._writer.is_closing():
            self._writer.write(bytes(self._unsent[:count]))
            del self._unsent[:count]
            self._room_bytes -= count

    async def _read(self, reader: asyncio.StreamReader) -> None:
        try:
            while True:
                number, kind, stream, _, length = HEADER.unpack(await reader.readexactly(HEADER.size))
                payload = await reader.readexactly(length)
                if number == LINE:
                    self._room_bytes += struct.unpack("<I", payload)[0]
                    self._flush()
                elif session := self._sessions.get(number):
                    session.receive(Kind(kind), stream, payload)
                    if session.ended.done():
                        del self._sessions[number]
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            for session in self._sessions.values():
                session.lose()

    async def close(self) -> None:
        """Ends the line; programs that still run are lost to it."""
        if self._reading is None or self._writer is None:
            self._host.close()
            return
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._writer.close()


class Session:
    """A program that was started, and its streams."""

    def __init__(self, streams: Streams, number: int) -> None:
        """Use `Streams.begin`."""
        self.number = number
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self._streams = streams
        self._loop = asyncio.get_running_loop()
        self._input_granted = 0
        self._input_lock = threading.Condition()
        self._input_over = False
        self._wake: socket.socket | None = None
        self._outputs: dict[int, queue.SimpleQueue[bytes | None]] = {}
        self._writers: list[threading.Thread] = []

    def attach(self, stdin: int | None, stdout: int, stderr: int) -> None:
        """Connects the streams with open files of this process; None: the input is empty."""
        if stdin is None:
            self._send(Kind.CLOSE, STDIN)
        else:
            self._wake, woken = socket.socketpair()
            threading.Thread(target=self._read_input, args=(stdin, woken), daemon=True).start()
        for stream, file in ((STDOUT, stdout), (STDERR, stderr)):
            self._outputs[stream] = queue.SimpleQueue()
            writer = threading.Thread(target=self._write_output, args=(stream, file), daemon=True)
            writer.start()
            self._writers.append(writer)
            self._send(Kind.GRANT, stream, struct.pack("<I", WINDOW_BYTES))

    async def wait(self) -> Ending:
        """Waits for the end of the program, and until all that it wrote has been passed on.

        Raises:
            GuestError: when its guest is gone.
        """
        ending = await self.ended
        for writer in self._writers:
            while writer.is_alive():
                await asyncio.to_thread(writer.join)
        return ending

    def signal(self, number: int) -> None:
        """Sends a signal to the program and its process group."""
        self._send(Kind.SIGNAL, payload=struct.pack("<I", number))

    def resize(self, rows: int, columns: int) -> None:
        """Tells the program's terminal its new size."""
        self._send(Kind.SIZE, payload=struct.pack("<II", rows, columns))

    def receive(self, kind: Kind, stream: int, payload: bytes) -> None:
        """Takes in a frame of this session."""
        match kind:
            case Kind.DATA if stream in self._outputs:
                self._outputs[stream].put(payload)
            case Kind.CLOSE if stream in self._outputs:
                self._outputs[stream].put(None)
            case Kind.GRANT:
                with self._input_lock:
                    self._input_granted += struct.unpack("<I", payload)[0]
                    self._input_lock.notify()
            case Kind.CLOSE:
                self._end_input()
            case Kind.EXITED:
                status, number = struct.unpack("<II", payload)
                self._end(Ending(128 + number if number else status))
            case Kind.FAILED:
                self._end(Ending(struct.unpack_from("<I", payload)[0], payload[4:].decode(errors="replace")))

    def lose(self) -> None:
        """The line has ended, and with it the session."""
        self._end(None)

    def give_up(self, status: int) -> None:
        """Waits no longer for the program: it counts as ended with `status`."""
        self._end(Ending(status))

    def _end(self, ending: Ending | None) -> None:
        self._end_input()
        for output in self._outputs.values():
            output.put(None)
        if self.ended.done():
            return
        if ending is None:
            self.ended.set_exception(GuestError("the guest ended while a program ran in it"))
            self.ended.exception()  # it may be that nobody waits
        else:
            self.ended.set_result(ending)

    def _end_input(self) -> None:
        with self._input_lock:
            self._input_over = True
            self._input_lock.notify()
        if self._wake:
            self._wake.close()

    def _send(self, kind: Kind, stream: int = 0, payload: bytes = b"") -> None:
        self._streams.send(self.number, kind, stream, payload)

    def _send_from_thread(self, kind: Kind, stream: int, payload: bytes = b"") -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(self._send, kind, stream, payload)

    def _read_input(self, file: int, woken: socket.socket) -> None:
        """Passes on what comes from `file` as far as it was granted; the body of a thread."""
        poll = select.poll()
        poll.register(file, select.POLLIN)
        poll.register(woken, select.POLLIN)
        with woken:
            while True:
                with self._input_lock:
                    self._input_lock.wait_for(lambda: self._input_granted or self._input_over)
                    room = min(self._input_granted, READ_BYTES)
                ready = dict(poll.poll())
                if self._input_over or woken.fileno() in ready:
                    return
                try:
                    data = os.read(file, room)
                except OSError:
                    data = b""
                if not data:
                    self._send_from_thread(Kind.CLOSE, STDIN)
                    return
                with self._input_lock:
                    self._input_granted -= len(data)
                self._send_from_thread(Kind.DATA, STDIN, data)

    def _write_output(self, stream: int, file: int) -> None:
        """Passes on to `file` what the program writes, and grants as much again; the body of a thread."""
        output = self._outputs[stream]
        while (data := output.get()) is not None:
            rest = memoryview(data)
            try:
                while rest:
                    rest = rest[_write(file, rest) :]
            except OSError:
                # Nobody reads it any more: the program is to learn that as it would here.
                self._send_from_thread(Kind.CLOSE, stream)
                return
            self._send_from_thread(Kind.GRANT, stream, struct.pack("<I", len(data)))


def _write(file: int, data: memoryview) -> int:
    """Writes some of `data`, also where somebody else has made the file non-blocking."""
    try:
        return os.write(file, data)
    except BlockingIOError:
        poll = select.poll()
        poll.register(file, select.POLLOUT)
        poll.poll()
        return 0
