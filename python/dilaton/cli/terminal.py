"""Standard output and error as commands that have something to say at their end use them."""

from __future__ import annotations

import sys

from rich.console import Console

from dilaton.cli.output import discard


class Output(Console):
    """Output whose reader may leave, as `head` does: what was done stays done, and the exit status says so.

    Brackets in what is printed are brackets: names and paths may have them.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        """Prints to standard output, or to standard error."""
        super().__init__(stderr=stderr, highlight=False, markup=False)

    def on_broken_pipe(self) -> None:
        """Writes nothing more."""
        self.quiet = True
        discard(sys.stderr if self.stderr else sys.stdout)
