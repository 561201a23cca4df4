"""`python -m dilaton`."""

import _signal  # type: ignore[import-not-found]
import gc
import os
import sys
from types import FrameType

INTERRUPTED = 130

ALLOCATIONS_BETWEEN_COLLECTIONS = 50_000
"""The plan of a large lab is a million objects that live until the end. To look for cycles among them as often as
Python does by default, after 700, took two fifths of the time to plan."""


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, but not out of an import, which may make any other error of it."""
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


gc.set_threshold(ALLOCATIONS_BETWEEN_COLLECTIONS)
# By what `signal` wraps in enumerations: to make these takes a millisecond, in which nobody would listen.
_signal.signal(_signal.SIGINT, _interrupt)
try:
    from dilaton.cli.main import main

    main()
except KeyboardInterrupt:
    sys.exit(INTERRUPTED)
