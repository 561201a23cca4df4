"""`dilaton shell`: a program in a node of a run that goes on, with our streams or our terminal."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path

from dilaton.cli.errors import FailedError, complain, refusing
from dilaton.cli.steering.attach import Terminal, attend, wants_terminal
from dilaton.host.errors import GuestError
from dilaton.host.sessions.frames import Ending
from dilaton.run.control.answers import SHOW
from dilaton.run.control.errors import ControlError
from dilaton.run.control.requests import Client
from dilaton.run.control.session_client import Reached, reached, session
from dilaton.run.control.terminal_client import SHELL
from dilaton.service.catalogue import find

TERMINAL_VARIABLES = ("TERM", "COLORTERM")
"""What of our environment a program has to know of our terminal."""


@refusing(ControlError)
def open_shell(run: str, node: str, argv: Sequence[str], terminal: bool | None) -> int:
    """Runs a program in a node; returns its exit status, as a shell has it.

    Args:
        run: The run.
        node: Where.
        argv: Program and arguments; none: a shell.
        terminal: Whether it gets a terminal; None: if we have one.
    """
    has_terminal = wants_terminal(terminal)
    run_dir = find(run)
    if has_terminal:
        _say_whether_held(run_dir)
    return run_here(reached(run_dir), node, argv or SHELL, has_terminal)


def run_here(run: Reached, node: str, argv: Sequence[str], has_terminal: bool, heard: list[int] | None = None) -> int:
    """Runs a program in a node, with our streams or our terminal; returns its exit status.

    Args:
        run: The run.
        node: Where.
        argv: Program and arguments.
        has_terminal: Whether it gets our terminal.
        heard: Gets the signals that have meanwhile asked for an end, which the program has got too.

    Raises:
        ControlError: no run goes on there, or it refuses.
        FailedError: it ended while the program ran.
    """
    with Terminal() if has_terminal else contextlib.nullcontext() as terminal:
        try:
            ending = asyncio.run(_attended(run, node, argv, terminal, heard))
        except GuestError as error:
            raise FailedError(f"{run.name}: the run has ended") from error
    if ending.reason:
        complain(ending.reason)
    return ending.status


async def _attended(
    run: Reached, node: str, argv: Sequence[str], terminal: Terminal | None, heard: list[int] | None
) -> Ending:
    size = terminal.size if terminal else None
    env = {name: os.environ[name] for name in TERMINAL_VARIABLES if terminal and name in os.environ}
    async with session(run, node, argv, size, env) as begun:
        return await attend(begun, terminal, heard)


def _say_whether_held(run_dir: Path) -> None:
    with Client(run_dir) as client:
        state = client.request(SHOW)
    if state["clock"] and state["clock"]["held"]:
        release = f"dilaton clock {shlex.quote(str(run_dir))} release"
        print(
            f"the clock is held at {state['clock']['virtual_s']:.6f} s: what waits does so until {release}",
            file=sys.stderr,
        )
