"""`python -m dilaton`."""

import os
import signal
import sys
from types import FrameType

INTERRUPTED = 130


def _interrupt(_: int, frame: FrameType | None) -> None:
    """Raises KeyboardInterrupt, but not out of an import, which may make any other error of it."""
    while frame:
        if frame.f_code.co_filename.startswith("<frozen importlib"):
            os._exit(INTERRUPTED)
        frame = frame.f_back
    raise KeyboardInterrupt


signal.signal(signal.SIGINT, _interrupt)
try:
    from dilaton.cli.main import main

    main()
except KeyboardInterrupt:
    sys.exit(INTERRUPTED)
