"""The control socket: how other processes speak to a run while it goes.

The process that executes a run listens on an *abstract* Unix socket, a name that lives in the kernel, not in the file
system: it goes with its process, so no death leaves anything behind, and a guest, whose jail has a network namespace of
its own, cannot see it. Who may speak to whom, and for how long anybody waits, is told in `sockets.py`.

A request is a line of JSON, `{"verb": "clock.until", "at": "5s"}`, and so is its reply: `{"result": {…}}` or `{"error":
"what is wrong with it", "kind": "argument"}`. Empty lines before a reply say that it is being worked on. A connection
carries one request after the other, or, from the reply to a verb that takes it over, whatever that verb says. What the
verbs take and answer is in `verbs.py`, and what they do is handed in: this file only carries.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar, get_args

from dilaton.host.errors import GuestError
from dilaton.host.tasks import within
from dilaton.run.control import sockets
from dilaton.run.control.answers import Name
from dilaton.run.control.errors import ControlError, ErrorKind
from dilaton.run.control.sockets import SIGN_OF_LIFE, SIGN_OF_LIFE_HOST_S, Line

REQUEST_BYTES_MAX = 1 << 16

BACKLOG = 100
"""Connections that wait to be accepted; who finds no room tries again."""

FAREWELL_HOST_S = 1.0
"""What a client who does not read can delay the end of a run by."""

Request = dict[str, Any]
Result = dict[str, Any]
Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Takeover:
    """What a verb answers that takes the connection over: the result, and what then goes on until it returns."""

    result: Result
    converse: Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


Handler = Callable[[Request], Awaitable[Result | Takeover]]
"""Answers a request; a `ControlError` becomes the reply's `error`, and so does a fault of a guest or of the host."""


@contextlib.asynccontextmanager
async def serve(run_dir: Path, handlers: Mapping[str, Handler]) -> AsyncIterator[None]:
    """Answers requests for the run in `run_dir` as long as the context lasts.

    Args:
        run_dir: The run directory.
        handlers: By verb.
    """
    loop = asyncio.get_running_loop()
    connections: dict[asyncio.Task[None], socket.socket] = {}
    answering: set[asyncio.Task[None]] = set()

    async def converse(connection: socket.socket) -> None:
        task = asyncio.current_task()
        assert task is not None
        reader, writer = await asyncio.open_unix_connection(sock=connection, limit=REQUEST_BYTES_MAX)
        try:
            with contextlib.suppress(ConnectionError):  # the client is gone
                await _answer(reader, writer, handlers)
        finally:
            answering.discard(task)
            await _farewell(writer)

    def accept() -> None:
        with contextlib.suppress(OSError):  # the client is gone, or there is no descriptor left
            connection, _ = listening.accept()
            connection.setblocking(False)
            task = loop.create_task(converse(connection))
            connections[task] = connection
            answering.add(task)
            # A task that is cancelled before its first step does nothing, not even close.
            task.add_done_callback(lambda task: connections.pop(task).close())

    # asyncio's own server forgets, open, a connection that it has accepted when it is closed (Python 3.11).
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_NONBLOCK) as listening:
        listening.bind("\0" + sockets.name_for(run_dir))
        listening.listen(BACKLOG)
        loop.add_reader(listening, accept)
        try:
            yield
        finally:
            loop.remove_reader(listening)
            for task in answering:
                task.cancel()
            await asyncio.gather(*connections, return_exceptions=True)


async def _farewell(writer: asyncio.StreamWriter) -> None:
    """Closes a connection: what was said last has some time to reach a client who still reads."""
    writer.close()
    try:
        await within(FAREWELL_HOST_S, asyncio.shield(writer.wait_closed()))
    except (TimeoutError, OSError):
        writer.transport.abort()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, handlers: Mapping[str, Handler]) -> None:
    if not sockets.is_heard(writer.get_extra_info("socket")):
        return
    while True:
        try:
            line = await reader.readline()
        except ValueError:
            said = f"a request is a line of at most {REQUEST_BYTES_MAX} bytes, and this one is longer"
            writer.write(json.dumps({"error": said, "kind": "request"}).encode() + b"\n")
            return
        if not line.endswith(b"\n"):
            return
        takeover = None
        try:
            answer = await _showing_life(_handle(line, handlers), writer)
            takeover = answer if isinstance(answer, Takeover) else None
            reply: dict[str, Any] = {"result": answer.result if isinstance(answer, Takeover) else answer}
        except ControlError as error:
            reply = {"error": str(error), "kind": error.kind}
        except (GuestError, OSError) as error:
            reply = {"error": str(error), "kind": "guest" if isinstance(error, GuestError) else "host"}
        writer.write(json.dumps(reply).encode() + b"\n")
        await writer.drain()
        if takeover:
            await takeover.converse(reader, writer)
            return


async def _showing_life(work: Coroutine[Any, Any, Answer], writer: asyncio.StreamWriter) -> Answer:
    """Does some work; whoever waits for it gets a sign of life now and then."""
    task = asyncio.create_task(work)
    try:
        while not (await asyncio.wait({task}, timeout=SIGN_OF_LIFE_HOST_S))[0]:
            if not writer.is_closing():
                writer.write(SIGN_OF_LIFE)
    except asyncio.CancelledError:
        task.cancel()
        await asyncio.wait({task})
        raise
    return task.result()


async def _handle(line: bytes, handlers: Mapping[str, Handler]) -> Result | Takeover:
    try:
        request = json.loads(line)
        verb = str(request.pop("verb"))
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as error:
        raise ControlError("a request is a line of JSON: an object with a verb", "request") from error
    if verb not in handlers:
        now = ", ".join(sorted(handlers))
        raise ControlError(f"{verb}: not of this run, or not while it begins or ends; what it does now: {now}", "verb")
    return await handlers[verb](request)


class Client:
    """A connection to a run, from another process. Blocking; closed at the end of its `with`."""

    def __init__(self, run_dir: Path) -> None:
        """Connects to the run in `run_dir`.

        Raises:
            ControlError: no run goes on there.
        """
        self._run_dir = run_dir
        self._line = sockets.connect(run_dir)

    def __enter__(self) -> Client:
        """This client."""
        return self

    def __exit__(self, *_: object) -> None:
        """Closes the connection."""
        self.close()

    def close(self) -> None:
        """Closes the connection."""
        self._line.close()

    def interrupt(self) -> None:
        """Ends, from another thread, what waits here: it finds the connection closed."""
        with contextlib.suppress(OSError):
            self._line.connection.shutdown(socket.SHUT_RDWR)

    def request(self, verb: Name[Answer], **arguments: Any) -> Answer:
        """Asks for something, and waits until it is done.

        Raises:
            ControlError: it is refused, the run ended meanwhile, or is stopped or silent.
        """
        return _asked(self._run_dir, self._line, verb, arguments)

    def wait_for_end(self) -> None:
        """Waits until the run has ended and no longer listens; to be used after a request."""
        self._line.wait_for_end()


def take_over(run_dir: Path, verb: Name[Answer], **arguments: Any) -> tuple[socket.socket, Answer]:
    """Asks for something that takes the connection over: the connection, and the result.

    Raises:
        ControlError: no run goes on there, it refuses, or is stopped or silent.
    """
    line = sockets.connect(run_dir)
    try:
        result = _asked(run_dir, line, verb, arguments)
    except BaseException:
        line.close()
        raise
    line.connection.settimeout(None)
    return line.connection, result


def _asked(run_dir: Path, line: Line, verb: Name[Answer], arguments: Mapping[str, Any]) -> Answer:
    """What a run answers to a request."""
    try:
        line.send(request_line(verb, arguments))
        reply = line.receive()
    except OSError as error:
        raise ControlError("the run has ended", run_dir=run_dir) from error
    except ControlError as error:
        raise ControlError(error.message, run_dir=run_dir) from None
    if not reply.endswith(b"\n"):
        raise ControlError("the run has ended", run_dir=run_dir)
    answer: Answer = result_of(reply)
    return answer


def request_line(verb: str, arguments: Mapping[str, Any]) -> bytes:
    """A request as it is sent."""
    return json.dumps({"verb": verb, **arguments}).encode() + b"\n"


def result_of(reply: bytes) -> Any:
    """The result in a reply, of the type that the verb answers (`answers.py`).

    Raises:
        ControlError: the reply is an error, or none.
    """
    try:
        said = json.loads(reply)
    except (ValueError, RecursionError):
        said = None
    match said:
        case {"error": str(error), **rest}:
            raise ControlError(error, _kind(rest.get("kind")))
        case {"result": dict(result)}:
            return result
    raise ControlError("the run answers in no words that this version of Dilaton knows")


def _kind(said: object) -> ErrorKind:
    """The kind of an error; one that this version of Dilaton does not know is that of most."""
    kinds: tuple[ErrorKind, ...] = get_args(ErrorKind)
    return next((kind for kind in kinds if kind == said), "refused")
