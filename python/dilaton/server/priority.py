"""Which of this machine's processes go first: the server before what it starts, where it may say so.

**Problem.** A call takes the server a few milliseconds of a core, and a class of thirty asks for them beside thirty
runs that each take what they get. By its share of a core the server would come soon enough on average, but not for all
who ask at one instant.

**Rule.** Runs go behind whoever launches them (`service/launch.py`), which everybody may have. Where Linux lets the
server go first, as root or by CAP_SYS_NICE, it does that, too, and what it starts begins as it began itself.
"""

from __future__ import annotations

import contextlib
import os

from dilaton.host.files import program
from dilaton.host.processes import below, is_session_nice

FIRST = -10
"""How nice a server is that goes first: of a core that another one wants, too, it gets nine tenths (sched(7))."""

SOON = -5
"""How nice those are then that read what somebody waits for: beside both cores of them, the server still goes first."""

_BEGAN = os.getpriority(os.PRIO_PROCESS, 0)
"""How nice this process was when it began."""


def go_first() -> None:
    """Has this process go before all others, where it may.

    Where Linux groups processes by their sessions, that takes a session of the server's own, as a service has: a
    terminal's is that of other programs, too, and they stay what they are.
    """
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, min(FIRST, _BEGAN))
        if os.getsid(0) == os.getpid():
            is_session_nice(os.getpid(), FIRST)


def go_soon(pid: int) -> None:
    """Has a process, and what it has started, go before all but this one, where this one goes first."""
    if nicer():
        with contextlib.suppress(OSError):
            for one in (pid, *below(pid)):
                os.setpriority(os.PRIO_PROCESS, one, SOON)
                if os.getsid(one) != os.getsid(0):
                    is_session_nice(one, SOON)


def nicer() -> int:
    """By how much nicer what is started has to be than this process, to be as this one began."""
    return _BEGAN - os.getpriority(os.PRIO_PROCESS, 0)


def as_begun() -> list[str]:
    """What a command line begins with, so that what is started is as nice as this process was when it began."""
    return [str(program("nice", "coreutils")), f"--adjustment={nicer()}"] if nicer() else []
