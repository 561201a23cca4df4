"""The program of a host agent, which says that it is there until it has joined a run.

From then on it is heard of through its relay. Before, there is only its standard output, and the agent takes a second
to begin where there is time for it, and many where there is not; one that is stopped meanwhile says nothing. So a line
goes out four times a second, from the first moment on, by a thread that needs nothing else. It ends before guests are
begun, as what starts them forks.

Nor does one that is stopped see that nobody conducts it any more. So it has a guard, which ends it then.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading

from dilaton.host import files
from dilaton.host.errors import HostLacksError

THERE = b"dilaton host agent is there\n"

EVERY_HOST_S = 0.25


class Presence:
    """Says that an agent is there, from when it is made until it ends."""

    def __init__(self) -> None:
        """Begins."""
        self._lock, self._is_over = threading.Lock(), threading.Event()
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def _go_on(self) -> None:
        try:
            self.say(THERE)
            while not self._is_over.wait(EVERY_HOST_S):
                self.say(THERE)
        except OSError:
            # Nobody listens; that the run has ended is seen elsewhere.
            return

    def say(self, line: bytes) -> None:
        """Says a line, whole."""
        with self._lock:
            while line:
                line = line[os.write(1, line) :]

    def end(self) -> None:
        """Says nothing any more, and waits until the thread is gone."""
        self._is_over.set()
        self._thread.join()


def guard() -> None:
    """Starts what ends this process where its standard input has ended and it does not end by itself."""
    # That it is not built is said when a relay is to be started, which is the same program.
    with contextlib.suppress(HostLacksError):
        command = [str(files.built(files.RELAY)), "guard", str(os.getpid())]
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def serve(*, says_what_it_has: bool = False) -> int:
    """Is the host agent of this machine; returns the exit status."""
    guard()
    presence = Presence()
    # This takes most of the time.
    from dilaton.cluster import agent

    return agent.serve(presence, says_what_it_has=says_what_it_has)


if __name__ == "__main__":
    sys.exit(serve(says_what_it_has="--say" in sys.argv[1:]))
