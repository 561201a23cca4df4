"""Standard output as a file that may be full, or whose reader may have left."""

from __future__ import annotations

import io
import os
import re
import sys
from pathlib import Path
from typing import TextIO

CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""What may command a terminal: the control characters of ISO 6429 but tab and newline."""


def visible(text: str) -> str:
    """A text with its control characters as escapes, as in `\\x1b[2J`: programs and labs may say anything."""
    return CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def prepare() -> None:
    """Has what is no text printed as escapes, as on standard error: names of files need not be text."""
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def finish() -> None:
    """Writes what standard output still holds. That its reader has left is no trouble.

    Raises:
        OSError: it cannot be written, and is not tried again.
    """
    if sys.stdout is None:
        return  # it was closed when we began
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        discard(sys.stdout)
    except OSError:
        discard(sys.stdout)
        raise


def discard(stream: TextIO) -> None:
    """Has what a stream holds, and what it is still given, go nowhere."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, stream.fileno())
    os.close(nothing)


def from_here(path: Path) -> str:
    """The path as it is shortest from the present directory."""
    return str(path.relative_to(Path.cwd())) if path.is_relative_to(Path.cwd()) else str(path)
