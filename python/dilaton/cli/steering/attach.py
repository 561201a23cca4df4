"""This process's own streams, signals and terminal, lent to a program in a guest.

A terminal is put into raw mode meanwhile: what is typed, Ctrl-C included, is for the program's own terminal in the
guest to make sense of. It has to be itself again afterwards, also when this process is killed and can do nothing any
more. So a child, the *guardian*, does nothing but wait for that: its end of a pipe is closed with us.
"""

from __future__ import annotations

import asyncio
import os
import signal
import termios
import tty
from types import TracebackType
from typing import Any

from dilaton.cli.errors import BadInputError
from dilaton.host.sessions.frames import Ending
from dilaton.host.sessions.session import Session

FORWARDED = (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1, signal.SIGUSR2)
"""What is sent to the program when it is sent to us."""

FINAL = (signal.SIGHUP, signal.SIGTERM)
"""Those of them that ask for an end, which comes in any case after `PATIENCE_HOST_S`."""

PATIENCE_HOST_S = 10.0
"""Counted in the host's time, however slow the guest is: who sends such a signal waits in its seconds, as init systems
and container engines do, and kills after about as long."""

STREAMS = (0, 1, 2)
"""Our own."""

Streams = tuple[int | None, int, int]


def wants_terminal(asked: bool | None) -> bool:
    """Whether a program is given a terminal: as asked, or if we have one.

    Raises:
        BadInputError: one was asked for, and we have none.
    """
    has_terminal = os.isatty(0) and os.isatty(1)
    if asked and not has_terminal:
        raise BadInputError("-t: standard input and output are no terminal; leave it out")
    return has_terminal if asked is None else asked


def signalled(number: int) -> int:
    """The exit status by which shells say that a signal was the end."""
    return 128 + number


class Terminal:
    """The terminal of this process; itself again at the end of its `with`, or of this process."""

    def __enter__(self) -> Terminal:
        """Keeps its settings."""
        self._settings = termios.tcgetattr(0)
        gone, self._alive = os.pipe()
        self._guardian = os.fork()
        if self._guardian == 0:
            _guard(gone, self._settings)
        os.close(gone)
        return self

    def make_raw(self) -> None:
        """Hands everything that is typed on as it is."""
        tty.setraw(0)

    @property
    def size(self) -> tuple[int, int]:
        """Rows and columns."""
        columns, rows = os.get_terminal_size(0)
        return rows, columns

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Gives it its settings back."""
        os.close(self._alive)
        os.waitpid(self._guardian, 0)


def _guard(gone: int, settings: list[Any]) -> None:
    """Waits for the end of the other process, then gives the terminal its settings back; ends this process."""
    for number in (*FORWARDED, signal.SIGTSTP, signal.SIGTTOU):
        signal.signal(number, signal.SIG_IGN)
    os.closerange(1, gone)
    os.closerange(gone + 1, os.sysconf("SC_OPEN_MAX"))
    os.read(gone, 1)
    try:
        termios.tcsetattr(0, termios.TCSANOW, settings)
    finally:
        os._exit(0)


async def attend(
    session: Session, terminal: Terminal | None, heard: list[int] | None = None, streams: Streams = STREAMS
) -> Ending:
    """Connects a session with this process until its program ends.

    Args:
        session: Just begun.
        terminal: What it is shown on; None: streams that are no terminal to it.
        heard: Gets the signals that asked for an end.
        streams: Open files for its input, if it has any, its output and its errors.

    Raises:
        GuestError: its guest is gone.
    """
    loop = asyncio.get_running_loop()

    def forward(number: signal.Signals) -> None:
        session.signal(number)
        if number in FINAL:
            if heard is not None:
                heard.append(number)
            loop.call_later(PATIENCE_HOST_S, session.give_up, signalled(number))

    for number in FORWARDED:
        loop.add_signal_handler(number, forward, number)
    if terminal:
        terminal.make_raw()
        loop.add_signal_handler(signal.SIGWINCH, lambda: session.resize(*terminal.size))
    session.attach(*streams)
    return await session.wait()
