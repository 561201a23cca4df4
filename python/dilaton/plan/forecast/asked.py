"""What known programs are asked to do, and for how long, as their words say it: iperf3, ping, sleep."""

from __future__ import annotations

import getopt
import math
import posixpath
from collections.abc import Sequence
from dataclasses import dataclass

from dilaton.plan.forecast.foresight import PING_OPTIONS

IPERF_S = 10.0
UDP_BIT_PER_S = 1e6
"""What iperf3 does unless it is told otherwise: for how long, and of UDP how much."""

SECONDS = {"m": 60, "h": 3600, "d": 86400}
"""Of a unit of sleep."""

IPERF_OPTIONS = "c:t:b:P:n:k:l:O:i:p:w:M:C:B:f:V46uRJZs1D"
IPERF_SHORT = {
    "client": "c",
    "time": "t",
    "bitrate": "b",
    "bandwidth": "b",
    "parallel": "P",
    "bytes": "n",
    "omit": "O",
    "udp": "u",
    "reverse": "R",
}
IPERF_LONG = [f"{name}=" if f"{short}:" in IPERF_OPTIONS else name for name, short in IPERF_SHORT.items()]
IPERF_LONG += ["bidir", "json", "server", "one-off", "congestion=", "interval=", "port=", "window=", "length="]


@dataclass(frozen=True)
class Asked:
    """What a program is asked to send, as of `Flow`; without connections nothing that counts."""

    seconds: float
    connections: int = 0
    bit_per_s: float | None = None
    bytes: float | None = None
    is_tcp: bool = True
    is_reverse: bool = False


def asked(argv: Sequence[str]) -> Asked | None:
    """What a known program does; None: not known, or it serves."""
    read = {"iperf3": _iperf, "ping": _ping, "sleep": _sleep}.get(posixpath.basename(argv[0]))
    try:
        return read(list(argv[1:])) if read else None
    except (getopt.GetoptError, ValueError):
        return None


def _ping(words: list[str]) -> Asked | None:
    options = {name[1:]: value for name, value in getopt.gnu_getopt(words, PING_OPTIONS)[0]}
    if "w" in options:
        return Asked(float(options["w"]))
    return Asked(float(options["c"]) * float(options.get("i", 1))) if "c" in options else None


def _sleep(words: list[str]) -> Asked:
    return Asked(sum(float(word.rstrip("smhd")) * SECONDS.get(word[-1:], 1) for word in words))


def _iperf(words: list[str]) -> Asked | None:
    written, _ = getopt.gnu_getopt(words, IPERF_OPTIONS, IPERF_LONG)
    options = {IPERF_SHORT.get(name.lstrip("-"), name.lstrip("-")): value for name, value in written}
    if "c" not in options:
        return None
    is_udp = "u" in options
    connections = int(options.get("P", 1)) * (2 if "bidir" in options else 1)
    rate = _size(options["b"], 1000) * connections if "b" in options else 0
    size = _size(options["n"], 1024) if "n" in options else None
    # Of a fraction it reads the whole seconds; none are no limit.
    seconds = math.floor(float(options.get("t", IPERF_S)))
    endless = seconds == 0 or (size is not None and "t" not in options)
    return Asked(
        math.inf if endless else seconds + float(options.get("O", 0)),
        connections,
        rate or (UDP_BIT_PER_S * connections if is_udp else None),
        size,
        is_tcp=not is_udp,
        is_reverse="R" in options,
    )


def _size(text: str, step: int) -> float:
    """A number of iperf3 with its prefix: 10M."""
    power = "kmgt".find(text[-1:].lower()) + 1 if text[-1:].isalpha() else 0
    number = float(text[:-1] if power else text)
    if not number >= 0:
        raise ValueError(text)
    return number * float(step) ** power
