"""Standard output as commands that have something to say at their end use it."""

from __future__ import annotations

import os
import sys

from rich.console import Console


class Output(Console):
    """Standard output whose reader may leave, as `head` does: what was done stays done, and the exit status says so."""

    def on_broken_pipe(self) -> None:
        """Writes nothing more."""
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
