"""Configurations that a lab takes from files."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from dilaton.lab import syntax

BYTES_MAX = 1024 * 1024
"""Of a configuration."""


@dataclass(frozen=True)
class FileText:
    """What is in a file."""

    text: str


def read_beside(value: object, directory: str | Path) -> FileText:
    """The text of a file; its path starts at the lab's directory.

    Raises:
        ValueError: it cannot be read, or is no text.
    """
    name = syntax.parse_text(value)
    path = Path(directory) / name
    try:
        if path.stat().st_size > BYTES_MAX:
            raise ValueError(f"{name}: larger than {BYTES_MAX} bytes")
        return FileText(path.read_text())
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text") from error
