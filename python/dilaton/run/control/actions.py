"""What can be done with the clock of a run by one word, wherever it is asked: here, or of a server."""

from __future__ import annotations

CLOCK_ACTIONS = {
    "show": None,
    "hold": None,
    "release": None,
    "until": "at",
    "step": None,
    "tdf": "tdf",
    "speed": "max_speed",
}
"""Each action, and the argument that it takes; None: none."""
