"""How much Python does, the same on every host and beside any load."""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any


def instructions(act: Callable[[], object]) -> int:
    """How many instructions of Python's own machine it takes to do that."""
    count = 0

    def local(_frame: FrameType, event: str, _argument: object) -> Any:
        nonlocal count
        count += event == "opcode"
        return local

    def trace(frame: FrameType, _event: str, _argument: object) -> Any:
        frame.f_trace_opcodes, frame.f_trace_lines = True, False
        return local

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        act()
    finally:
        sys.settrace(before)
    return count
