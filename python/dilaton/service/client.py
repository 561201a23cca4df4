"""A connection to a run's control socket for who waits for many: as `dilaton.run.control.Client`, in an event loop.

The limits are the same: only silence is limited, and a run that works on an answer is not silent.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any

from dilaton.host.processes import is_stopped
from dilaton.host.tasks import within
from dilaton.run.control import sockets as control_socket
from dilaton.run.control.answers import Answer, Name
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import request_line, result_of
from dilaton.run.control.sockets import LOOK_HOST_S, REPLY_BYTES_MAX, SIGN_OF_LIFE, SILENCE_HOST_S


class Connection:
    """A connection to a run; see `connected`. One request after the other."""

    def __init__(self, run_dir: Path, pid: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Use `connected`."""
        self._run_dir = run_dir
        self._pid = pid
        self._reader = reader
        self._writer = writer

    async def request(self, verb: Name[Answer], **arguments: Any) -> Answer:
        """Asks for something, and waits until it is done.

        Raises:
            ControlError: it is refused, the run ended meanwhile, or is stopped or silent.
        """
        self._writer.write(request_line(verb, arguments))
        line = SIGN_OF_LIFE
        while line == SIGN_OF_LIFE:
            line = await self._line()
        answer: Answer = result_of(line)
        return answer

    async def lines(self) -> AsyncGenerator[bytes, None]:
        """What the connection carries, from the reply to a verb that takes it over; to its end."""
        with contextlib.suppress(ConnectionError):
            while (line := await self._reader.readline()).endswith(b"\n"):
                yield line

    async def wait_for_end(self) -> None:
        """Waits until the run has ended and no longer listens."""
        with contextlib.suppress(ConnectionError):
            while await self._reader.read(REPLY_BYTES_MAX):
                pass

    async def _line(self) -> bytes:
        began = time.monotonic()
        while True:
            try:
                line = await within(LOOK_HOST_S, self._reader.readline())
            except TimeoutError:
                if is_stopped(self._pid):
                    what = "is stopped, as by Ctrl-Z, and answers nobody"
                    raise ControlError(f"process {self._pid} of the run {what}", run_dir=self._run_dir) from None
                if time.monotonic() - began > SILENCE_HOST_S:
                    what = f"has not answered within {SILENCE_HOST_S:.0f} s"
                    raise ControlError(f"process {self._pid} of the run {what}", run_dir=self._run_dir) from None
            except (ConnectionError, ValueError):
                line = b""
                break
            else:
                break
        if not line.endswith(b"\n"):
            raise ControlError("the run has ended", run_dir=self._run_dir)
        return line


@contextlib.asynccontextmanager
async def connected(run_dir: Path) -> AsyncIterator[Connection]:
    """A connection to the run in `run_dir`. When it is left, the run goes on with what it was told.

    Raises:
        ControlError: no run of this user goes on there.
    """
    line = await asyncio.to_thread(control_socket.connect, run_dir)
    line.connection.setblocking(False)
    reader, writer = await asyncio.open_unix_connection(sock=line.connection, limit=REPLY_BYTES_MAX)
    try:
        yield Connection(run_dir, line.pid, reader, writer)
    finally:
        writer.close()
