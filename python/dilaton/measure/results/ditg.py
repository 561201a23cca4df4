"""What D-ITG's decoder, ITGDec, prints of a log."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from typing import Any

_FLOW = re.compile(r"^Flow number: (\d+)\s*\nFrom (\S+)\s*\nTo\s+(\S+)", re.MULTILINE)
_LINE = re.compile(r"^([A-Z][A-Za-z -]*?)[ \t]*=[ \t]*(-?(?:[\d.]+|nan|inf))(?:[ \t]*([A-Za-z/]+))?", re.MULTILINE)
_RATES = {"bit/s": 1.0, "Kbit/s": 1e3, "Mbit/s": 1e6, "Gbit/s": 1e9}
_TOTAL = "TOTAL RESULTS"


def parse(arguments: Sequence[str], stdout: str) -> dict[str, Any] | None:
    """Takes the result out of what ITGDec printed.

    Args:
        arguments: Of ITGDec; what it prints tells enough without them.
        stdout: Its standard output.

    Returns:
        Of all flows together:

        - `received`, `bytes`: packets and bytes; `dropped`: packets; `loss`: their ratio, 0..1.
        - `throughput`: in bit/s; `packets_per_s`; `duration_s`.
        - `latency`: one-way delay: `min`, `avg`, `max`, `stdev`, in seconds; `jitter_s`: its mean variation.
        - `flows`: the same of each, with `from` and `to`.

        What a flow of a single packet has no number for, such as its rate, is None; so are the delays and the jitter
        of a sender's log, which has none: ITGDec prints zeros.

        `{"error": …}` when the totals are missing; None when it printed no flow, as with `-c` or another option that
        writes to a file.
    """
    before, found, total = stdout.partition(_TOTAL)
    if not found:
        return {"error": "ITGDec printed no totals"} if _FLOW.search(stdout) else None
    starts = list(_FLOW.finditer(before))
    ends = [*(match.start() for match in starts), len(before)][1:]
    try:
        flows = [
            {"from": match[2], "to": match[3]} | _summary(before[match.end() : end])
            for match, end in zip(starts, ends, strict=True)
        ]
        return _summary(total) | {"flows": flows}
    except LookupError as error:
        return {"error": f"the totals of ITGDec have no {error}"}


def _summary(text: str) -> dict[str, Any]:
    lines = {name.strip(): (float(value), unit) for name, value, unit in _LINE.findall(text)}

    def number(name: str) -> float | None:
        value = lines[name][0]
        return value if math.isfinite(value) else None

    received, dropped = lines["Total packets"][0], lines["Packets dropped"][0]
    rate, unit = number("Average bitrate"), lines["Average bitrate"][1]

    def delay(name: str) -> float | None:
        return number(name) if lines["Maximum delay"][0] else None

    return {
        "duration_s": number("Total time"),
        "received": int(received),
        "bytes": int(lines["Bytes received"][0]),
        "dropped": int(dropped),
        "loss": dropped / (received + dropped) if received + dropped else None,
        "throughput": None if rate is None else rate * _RATES[unit],
        "packets_per_s": number("Average packet rate"),
        "latency": {
            "min": delay("Minimum delay"),
            "avg": delay("Average delay"),
            "max": delay("Maximum delay"),
            "stdev": delay("Delay standard deviation"),
        },
        "jitter_s": delay("Average jitter"),
    }
