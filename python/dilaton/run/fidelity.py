"""What the clocks of a run's guests have seen, for its record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dilaton.host.clock_page import ClockPage
from dilaton.host.guests import Guests
from dilaton.measure.busiest import BusiestSecond
from dilaton.measure.lateness import lateness_of_share
from dilaton.run.model import Adaptation, ClockChange, Fidelity, GuestFidelity, LatenessRecord, SharesRecord

SHARES_COUNTERS = ("nodes_work_ns", "other_work_ns", "nodes_busy_ns", "nodes_lost_ns")
"""Of a clock page."""

LOOK_HOST_S = 0.1
"""Between looks for the busiest second."""


def together(
    guests: Sequence[GuestFidelity], tdf_trace: Sequence[ClockChange], adaptation: Adaptation | None
) -> Fidelity:
    """How well a run with these guests kept virtual time: all timers together, and the busiest guest."""
    counts = [sum(bins) for bins in zip(*(guest.lateness_ns_counts for guest in guests), strict=True)]
    worst_ns = round(max(guest.lateness_us.max for guest in guests) * 1e3)
    return Fidelity(
        lateness_us=_lateness(counts, worst_ns),
        timers=sum(guest.timers for guest in guests),
        reads=sum(guest.reads for guest in guests),
        lateness_ns_counts=counts,
        busy=_most(guest.busy for guest in guests),
        busiest_second=_most(guest.busiest_second for guest in guests),
        disk_requests=sum(guest.disk_requests for guest in guests),
        disk_errors=sum(guest.disk_errors for guest in guests),
        shares=_together([guest.shares for guest in guests if guest.shares is not None]),
        tdf_trace=list(tdf_trace),
        adaptation=adaptation,
    )


@dataclass(frozen=True)
class _Counters:
    """Counters of a clock page at some moment."""

    reads: int
    virtual_ns: int
    idle_virtual_ns: int

    @classmethod
    def of(cls, page: ClockPage) -> _Counters:
        return cls(page.read("reads"), page.read("virtual_now_ns"), page.read("idle_virtual_ns"))


class Tally:
    """Counts from the moment it is made on."""

    def __init__(self, guests: Guests) -> None:
        """Begins to count."""
        self._pages = [guest.page for guest in guests.all]
        self._before = [_Counters.of(page) for page in self._pages]
        self._busiest = [BusiestSecond(before.virtual_ns, before.idle_virtual_ns) for before in self._before]

    async def follow(self) -> None:
        """Looks for the busiest second until it is cancelled."""
        while True:
            for page, busiest in zip(self._pages, self._busiest, strict=True):
                now = _Counters.of(page)
                busiest.look(now.virtual_ns, now.idle_virtual_ns)
            await asyncio.sleep(LOOK_HOST_S)

    def seen(self) -> list[GuestFidelity]:
        """What was counted so far, in the order of the guests."""
        return list(map(_fidelity, self._pages, self._before, self._busiest))


def _fidelity(page: ClockPage, before: _Counters, busiest: BusiestSecond) -> GuestFidelity:
    now = _Counters.of(page)
    counts = page.lateness_counts()
    passed_ns = now.virtual_ns - before.virtual_ns
    idle_ns = now.idle_virtual_ns - before.idle_virtual_ns
    return GuestFidelity(
        lateness_us=_lateness(counts, page.read("lateness_max_ns")),
        timers=sum(counts),
        reads=now.reads - before.reads,
        lateness_ns_counts=counts,
        busy=min(1.0, max(0.0, 1 - idle_ns / passed_ns)) if passed_ns else None,
        busiest_second=busiest.busy,
        disk_requests=page.read("disk_requests"),
        disk_errors=page.read("disk_errors"),
        shares=_shares(page),
    )


def _shares(page: ClockPage) -> SharesRecord | None:
    if not page.read("kernel_sleep"):
        return None
    work_s, other_s, busy_s, lost_s = (page.read(name) / 1e9 for name in SHARES_COUNTERS)
    return SharesRecord(charged_s=work_s, uncharged_s=other_s, busy_s=busy_s, lost_s=lost_s)


def _together(shares: Sequence[SharesRecord]) -> SharesRecord | None:
    if not shares:
        return None
    return SharesRecord(**{name: sum(getattr(each, name) for each in shares) for name in SharesRecord.model_fields})


def _most(shares: Iterable[float | None]) -> float | None:
    return max((share for share in shares if share is not None), default=None)


def _lateness(counts: Sequence[int], max_ns: int) -> LatenessRecord:
    p50, p99, p999 = (min(lateness_of_share(counts, share), max_ns) / 1e3 for share in (0.5, 0.01, 0.001))
    return LatenessRecord(p50=p50, p99=p99, p999=p999, max=max_ns / 1e3)
