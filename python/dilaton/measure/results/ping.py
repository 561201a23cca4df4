"""What ping prints: the forms of iputils and of busybox.

Sums are taken from the statistics that ping prints at its end, single round-trip times from its lines. iputils prints
a single time with three or four digits only (`40.1 ms`), so the samples are coarser than the sums.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from decimal import Decimal
from typing import Any

_SECONDS = {"s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "usec": Decimal("1e-6")}

_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_REPLY = re.compile(rf"(?:\b(icmp_)?seq=(\d{{1,9}})\b[^\n]*?)?\btime[=<]\s*{_NUMBER} ?(ms|usec|us|s)\b")
_SENT = re.compile(r"^(\d{1,15}) packets transmitted, (\d{1,15}) (?:packets )?received(.*)$", re.MULTILINE)
_DUPLICATES = re.compile(r"(\d{1,15}) duplicates")
_ERRORS = re.compile(r"\+(\d{1,15}) errors")
_RTT = re.compile(
    rf"^(?:rtt|round-trip) min/avg/max(?:/mdev)? = {_NUMBER}/{_NUMBER}/{_NUMBER}(?:/{_NUMBER})? (ms|usec|us|s)\b",
    re.MULTILINE,
)


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """Takes the result out of what ping printed.

    Args:
        arguments: Of ping; what it prints tells enough without them.
        stdout: Its standard output.

    Returns:
        - `sent`, `received`: packets, duplicates not counted; `duplicates`, `errors`: further answers.
        - `loss`: the ratio of sent packets without a reply, 0..1; None if none was sent.
        - `rtt`: `min`, `avg`, `max` and `mdev` (None where ping does not print it) in seconds; None without a reply,
          or with packets too small to carry a time.
        - `samples`: the round-trip times one by one, in seconds, duplicates included.
        - `requests`: the number of the request that each of these answers, from 0.

        `{"error": …}` when ping began, but was ended before its statistics; None when it never began.
    """
    sent_line = _SENT.search(stdout)
    if sent_line is None:
        return {"error": "ping was ended before it printed its statistics"} if stdout.strip() else None
    sent, received, rest = int(sent_line[1]), int(sent_line[2]), sent_line[3]
    replies = _REPLY.findall(stdout)
    return {
        "sent": sent,
        "received": received,
        "duplicates": _count(_DUPLICATES, rest),
        "errors": _count(_ERRORS, rest),
        "loss": (sent - received) / sent if sent else None,
        "rtt": _rtt(stdout),
        "samples": [_seconds(value, unit) for _, _, value, unit in replies],
        "requests": [
            int(number) - bool(iputils) if number else place for place, (iputils, number, _, _) in enumerate(replies)
        ],
    }


def _count(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def _rtt(stdout: str) -> dict[str, float | None] | None:
    match = _RTT.search(stdout)
    if match is None:
        return None
    return {
        name: _seconds(value, match[5]) if value else None
        for name, value in zip(("min", "avg", "max", "mdev"), match.groups()[:4], strict=True)
    }


def _seconds(value: str, unit: str) -> float:
    """Through decimals, so that 40.0 ms is the float that prints as 0.04."""
    return float(Decimal(value) * _SECONDS[unit])
