"""`python -m dilaton`, and `dilaton` where it is installed."""

import _signal  # type: ignore[import-not-found]
import os
import sys
from types import FrameType

INTERRUPTED = 130

_interrupts: list[int] = []


def _interrupt(number: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, but not out of an import, which may make any other error of it."""
    _interrupts.append(number)
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


# By what `signal` wraps in enumerations: to make these takes a millisecond, in which nobody would listen.
_signal.signal(_signal.SIGINT, _interrupt)


def run() -> None:
    """Runs the command line and exits; an installed `dilaton` begins here."""
    try:
        from dilaton.garbage import collect_rarely, leave_the_rest

        # First of all: what is imported stays.
        collect_rarely()
        from dilaton.cli.main import main

        try:
            main()
        finally:
            leave_the_rest()
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except Exception:
        # What builds a model makes another error of it, too, and that is in no file of ours.
        if not _interrupts:
            raise
        sys.exit(INTERRUPTED)


if __name__ == "__main__":
    run()
