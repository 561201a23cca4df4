"""Who conducts a run waits for its agents in beats, not in seconds.

They are beats of its own: where it has no time, or is stopped itself, they are longer or there are none, and nobody is
to blame (`crates/relay/src/patient.rs`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from dilaton.host.errors import GuestError, MachineLostError

BEAT_HOST_S = 0.1
"""How often it is looked who has said nothing since the look before."""

SILENT_BEATS_MAX = 39
"""In so many of these beats something comes of an agent that is there: until it has joined that it is, and then, until
it is told to end, what it sees, both four times a second. One that has ended is missed at once, and a machine that is
gone by the hub, some beats earlier; this is for agents that are stopped."""

SILENCE_HOST_S_MAX = SILENT_BEATS_MAX * BEAT_HOST_S
"""How long that is where there is time for it."""


def silence(beats: int = SILENT_BEATS_MAX) -> str:
    """What is said of an agent of which nothing came in so many beats."""
    return f"its host agent has said nothing for {beats * BEAT_HOST_S:g} seconds"


async def watch(machine: str, there: Callable[[], int], printed: Callable[[], str], first_beats: int) -> None:
    """Watches an agent that has not joined yet.

    Args:
        machine: Which it is on.
        there: How often it has said that it is there.
        printed: What came in place of its first word, of whatever starts it.
        first_beats: In so many it says so for the first time.

    Raises:
        MachineLostError: Nothing is heard of it any more, which is the end of it.
        GuestError: Nothing was ever heard of it.
    """
    before, beats = 0, 0
    while beats <= (limit := SILENT_BEATS_MAX if before else first_beats):
        await asyncio.sleep(BEAT_HOST_S)
        before, beats = (now, 0) if (now := there()) != before else (before, beats + 1)
    if before:
        raise MachineLostError(machine, silence())
    raise GuestError(": ".join(filter(None, [silence(limit), printed()])))
