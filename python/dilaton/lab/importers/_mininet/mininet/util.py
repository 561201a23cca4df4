"""Helpers that topology files use."""

from __future__ import annotations

import re
from collections.abc import Iterable


def irange(start: int, end: int) -> Iterable[int]:
    """The numbers from `start` to `end`, both included."""
    return range(start, end + 1)


def natural(text: str) -> list[object]:
    """The key of natural order."""
    return [int(part) if part.isdigit() else part for part in re.split(r"(\d+)", text)]
