"""Standard output and error as commands that have something to say at their end use them."""

from __future__ import annotations

import sys
from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from dilaton.cli.output import discard, visible


class Output(Console):
    """Output whose reader may leave, as `head` does: what was done stays done, and the exit status says so.

    Brackets in what is printed are brackets: names and paths may have them. Nor does what programs and labs say command
    the terminal.
    """

    def __init__(self, *, stderr: bool = False) -> None:
        """Prints to standard output, or to standard error."""
        super().__init__(stderr=stderr, highlight=False, markup=False)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterable[Segment]:
        """As rich does, with control characters in texts made visible; rich's own commands are no texts."""
        for text, style, control in super().render(renderable, options):
            yield Segment(text if control else visible(text), style, control)

    def print_line(self, line: Text) -> None:
        """Prints a line. Where there is no terminal it is written as it is, however long.

        To lay one out takes longer than all else that is done for an event, of which a run of a thousand programs has
        two thousand.
        """
        if self.is_terminal:
            self.print(line)
        elif not self.quiet:
            try:
                print(visible(line.plain), file=self.file, flush=True)
            except BrokenPipeError:
                self.on_broken_pipe()

    def on_broken_pipe(self) -> None:
        """Writes nothing more."""
        self.quiet = True
        discard(sys.stderr if self.stderr else sys.stdout)
