"""How much of a link a program asks for. Pure.

A program that sends at its own pace, UDP at a rate or a `ping`, asks for that and for no more; of any other it is taken
that it takes what there is, as TCP does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dilaton.measure.results.command import unwrap

HEADER_BYTES = 42
"""Of Ethernet, IPv4 and UDP."""

FRAME_BITS = 8 * 1514
"""Of a full frame of Ethernet, which a request of `ping` takes at most, unless it is told how large it is to be."""


def asked_bit_per_s(argv: Sequence[str], result: Mapping[str, Any] | None, seconds: float) -> float | None:
    """What a program asked for, in each direction at most, bit/s of frames; None: all that there is.

    Args:
        argv: Its command.
        result: Made of what it printed.
        seconds: For how long it ran.
    """
    if not result or seconds <= 0:
        return None
    if size := result.get("datagram_bytes"):
        return float(result["told_throughput"] * (size + HEADER_BYTES) / size)
    is_ping = bool(argv) and unwrap(argv)[0] in ("ping", "ping4", "ping6")
    if not is_ping or "sent" not in result or any(word.startswith("-s") for word in argv):
        return None
    return float(result["sent"] * FRAME_BITS / seconds)
