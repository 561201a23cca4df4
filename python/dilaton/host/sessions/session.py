"""A session, and the bytes that pass between its line and files of this machine: terminals, pipes, regular files.

Some of these cannot be waited for without a thread, and none may be made non-blocking, since they belong to the
caller's shell too. So each stream has a thread that reads or writes its file as slowly as that goes; the line itself is
the event loop's.
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
from collections.abc import Callable

from dilaton.host.errors import GuestError
from dilaton.host.sessions.frames import STDERR, STDIN, STDOUT, Ending, Kind

WINDOW_BYTES = 1 << 20
"""How much of a program's output may be on the way to a file of this machine that does not take it."""

READ_BYTES = 1 << 14

Send = Callable[[Kind, int, bytes], None]
"""Sends a frame of a session: kind, stream, payload. A line that is gone is noticed by `Session.ended`."""


class Session:
    """A program that was started, and its streams."""

    def __init__(self, send: Send) -> None:
        """Use `Streams.begin`."""
        self.ended: asyncio.Future[Ending] = asyncio.get_running_loop().create_future()
        self.opened = asyncio.Event()
        """Set once the agent has taken the request in, or never will."""
        self._send_frame = send
        self._loop = asyncio.get_running_loop()
        self._input_granted = 0
        self._input_lock = threading.Condition()
        self._input_over = False
        self._wake: socket.socket | None = None
        self._outputs: dict[int, queue.SimpleQueue[bytes | None]] = {
            stream: queue.SimpleQueue() for stream in (STDOUT, STDERR)
        }
        """What has come of each output. A program may have written and ended before `attach`: what it left in its pipes
        comes with its end, whatever was granted."""
        self._written: list[asyncio.Event] = []
        """Set for each output once nothing of it is to be passed on any more."""

    def attach(self, stdin: int | None, stdout: int, stderr: int) -> None:
        """Connects the streams with open files of this process; None: the input is empty."""
        if stdin is None:
            self._send(Kind.CLOSE, STDIN)
        elif not self.ended.done():
            self._wake, woken = socket.socketpair()
            threading.Thread(target=self._read_input, args=(stdin, woken), daemon=True).start()
        for stream, file in ((STDOUT, stdout), (STDERR, stderr)):
            self._written.append(written := asyncio.Event())
            threading.Thread(target=self._write_output, args=(stream, file, written), daemon=True).start()
            self._send(Kind.GRANT, stream, struct.pack("<I", WINDOW_BYTES))

    async def wait(self) -> Ending:
        """Waits for the end of the program, and until all that it wrote has been passed on.

        Raises:
            GuestError: when its guest is gone.
        """
        ending = await self.ended
        for written in self._written:
            await written.wait()
        return ending

    def signal(self, number: int) -> None:
        """Sends a signal to the program and its process group."""
        self._send(Kind.SIGNAL, payload=struct.pack("<I", number))

    def resize(self, rows: int, columns: int) -> None:
        """Tells the program's terminal its new size."""
        self._send(Kind.SIZE, payload=struct.pack("<II", rows, columns))

    def receive(self, kind: Kind, stream: int, payload: bytes) -> None:
        """Takes in a frame of this session."""
        self.opened.set()
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
        self.opened.set()
        self._end(None)

    def give_up(self, status: int) -> None:
        """Waits no longer: the program counts as ended with `status`, unless it has, and its output as passed on."""
        self._end(Ending(status))
        for written in self._written:
            written.set()

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
        self._send_frame(kind, stream, payload)

    def _send_from_thread(self, kind: Kind, stream: int, payload: bytes = b"") -> None:
        self._from_thread(self._send, kind, stream, payload)

    def _from_thread(self, act: Callable[..., None], *arguments: object) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has been closed
            self._loop.call_soon_threadsafe(act, *arguments)

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

    def _write_output(self, stream: int, file: int, written: asyncio.Event) -> None:
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
                break
            self._send_from_thread(Kind.GRANT, stream, struct.pack("<I", len(data)))
        self._from_thread(written.set)


def _write(file: int, data: memoryview) -> int:
    """Writes some of `data`, also where somebody else has made the file non-blocking."""
    try:
        return os.write(file, data)
    except BlockingIOError:
        poll = select.poll()
        poll.register(file, select.POLLOUT)
        poll.poll()
        return 0
