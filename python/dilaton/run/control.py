"""The control socket: how other processes speak to a run while it goes.

The process that executes a run listens on an *abstract* Unix socket, a name that lives in the kernel, not in the file
system: it goes with its process, so no death leaves anything behind, and a guest, whose jail has a network namespace of
its own, cannot see it. The name is made from the run directory, which is how a run is named everywhere. Only processes
of the same user, or root's, are heard.

A request is a line of JSON, `{"verb": "clock.until", "at_ns": 5000000000}`, and so is its reply: `{"result": {…}}` or
`{"error": "what is wrong with it"}`. A connection carries one request after the other, or, from the reply to a verb
that takes it over, whatever that verb says. What the verbs are and do is handed in: this file only carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import json
import os
import re
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dilaton.host.errors import GuestError
from dilaton.host.processes import is_stopped

REQUEST_BYTES_MAX = 1 << 16
REPLY_BYTES_MAX = 1 << 24

PEER = struct.Struct("=iII")
"""What SO_PEERCRED tells."""

Request = dict[str, Any]
Result = dict[str, Any]


@dataclass(frozen=True)
class Takeover:
    """What a verb answers that takes the connection over: the result, and what then goes on until it returns."""

    result: Result
    converse: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


Handler = Callable[[Request], Awaitable[Result | Takeover]]
"""Answers a request; a `ControlError` becomes the reply's `error`, and so does a fault of a guest or of the host."""


class ControlError(Exception):
    """A request cannot be done, or there is no run to do it; the message says why."""


def socket_name(run_dir: Path) -> str:
    """The name of a run's control socket, without the leading NUL byte."""
    digest = hashlib.sha256(os.fsencode(run_dir.resolve())).hexdigest()
    return f"{_prefix()}{digest[:16]}"


def _prefix() -> str:
    return f"dilaton-{os.getuid()}-"


@contextlib.asynccontextmanager
async def serve(run_dir: Path, handlers: Mapping[str, Handler]) -> AsyncIterator[None]:
    """Answers requests for the run in `run_dir` as long as the context lasts.

    Args:
        run_dir: The run directory.
        handlers: By verb.
    """
    connections: set[asyncio.Task[None]] = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        try:
            await _answer(reader, writer, handlers)
        except (ConnectionError, asyncio.CancelledError):
            pass  # the client is gone, or the run is over
        finally:
            connections.discard(task)
            writer.close()

    name = "\0" + socket_name(run_dir)
    server = await asyncio.start_unix_server(connected, name, limit=REQUEST_BYTES_MAX)
    try:
        yield
    finally:
        server.close()
        for task in connections:
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handlers: Mapping[str, Handler]) -> None:
    if _peer(writer.get_extra_info("socket"))[1] not in (0, os.getuid()):
        return
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            return  # longer than any request
        if not line.endswith(b"\n"):
            return
        takeover = None
        try:
            answer = await _handle(line, handlers)
            takeover = answer if isinstance(answer, Takeover) else None
            reply: dict[str, Any] = {"result": answer.result if isinstance(answer, Takeover) else answer}
        except (ControlError, GuestError, OSError) as error:
            reply = {"error": str(error)}
        writer.write(json.dumps(reply).encode() + b"\n")
        await writer.drain()
        if takeover:
            await takeover.converse(reader, writer)
            return


def _peer(connection: socket.socket) -> tuple[int, int, int]:
    """Who is at the other end: process, user and group."""
    process, user, group = PEER.unpack(connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, PEER.size))
    return process, user, group


async def _handle(line: bytes, handlers: Mapping[str, Handler]) -> Result | Takeover:
    try:
        request = json.loads(line)
        verb = str(request.pop("verb"))
    except (ValueError, KeyError, AttributeError, TypeError) as error:
        raise ControlError("a request is a line of JSON: an object with a verb") from error
    if verb not in handlers:
        raise ControlError(f"{verb}: this run has no such verb; it has {', '.join(sorted(handlers))}")
    return await handlers[verb](request)


def argument(request: Request, name: str, parse: Callable[[Any], Any]) -> Any:
    """An argument of a request, as `parse` reads it.

    Raises:
        ControlError: it is missing, or `parse` refuses it.
    """
    try:
        return parse(request[name])
    except KeyError:
        raise ControlError(f"{name} is missing") from None
    except (ValueError, TypeError) as error:
        raise ControlError(f"{name}: {error}") from error


class Client:
    """A connection to a run, from another process. Blocking; closed at the end of its `with`."""

    def __init__(self, run_dir: Path) -> None:
        """Connects to the run in `run_dir`.

        Raises:
            ControlError: no run goes on there.
        """
        self._run_dir = run_dir
        self._socket = _connect(run_dir)
        self._lines = self._socket.makefile("rb")

    def __enter__(self) -> Client:
        """This client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connection."""
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._lines.close()
        self._socket.close()

    def request(self, verb: str, **arguments: Any) -> Result:
        """Asks for something, and waits until it is done.

        Raises:
            ControlError: it is refused, or the run ended meanwhile.
        """
        try:
            self._socket.sendall(json.dumps({"verb": verb, **arguments}).encode() + b"\n")
            line = self._lines.readline(REPLY_BYTES_MAX)
        except OSError as error:
            raise ControlError(f"{self._run_dir}: the run has ended") from error
        if not line.endswith(b"\n"):
            raise ControlError(f"{self._run_dir}: the run has ended")
        reply = json.loads(line)
        if "error" in reply:
            raise ControlError(reply["error"])
        result: Result = reply["result"]
        return result

    def wait_for_end(self) -> None:
        """Waits until the run has ended and no longer listens; to be used after a request."""
        with contextlib.suppress(OSError):
            self._lines.read()


def take_over(run_dir: Path, verb: str, **arguments: Any) -> tuple[socket.socket, Result]:
    """Asks for something that takes the connection over: the connection, and the result.

    Raises:
        ControlError: no run goes on there, or it refuses.
    """
    connection = _connect(run_dir)
    try:
        connection.sendall(json.dumps({"verb": verb, **arguments}).encode() + b"\n")
        # Without a buffer, since what follows the line is not ours to read.
        with connection.makefile("rb", buffering=0) as lines:
            reply = json.loads(lines.readline(REPLY_BYTES_MAX) or b'{"error": "the run has ended"}')
        if "error" in reply:
            raise ControlError(reply["error"])
    except OSError as error:
        connection.close()
        raise ControlError(f"{run_dir}: the run has ended") from error
    except BaseException:
        connection.close()
        raise
    return connection, reply["result"]


def _connect(run_dir: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        connection.connect("\0" + socket_name(run_dir))
    except OSError as error:
        connection.close()
        raise ControlError(f"{run_dir}: no run is going on there") from error
    return connection


def running() -> list[Result]:
    """What `show` answers for each run of this user that goes on, in the order of their directories.

    A run whose process is stopped, as by Ctrl-Z, is left out: it answers nobody before it goes on.
    """
    with open("/proc/net/unix", encoding="utf-8", errors="replace") as table:
        names = set(re.findall(rf"@({re.escape(_prefix())}[0-9a-f]{{16}})$", table.read(), re.MULTILINE))
    found = []
    for name in names:
        # One that has ended meanwhile, or is stopped, is none.
        with contextlib.suppress(ControlError, ValueError):
            found.append(_ask(name))
    return sorted(found, key=lambda run: str(run["run_dir"]))


def _ask(name: str) -> Result:
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection, connection.makefile("rb") as lines:
        try:
            connection.connect("\0" + name)
            if is_stopped(_peer(connection)[0]):
                raise ControlError(f"{name}: is stopped, and would not answer")
            connection.sendall(b'{"verb": "show"}\n')
            line = lines.readline(REPLY_BYTES_MAX)
        except OSError as error:
            raise ControlError(f"{name}: gone") from error
    reply = json.loads(line)
    if "result" not in reply:
        raise ControlError(f"{name}: {reply}")
    result: Result = reply["result"]
    return result


def find(run: str) -> Path:
    """The directory of the run that a user means by `run`: that directory, or the name of the only lab of it that runs.

    Raises:
        ControlError: there is no such run, or more than one.
    """
    if Path(run).is_dir():
        return Path(run)
    runs = running()
    matches = [one for one in runs if run in (one["lab"], Path(one["run_dir"]).name)]
    if len(matches) == 1:
        return Path(matches[0]["run_dir"])
    if matches:
        raise ControlError(f"{run}: several runs of that name go on; say which: {_directories(matches)}")
    known = f"these run: {_directories(runs)}" if runs else "nothing runs"
    raise ControlError(f"{run}: not a run directory, nor the name of a lab that runs; {known}")


def _directories(runs: list[Result]) -> str:
    return ", ".join(str(run["run_dir"]) for run in runs)
