"""What ping prints: the forms of iputils and of busybox.

Sums are taken from the statistics that ping prints at its end, single round-trip times from its lines. iputils prints
a single time with three or four digits only (`40.1 ms`), so the samples are coarser than the sums.

How long a network was out is what ping is often started for. Requests leave at a fixed interval, so a gap of n
requests without an answer is an outage of n intervals, within one: it may have begun up to an interval before the first
of them was sent, and ended up to an interval before the next answered one.
"""

from __future__ import annotations

import getopt
import re
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from itertools import pairwise
from typing import Any

_SECONDS = {"s": Decimal(1), "ms": Decimal("1e-3"), "us": Decimal("1e-6"), "usec": Decimal("1e-6")}

_NUMBER = r"(\d{1,15}(?:\.\d{1,9})?)"
_REPLY = re.compile(rf"(?:\b(icmp_)?seq=(\d{{1,9}})\b[^\n]*?)?\btime[=<]\s*{_NUMBER} ?(ms|usec|us|s)\b")
_SENT = re.compile(r"^(\d{1,15}) packets transmitted, (\d{1,15}) (?:packets )?received(.*)$", re.MULTILINE)
_DUPLICATES = re.compile(r"(\d{1,15}) duplicates")
_TOOK = re.compile(r"\btime (\d{1,15})ms\b")
_ERRORS = re.compile(r"\+(\d{1,15}) errors")
_RTT = re.compile(
    rf"^(?:rtt|round-trip) min/avg/max(?:/mdev)? = {_NUMBER}/{_NUMBER}/{_NUMBER}(?:/{_NUMBER})? (ms|usec|us|s)\b",
    re.MULTILINE,
)

_OPTIONS = "46aAbBc:CdDe:fF:hHi:I:l:Lm:M:nN:Op:qQ:rRs:S:t:T:UvVw:W:"
"""The options of iputils and busybox, as getopt has them."""
PAYLOAD_BYTES = 56
"""What ping sends where it is not told."""

_UNEVEN = {"-A", "-f", "-l"}
"""Options with which requests do not leave at a fixed interval."""
_PERCENTILES = (50, 95, 99)
_NUMBERS = 1 << 16
"""The number of a request has 16 bits, so that it begins again after so many."""


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """Takes the result out of what ping printed.

    Args:
        arguments: Of ping; they say at which interval it sends.
        stdout: Its standard output.

    Returns:
        - `sent`, `received`: packets, duplicates not counted; `duplicates`, `errors`: further answers.
        - `loss`: the ratio of sent packets without a reply, 0..1; None if none was sent.
        - `rtt`: `min`, `avg`, `max` and `mdev` (None where ping does not print it), and of the samples, where there are
          some, `p50`, `p95` and `p99`, in seconds; None without a reply, or with packets too small to carry a time.
        - `outage`: the longest time without an answer, in seconds, within one interval of requests: 0 if all were
          answered; None if requests did not leave at a fixed interval, or single answers were not printed.
        - `samples`: the round-trip times one by one, in seconds, duplicates included.
        - `requests`: the number of the request that each of these answers, from 0.

        `{"error": …}` when ping began, but was ended before its statistics; None when it never began.
    """
    sent_line = _SENT.search(stdout)
    if sent_line is None:
        return {"error": "ping was ended before it printed its statistics"} if stdout.strip() else None
    sent, received, rest = int(sent_line[1]), int(sent_line[2]), sent_line[3]
    replies = _REPLY.findall(stdout)
    samples = [_seconds(value, unit) for _, _, value, unit in replies]
    requests = _requests(
        [int(number) - bool(iputils) if number else place for place, (iputils, number, _, _) in enumerate(replies)]
    )
    return {
        "sent": sent,
        "received": received,
        "duplicates": _count(_DUPLICATES, rest),
        "errors": _count(_ERRORS, rest),
        "loss": (sent - received) / sent if sent else None,
        "rtt": _rtt(stdout, samples),
        "outage": _outage(arguments, sent, received, requests),
        "samples": samples,
        "requests": requests,
    }


def _requests(numbers: list[int]) -> list[int]:
    """Numbers that go on where those that ping prints begin again; an answer that is late may have a smaller one."""
    found: list[int] = []
    for number in numbers:
        turns = (found[-1] - number + _NUMBERS // 2) // _NUMBERS if found else 0
        found.append(number + max(turns, 0) * _NUMBERS)
    return found


def _outage(arguments: Sequence[str], sent: int, received: int, requests: Sequence[int]) -> float | None:
    every = _interval(arguments)
    if every is None:
        return None
    answered = sorted({number for number in requests if number < sent})
    if len(answered) != received:
        return 0.0 if received == sent else None
    longest = max(later - earlier - 1 for earlier, later in pairwise([-1, *answered, sent]))
    return float(longest * every)


def _interval(arguments: Sequence[str]) -> Decimal | None:
    """The seconds between two requests; None where they do not leave at a fixed interval, or it is not to be read."""
    try:
        options, _ = getopt.gnu_getopt(list(arguments), _OPTIONS)
        if any(name in _UNEVEN for name, _ in options):
            return None
        written = [value for name, value in options if name == "-i"]
        return Decimal(written[-1]) if written else Decimal(1)
    except (getopt.GetoptError, InvalidOperation):
        return None


@dataclass(frozen=True)
class Requests:
    """What ping sends: bytes of payload, and how often, ns."""

    payload_bytes: int
    every_ns: float


def requests(arguments: Sequence[str]) -> Requests | None:
    """What ping sends with these arguments; None where that is not at a fixed interval, or not to be read."""
    every_s = _interval(arguments)
    if every_s is None:
        return None
    options, _ = getopt.gnu_getopt(list(arguments), _OPTIONS)
    sizes = [value for name, value in options if name == "-s"]
    try:
        return Requests(int(sizes[-1]) if sizes else PAYLOAD_BYTES, float(every_s * 10**9))
    except ValueError:
        return None


def spacing_s(arguments: Sequence[str], stdout: str) -> float | None:
    """The seconds between two requests as they left, on the average; as they were asked for, where ping says no more.

    None: they do not leave at a fixed interval. iputils says how long it took from the first to the last of them, which
    is some percent more than asked for, since it waits in whole ticks of the kernel.
    """
    every, sent_line = _interval(arguments), _SENT.search(stdout)
    if every is None or sent_line is None:
        return None
    took, gaps = _TOOK.search(sent_line[3]), int(sent_line[1]) - 1
    return float(Decimal(took[1]) / 1000 / gaps if took and gaps > 0 else every)


def _count(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.search(text)
    return int(match[1]) if match else 0


def _rtt(stdout: str, samples: Sequence[float]) -> dict[str, float | None] | None:
    match = _RTT.search(stdout)
    if match is None:
        return None
    sums = {
        name: _seconds(value, match[5]) if value else None
        for name, value in zip(("min", "avg", "max", "mdev"), match.groups()[:4], strict=True)
    }
    return sums | _tails(samples)


def _tails(samples: Sequence[float]) -> dict[str, float]:
    if not samples:
        return {}
    # Of a single value there are no quantiles, though all of them are that value.
    several = [*samples, samples[0]] if len(samples) == 1 else samples
    of_hundred = statistics.quantiles(several, n=100, method="inclusive")
    return {f"p{share}": round(of_hundred[share - 1], 12) for share in _PERCENTILES}


def _seconds(value: str, unit: str) -> float:
    """Through decimals, so that 40.0 ms is the float that prints as 0.04."""
    return float(Decimal(value) * _SECONDS[unit])
