"""Sessions in a run that goes on, from another process: the other end of `run/steering/sessions.py`."""

from __future__ import annotations

import contextlib
import subprocess
import tempfile
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import BinaryIO

from dilaton.host.errors import GuestError
from dilaton.host.sessions.frames import Ending
from dilaton.host.sessions.session import Session
from dilaton.host.sessions.streams import Streams
from dilaton.host.tasks import finish
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import take_over


@contextlib.asynccontextmanager
async def session(
    run_dir: Path,
    node: str,
    argv: Sequence[str],
    terminal: tuple[int, int] | None = None,
    env: Mapping[str, str] | None = None,
) -> AsyncIterator[Session]:
    """A program in a node, which is hung up on at the end of the context if it still runs.

    Args:
        run_dir: The run.
        node: Where.
        argv: Program and arguments.
        terminal: Rows and columns of the terminal that it gets; None: pipes.
        env: Variables beside those that all programs of the node have.

    Raises:
        ControlError: no run goes on there, or it refuses.
    """
    line, _ = take_over(
        run_dir, "session.open", node=node, argv=list(argv), terminal=terminal, env=dict(env) if env else {}
    )
    streams = Streams(line)
    await streams.open()
    try:
        yield streams.expect(Session)
    finally:
        await streams.close()


async def attended(
    run_dir: Path, node: str, argv: Sequence[str], stdin: int | None, stdout: int, stderr: int
) -> Ending:
    """Executes a program in a node with open files of this process, and waits for its end.

    Args:
        run_dir: The run.
        node: Where.
        argv: Program and arguments.
        stdin: What it reads; None: nothing.
        stdout: Where its output goes.
        stderr: Where its errors go.

    Raises:
        ControlError: no run goes on there, it refuses, or it ended meanwhile.
    """
    try:
        async with session(run_dir, node, argv) as begun:
            begun.attach(stdin, stdout, stderr)
            return await begun.wait()
    except GuestError as error:
        raise ControlError(f"{run_dir}: the run has ended") from error


def attend(run_dir: Path, node: str, argv: Sequence[str], stdin: int | None, stdout: int, stderr: int) -> Ending:
    """As `attended`, waited for here."""
    return finish(attended(run_dir, node, argv, stdin, stdout, stderr))


async def captured(run_dir: Path, node: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """Executes a program in a node without input, and returns what it printed; as `attended`."""
    with tempfile.TemporaryFile() as stdout, tempfile.TemporaryFile() as stderr:
        ending = await attended(run_dir, node, argv, None, stdout.fileno(), stderr.fileno())
        printed, errors = _text(stdout), _text(stderr)
    return subprocess.CompletedProcess(list(argv), ending.status, printed, ending.reason or errors)


def capture(run_dir: Path, node: str, argv: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """As `captured`, waited for here."""
    return finish(captured(run_dir, node, argv))


def _text(file: BinaryIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
