"""Access logs of web servers, in the common and the combined format of Apache and nginx, also behind a virtual host.

A server that logs to its standard output (`access_log /dev/stdout`, `CustomLog /dev/stdout combined`) has its log in
the results; a log file is read with `parse_log`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

_LINE = re.compile(r'^(?:\S+ ){3,4}\[([^\]]+)\] "(?:[^"\\]|\\.)*" (\d{3}) (\d+|-)', re.MULTILINE)
_SERVER_ERROR_MIN = 500
_SECONDS_MAX = 10**6
"""The longest log that is told second by second; one that spans years is of a date that was set anew."""


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """As `parse_log`; None when a server's standard output has no line of an access log."""
    return parse_log(stdout)


def parse_log(text: str) -> dict[str, Any] | None:
    """Takes the result out of an access log.

    Returns:
        - `requests`; `errors`: answers from 500; `statuses`: answers by status.
        - `bytes`: of all bodies; `duration_s`: from the first to the last, which logs have in whole seconds.
        - `per_second`: requests in each second, from the first on; empty for a log of more than `_SECONDS_MAX` of them.

        None without a line that is one of an access log.
    """
    lines = _LINE.findall(text)
    if not lines:
        return None
    seconds = [second for instant, _, _ in lines if (second := _second(instant)) is not None]
    first = min(seconds, default=0)
    counts = Counter(second - first for second in seconds)
    last = max(counts, default=-1)
    statuses = Counter(status for _, status, _ in lines)
    return {
        "requests": len(lines),
        "errors": sum(count for status, count in statuses.items() if int(status) >= _SERVER_ERROR_MIN),
        "statuses": dict(sorted(statuses.items())),
        "bytes": sum(int(size) for _, _, size in lines if size != "-"),
        "duration_s": max(last, 0),
        "per_second": [counts[number] for number in range(last + 1)] if last < _SECONDS_MAX else [],
    }


def requests(text: str) -> list[tuple[int, bool]]:
    """The requests in an access log: the second of each, since 1970, and whether it was served."""
    found = [(_second(instant), int(status) < _SERVER_ERROR_MIN) for instant, status, _ in _LINE.findall(text)]
    return [(second, ok) for second, ok in found if second is not None]


def _second(text: str) -> int | None:
    try:
        return int(datetime.strptime(text, "%d/%b/%Y:%H:%M:%S %z").timestamp())
    except ValueError:
        return None
