"""Sessions in a run that goes on, from another process: the other end of `run/steering/sessions.py`."""

from __future__ import annotations

import contextlib
import socket
import subprocess
import tempfile
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Protocol, TypeVar

from dilaton.host.errors import GuestError
from dilaton.host.sessions.frames import Ending
from dilaton.host.sessions.session import Send, Session
from dilaton.host.sessions.streams import Receiver, Streams
from dilaton.host.tasks import finish
from dilaton.run.control.answers import PORT_OPEN, SESSION_OPEN, TUNNEL_OPEN
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import take_over

End = TypeVar("End", bound=Receiver)


class Line(Protocol):
    """Starts a program in a node, and gives the connection that carries its frames until the context ends.

    Raises:
        ControlError: no run goes on there, or it refuses.
    """

    def __call__(
        self, node: str, argv: Sequence[str], terminal: tuple[int, int] | None, env: Mapping[str, str]
    ) -> contextlib.AbstractAsyncContextManager[socket.socket]:
        """As the arguments of `session`."""


class Port(Protocol):
    """As `Line`, for a connection to a port of a node, which the program's input and output are."""

    def __call__(self, node: str, port: int) -> contextlib.AbstractAsyncContextManager[socket.socket]:
        """Connects to it."""


class Tunnel(Protocol):
    """As `Line`, for packets of a machine outside, which the program's input and output are, each after its length."""

    def __call__(self, node: str, addresses: Sequence[str]) -> contextlib.AbstractAsyncContextManager[socket.socket]:
        """Has it there by these addresses, at most one of IPv4 and one of IPv6."""


@dataclass(frozen=True)
class Reached:
    """A run in whose nodes programs can be started: one of this machine, or of a server.

    Attributes:
        name: What it is called in messages.
        line: Starts one.
        port: Connects to a port.
        tunnel: Has a machine outside in the network of a node.
    """

    name: str
    line: Line
    port: Port
    tunnel: Tunnel


def reached(run_dir: Path) -> Reached:
    """A run of this machine."""

    @contextlib.asynccontextmanager
    async def line(
        node: str, argv: Sequence[str], terminal: tuple[int, int] | None, env: Mapping[str, str]
    ) -> AsyncIterator[socket.socket]:
        asked = {"node": node, "argv": list(argv), "terminal": terminal, "env": dict(env)}
        yield take_over(run_dir, SESSION_OPEN, **asked)[0]

    @contextlib.asynccontextmanager
    async def port(node: str, port: int) -> AsyncIterator[socket.socket]:
        yield take_over(run_dir, PORT_OPEN, node=node, port=port)[0]

    @contextlib.asynccontextmanager
    async def tunnel(node: str, addresses: Sequence[str]) -> AsyncIterator[socket.socket]:
        yield take_over(run_dir, TUNNEL_OPEN, node=node, addresses=list(addresses))[0]

    return Reached(str(run_dir), line, port, tunnel)


@contextlib.asynccontextmanager
async def session(
    run: Reached,
    node: str,
    argv: Sequence[str],
    terminal: tuple[int, int] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Session]:
    """A program in a node, which is hung up on at the end of the context if it still runs.

    Args:
        run: The run.
        node: Where.
        argv: Program and arguments.
        terminal: Rows and columns of the terminal that it gets; None: pipes.
        env: Variables beside those that all programs of the node have.

    Raises:
        ControlError: no run goes on there, or it refuses.
    """
    async with over(run.line(node, argv, terminal, env or {}), Session) as begun:
        yield begun


@contextlib.asynccontextmanager
async def over(
    carried: contextlib.AbstractAsyncContextManager[socket.socket], kind: Callable[[Send], End]
) -> AsyncIterator[End]:
    """Our end of a session, of this kind, whose frames a connection carries as long as the context lasts."""
    async with carried as line:
        streams = Streams(line)
        await streams.open()
        try:
            yield streams.expect(kind)
        finally:
            await streams.close()


async def attended(run: Reached, node: str, argv: Sequence[str], stdin: int | None, stdout: int, stderr: int) -> Ending:
    """Executes a program in a node with open files of this process, and waits for its end.

    Args:
        run: The run.
        node: Where.
        argv: Program and arguments.
        stdin: What it reads; None: nothing.
        stdout: Where its output goes.
        stderr: Where its errors go.

    Raises:
        ControlError: no run goes on there, it refuses, or it ended meanwhile.
    """
    try:
        async with session(run, node, argv) as begun:
            begun.attach(stdin, stdout, stderr)
            return await begun.wait()
    except GuestError as error:
        raise ControlError(f"{run.name}: the run has ended") from error


def attend(run: Reached, node: str, argv: Sequence[str], stdin: int | None, stdout: int, stderr: int) -> Ending:
    """As `attended`, waited for here."""
    return finish(attended(run, node, argv, stdin, stdout, stderr))


async def captured(run: Reached, node: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Executes a program in a node without input, and returns what it printed; as `attended`."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        ending = await attended(run, node, argv, None, stdout.fileno(), stderr.fileno())
        printed, errors = _text(stdout), _text(stderr)
    return subprocess.CompletedProcess(list(argv), ending.status, printed, ending.reason or errors)


def capture(run: Reached, node: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """As `captured`, waited for here."""
    return finish(captured(run, node, argv))


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
