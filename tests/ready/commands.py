"""Commands that are forked from a process that has imported the command line already; see `starter`.

Two of these are asked by turns: each orders its sets by a seed of its own, as two commands do. The first command of each verb
is a process of its own all the same: only that shows that a verb imports what it uses.
"""

from __future__ import annotations

import atexit
import functools
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STARTER = Path(__file__).with_name("starter.py")
STARTERS = 2
AT_THE_START = ("PYTHON", "LD_", "LC_", "LANG", "TZ", "MPL", "OMP_", "OPENBLAS_")
"""What the variables begin with that count when a process starts or imports, and not later."""
OPTIONS = frozenset({"stdin", "stdout", "stderr", "text", "env", "cwd"})
"""Those of `Popen` that a forked command can have."""

allowed = True
"""Whether commands may be forked at all: not where the time or the memory that they take on the host is looked at."""

_lock = threading.Lock()
_turns = itertools.cycle(range(STARTERS))
seen = set[str]()
"""The verbs of which a command was there."""


class Command(subprocess.Popen[Any]):
    """A command, forked where that shows nowhere: a child of ours with its arguments, environment, directory and files.

    With options other than `OPTIONS`, and at a terminal, it is a new process.
    """

    def __init__(self, command: Sequence[str], **options: Any) -> None:
        """Starts it.

        Args:
            command: What a new process executes, `python -m dilaton …`.
            options: As of `Popen`.
        """
        verb = next(iter(command[3:]), "")
        self._forks = allowed and options.keys() <= OPTIONS and verb in seen
        seen.add(verb)
        super().__init__(command, **options)

    def _execute_child(self, args: Sequence[str], *rest: Any) -> None:
        _, _, _, _, directory, environment, _, _, _, *pipes = rest
        stdin, _, _, stdout, _, stderr = pipes = pipes[:6]
        files = [number if file == -1 else file for number, file in enumerate((stdin, stdout, stderr))]
        if not self._forks or any(map(os.isatty, files)):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        environment = dict(os.environ if environment is None else environment)
        request = {"arguments": args[3:], "directory": os.path.abspath(directory or "."), "environment": environment}
        with _lock:
            asked = starter(next(_turns), tuple(sorted(of_the_start(environment).items())))
            socket.send_fds(asked, [json.dumps(request).encode()], files)
            self.pid = int(asked.recv(20))
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]


def of_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that count when a process starts."""
    return {name: value for name, value in environment.items() if name.startswith(AT_THE_START)}


@functools.cache
def starter(number: int, environment: tuple[tuple[str, str], ...]) -> socket.socket:
    """The line to a process that forks commands with these variables in their environments; it ends with us.

    Args:
        number: Which of several.
        environment: All that count when a process starts.
    """
    others = os.environ.keys() - of_the_start(os.environ)
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    # Ctrl-C is for commands: it waits until one is there.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    with theirs:
        process = subprocess.Popen(
            [sys.executable, STARTER, str(theirs.fileno())],
            env={name: os.environ[name] for name in others} | dict(environment),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )
    signal.pthread_sigmask(signal.SIG_SETMASK, before)
    # Nobody waits for it: it ends when the line is closed.
    process.returncode = 0
    atexit.register(ours.close)
    return ours
