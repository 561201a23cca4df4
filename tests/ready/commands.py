"""Commands that are forked from a process that has imported the command line already; see `starter`.

Two of these are asked by turns: each orders its sets by a seed of its own, as two commands do. The first command of each verb
is a process of its own all the same: only that shows that a verb imports what it uses. Where commands are not forked there are
no such processes either, as tests may look at all that is below theirs, and end it.
"""

from __future__ import annotations

import atexit
import itertools
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
STARTER = Path(__file__).with_name("starter.py")
STARTERS = 2
AT_THE_START = (
    *("PYTHON", "LD_", "LC_", "LANG", "TZ", "MPL", "OMP_", "OPENBLAS_", "HOME", "TMPDIR", "XDG_CONFIG"),
    *("TERM", "COLUMNS", "LINES", "NO_COLOR", "FORCE_COLOR"),
)
"""What the variables begin with that may count when a process starts or imports: with others of them it is a new process."""
OPTIONS = frozenset({"stdin", "stdout", "stderr", "text", "env", "cwd"})
"""Those of `Popen` that a forked command can have."""

allowed = True
"""Whether commands may be forked at all: not where the time or the memory that they take on the host is looked at."""
seen = set[str]()
"""The verbs of which a command was there."""

_lock = threading.Lock()


def of_the_start(environment: Mapping[str, str]) -> dict[str, str]:
    """Those of the variables that may count when a process starts or imports."""
    return {name: value for name, value in environment.items() if name.startswith(AT_THE_START)}


ENVIRONMENT = os.environ | {"PYTHONPATH": str(ROOT / "python")}
"""That of what forks commands, as it was when tests began."""


@dataclass
class Starter:
    """A process that forks commands, from the first on that is asked for; it ends with us, if not before."""

    _line: socket.socket | None = field(default=None, init=False)
    _process: subprocess.Popen[bytes] | None = field(default=None, init=False)

    def fork(self, request: Mapping[str, Any], files: Sequence[int]) -> int:
        """Has a command be forked with these files as its first three; returns its process id."""
        if self._line is None or self._is_gone(self._line):
            self.end()
            self._line = self._start()
        socket.send_fds(self._line, [json.dumps(request).encode()], files)
        return int(self._line.recv(20))

    def end(self) -> None:
        """Ends the process, where there is one, and waits for that."""
        if self._line and self._process:
            self._line.close()
            self._process.wait()
        self._line = self._process = None

    @staticmethod
    def _is_gone(line: socket.socket) -> bool:
        """Whether a test has ended the process: it says nothing by itself, so that there is nothing to read but the end."""
        try:
            return not line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
        except BlockingIOError:
            return False
        except ConnectionError:
            return True

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        # Ctrl-C is for commands: it waits until one is there.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
        try:
            with theirs:
                self._process = subprocess.Popen(
                    [sys.executable, STARTER, str(theirs.fileno())],
                    env=ENVIRONMENT,
                    cwd=ROOT,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        return ours


starters = [Starter() for _ in range(STARTERS)]
_turns = itertools.cycle(starters)


@atexit.register
def end_starters() -> None:
    """Ends what forks commands; the next one that is to be forked has it start again."""
    for starter in starters:
        starter.end()


def _umask() -> int:
    """The mask of files' modes, which can be read only by setting it."""
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


class Command(subprocess.Popen[Any]):
    """A command, forked where that shows nowhere: a child of ours with its arguments, environment, directory and files.

    With options other than `OPTIONS`, other variables that count at a start, and at a terminal, it is a new process.
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
        environment = dict(os.environ if environment is None else environment)
        if not self._forks or of_the_start(environment) != of_the_start(ENVIRONMENT) or any(map(os.isatty, files)):
            super()._execute_child(args, *rest)  # type: ignore[misc]
            return
        request = {
            "arguments": args[3:],
            "directory": os.path.abspath(directory or "."),
            "environment": environment,
            "umask": _umask(),
        }
        with _lock:
            self.pid = next(_turns).fork(request, files)
        self._child_created = True
        self._close_pipe_fds(*pipes)  # type: ignore[attr-defined]
