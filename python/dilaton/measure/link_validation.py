"""What an emulated link did to probes, held against what was configured, as in Nussbaum and Richard, CNS'09.

Pure: takes the time stamps of probes, in nanoseconds of virtual time, and gives numbers and verdicts.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dilaton.plan.links.disciplines import ETHERNET_HEADER_BYTES

RATE_ERROR_MAX = 0.005
GAP_COV_MAX = 0.01
CLOCK_STEP_NS = 256
"""The granularity of a guest's clock: both ends of a gap are read in such steps."""

LATE_NS_MAX = {1: 30_000, 100: 3_000}
"""What 99.9 % of probes may be late, from a TDF on; the median a third of it."""

TCP_HEADERS_BYTES = 52
"""IPv4 and TCP with time stamps."""


@dataclass(frozen=True)
class Line:
    """One quantity: what was configured, what was measured, and whether that is within its bound. Numbers as text."""

    what: str
    configured: str
    measured: str
    bound: str
    holds: bool


def lateness_ns(sent: Mapping[int, int], received: Mapping[int, int], delay_ns: int) -> list[int]:
    """How much later than the delay each probe arrived, ascending; negative: too early.

    Args:
        sent: When each probe was handed to its interface, by number.
        received: When it came out at the other end; those lost are missing.
        delay_ns: One way, with the time that a probe takes at the rate of the link.
    """
    return sorted(received[number] - sent[number] - delay_ns for number in received if number in sent)


def judge_delay(late: Sequence[int], delay_ns: int, tdf: float) -> list[Line]:
    """The verdicts on delays, given their lateness."""
    bound = LATE_NS_MAX[100] if tdf >= 100 else LATE_NS_MAX[1]
    at = {"median": late[len(late) // 2], "99.9 %": late[len(late) * 999 // 1000]}
    configured = f"{delay_ns / 1e6:.6g} ms"
    return [
        Line("earliest probe", configured, _late(late[0]), "not early", late[0] >= 0),
        Line("median probe", configured, _late(at["median"]), f"{bound / 3e3:g} us late", at["median"] <= bound / 3),
        Line("99.9 % of probes", configured, _late(at["99.9 %"]), f"{bound / 1e3:g} us late", at["99.9 %"] <= bound),
    ]


def _late(ns: int) -> str:
    return f"{abs(ns) / 1e3:.3f} us {'late' if ns >= 0 else 'early'}"


def judge_rate(received: Sequence[int], ip_bytes: int, rate_bit_per_s: int) -> list[Line]:
    """The verdicts on the rate of a link that was saturated: its mean, and how even the second half of it was.

    Args:
        received: When each packet came out, ascending.
        ip_bytes: Bytes of each packet, without Ethernet header.
        rate_bit_per_s: What was configured.
    """
    bits = (ip_bytes + ETHERNET_HEADER_BYTES) * 8
    measured = bits * (len(received) - 1) * 1e9 / (received[-1] - received[0])
    later = received[len(received) // 2 :]
    gaps = [after - before for before, after in itertools.pairwise(later)]
    bound = max(GAP_COV_MAX, 2 * CLOCK_STEP_NS / statistics.mean(gaps))
    cov = statistics.pstdev(gaps) / statistics.mean(gaps)
    configured = f"{rate_bit_per_s / 1e6:.6g} Mbit/s"
    return [
        _error("rate, UDP", configured, measured, rate_bit_per_s),
        Line("gaps, coefficient of variation", "0", f"{cov:.4f}", f"{bound:.4f}", cov <= bound),
    ]


def judge_tcp(throughput_bit_per_s: float, mtu: int, rate_bit_per_s: int) -> Line:
    """The verdict on the throughput of TCP, with headers added."""
    measured = throughput_bit_per_s * (mtu + ETHERNET_HEADER_BYTES) / (mtu - TCP_HEADERS_BYTES)
    return _error("rate, TCP with headers", f"{rate_bit_per_s / 1e6:.6g} Mbit/s", measured, rate_bit_per_s)


def _error(what: str, configured: str, measured: float, rate_bit_per_s: int) -> Line:
    error = measured / rate_bit_per_s - 1
    text = f"{measured / 1e6:.6g} Mbit/s ({error:+.3%})"
    return Line(what, configured, text, f"{RATE_ERROR_MAX:.1%}", abs(error) <= RATE_ERROR_MAX)
