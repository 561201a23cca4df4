"""What wrk prints at its end."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_TIME = r"([\d.]+)(us|ms|s|m|h)"
_BYTES = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
"""wrk writes KB for 1024 bytes."""

_TOTAL = re.compile(rf"^\s*(\d+) requests in {_TIME}, ([\d.]+)([KMGT]?)B read", re.MULTILINE)
_LATENCY = re.compile(rf"^\s*Latency\s+{_TIME}\s+{_TIME}\s+{_TIME}", re.MULTILINE)
_PERCENTILE = re.compile(rf"^\s*([\d.]+)%\s+{_TIME}\s*$", re.MULTILINE)
_RATE = re.compile(r"^Requests/sec:\s+([\d.]+)", re.MULTILINE)
_STATUSES = re.compile(r"Non-2xx or 3xx responses: (\d+)")
_SOCKETS = re.compile(r"Socket errors: connect (\d+), read (\d+), write (\d+), timeout (\d+)")


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """Takes the result out of what wrk printed.

    Args:
        arguments: Of wrk; what it prints tells enough without them.
        stdout: Its standard output.

    Returns:
        - `requests`, `requests_per_s`; `errors`: answers with other statuses than 2xx and 3xx, and errors of sockets.
        - `throughput`: what was read, in bit/s.
        - `latency`: `avg`, `stdev`, `max`, and with `--latency` `p50`, `p75`, `p90`, `p99`, in seconds; of wrk2
          also `p99.9` and on. Empty without an answer, of which wrk prints zeros.

        `{"error": …}` when its end is missing; None when it printed nothing.
    """
    total, rate = _TOTAL.search(stdout), _RATE.search(stdout)
    if total is None or rate is None:
        return {"error": "wrk was ended before it printed its results"} if stdout.strip() else None
    seconds = _seconds(total[2], total[3])
    requests = int(total[1])
    statuses, sockets = _STATUSES.search(stdout), _SOCKETS.search(stdout)
    errors = (int(statuses[1]) if statuses else 0) + sum(map(int, sockets.groups()) if sockets else ())
    return {
        "requests": requests,
        "requests_per_s": float(rate[1]),
        "errors": errors,
        "throughput": 8 * float(total[4]) * _BYTES[total[5]] / seconds if seconds else None,
        "latency": _latency(stdout) if requests else {},
    }


def _latency(stdout: str) -> dict[str, float]:
    latency = {}
    if match := _LATENCY.search(stdout):
        for number, name in enumerate(("avg", "stdev", "max")):
            latency[name] = _seconds(match[2 * number + 1], match[2 * number + 2])
    return latency | {f"p{float(share):g}": _seconds(value, unit) for share, value, unit in _PERCENTILE.findall(stdout)}


def _seconds(value: str, unit: str) -> float:
    return round(float(value) * _SECONDS[unit], 12)
