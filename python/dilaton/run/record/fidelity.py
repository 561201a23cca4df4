"""What a run's guests have counted, for its record."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence

from dilaton.host.counters import Counters, Late, Stretch
from dilaton.host.port import Guest
from dilaton.measure.busiest import BusiestSecond
from dilaton.measure.lateness import lateness_of_share
from dilaton.run.record.model import (
    Adaptation,
    BeginRecord,
    BusyRecord,
    ClockChange,
    ContentionRecord,
    Fidelity,
    FramesRecord,
    GuestFidelity,
    LatenessRecord,
    SharesRecord,
    StretchRecord,
)

LOOK_HOST_S = 0.1
"""Between looks for the busiest second."""


def together(
    guests: Sequence[GuestFidelity], tdf_trace: Sequence[ClockChange], adaptation: Adaptation | None
) -> Fidelity:
    """How well a run with these guests kept virtual time: all timers together, and the busiest guest."""
    counts = [sum(bins) for bins in zip(*(guest.lateness_ns_counts for guest in guests), strict=True)]
    worst_ns = round(max(guest.lateness_us.max for guest in guests) * 1e3)
    return Fidelity(
        lateness_us=_lateness(Late(counts, worst_ns)),
        timers=sum(guest.timers for guest in guests),
        reads=sum(guest.reads for guest in guests),
        lateness_ns_counts=counts,
        frames=_frames_together([guest.frames for guest in guests if guest.frames]),
        busy=_most(guest.busy for guest in guests),
        busiest_second=_most(guest.busiest_second for guest in guests),
        busy_periods=_periods_together([guest.busy_periods for guest in guests if guest.busy_periods is not None]),
        contention=_contention_together([each.contention for each in guests if each.contention is not None]),
        disk_requests=sum(guest.disk_requests for guest in guests),
        disk_errors=sum(guest.disk_errors for guest in guests),
        shares=_together([guest.shares for guest in guests if guest.shares is not None]),
        counter_switch_ns=max(guest.counter_switch_ns for guest in guests),
        counter_given_up=any(guest.counter_given_up for guest in guests),
        tdf_trace=list(tdf_trace),
        adaptation=adaptation,
    )


class Tally:
    """Counts from the moment it is made on."""

    def __init__(self, guests: Sequence[Guest]) -> None:
        """Begins to count."""
        self._guests = guests
        self._before = [guest.counters() for guest in guests]
        self._busiest = [BusiestSecond(before.virtual_ns, before.idle_ns) for before in self._before]

    async def follow(self) -> None:
        """Looks for the busiest second until it is cancelled."""
        while True:
            for guest, busiest in zip(self._guests, self._busiest, strict=True):
                now = guest.counters()
                busiest.look(now.virtual_ns, now.idle_ns)
            await asyncio.sleep(LOOK_HOST_S)

    def seen(self) -> list[GuestFidelity]:
        """What was counted so far, in the order of the guests."""
        now = [guest.counters() for guest in self._guests]
        return list(map(_fidelity, now, self._before, self._busiest))

    def counted(self) -> list[tuple[Counters, Counters]]:
        """What each guest had counted at the beginning, and has by now."""
        return [(before, guest.counters()) for guest, before in zip(self._guests, self._before, strict=True)]


def _fidelity(now: Counters, before: Counters, busiest: BusiestSecond) -> GuestFidelity:
    passed_ns = now.virtual_ns - before.virtual_ns
    idle_ns = now.idle_ns - before.idle_ns
    return GuestFidelity(
        lateness_us=_lateness(now.timers),
        timers=sum(now.timers.counts),
        reads=now.reads - before.reads,
        lateness_ns_counts=list(now.timers.counts),
        frames=_frames(now.frames),
        busy=min(1.0, max(0.0, 1 - idle_ns / passed_ns)) if passed_ns else None,
        busiest_second=busiest.busy,
        busy_periods=_periods(now),
        contention=_contention(now),
        disk_requests=now.disk_requests,
        disk_errors=now.disk_errors,
        shares=_shares(now),
        counter_switch_ns=now.counter_switch_ns,
        counter_given_up=now.counter_given_up,
    )


def _frames(seen: Late) -> FramesRecord | None:
    if not any(seen.counts):
        return None
    return FramesRecord(received=sum(seen.counts), lateness_us=_lateness(seen), lateness_ns_counts=list(seen.counts))


def _frames_together(guests: Sequence[FramesRecord]) -> FramesRecord | None:
    counts = [sum(bins) for bins in zip(*(guest.lateness_ns_counts for guest in guests), strict=True)]
    return _frames(Late(counts, round(max((guest.lateness_us.max for guest in guests), default=0) * 1e3)))


def _periods(seen: Counters) -> BusyRecord:
    busy = seen.busy.since()
    return BusyRecord(
        ns_counts=list(busy.counts),
        ns_totals=list(busy.totals_ns),
        interrupts=list(busy.interrupts),
        longest_ns=busy.longest_ns,
        idle_ns_totals=list(busy.idle_totals_ns),
    )


def _periods_together(each: Sequence[BusyRecord]) -> BusyRecord | None:
    if not each:
        return None
    return BusyRecord(
        ns_counts=_added(one.ns_counts for one in each),
        ns_totals=_added(one.ns_totals for one in each),
        interrupts=_added(one.interrupts for one in each),
        longest_ns=max(one.longest_ns for one in each),
        idle_ns_totals=_added(one.idle_ns_totals for one in each),
    )


def _contention(seen: Counters) -> ContentionRecord | None:
    if (found := seen.contention) is None:
        return None
    return ContentionRecord(
        ns_counts=list(found.counts),
        ns_totals=list(found.totals_ns),
        interrupts=list(found.interrupts),
        longest_ns=max((stretch.ns for stretch in found.longest), default=0),
        longest=_stretches(found.longest),
        jobs_ns_counts=list(found.jobs),
        begins=[
            BeginRecord(process=each.process, at_s=None if each.at_ns is None else each.at_ns / 1e9)
            for each in found.begins
        ],
        waits=_stretches(found.waits),
    )


def _stretches(found: Iterable[Stretch]) -> list[StretchRecord]:
    return [StretchRecord(begin_s=each.begin_ns / 1e9, end_s=each.end_ns / 1e9) for each in found]


def _contention_together(each: Sequence[ContentionRecord]) -> ContentionRecord | None:
    if not each:
        return None
    return ContentionRecord(
        ns_counts=_added(one.ns_counts for one in each),
        ns_totals=_added(one.ns_totals for one in each),
        interrupts=_added(one.interrupts for one in each),
        longest_ns=max(one.longest_ns for one in each),
        longest=_longest_first(of for one in each for of in one.longest),
        begins=sorted((of for one in each for of in one.begins), key=lambda of: of.process),
        waits=_longest_first(of for one in each for of in one.waits),
        jobs_ns_counts=_added(one.jobs_ns_counts for one in each),
    )


def _longest_first(stretches: Iterable[StretchRecord]) -> list[StretchRecord]:
    return sorted(stretches, key=lambda of: of.begin_s - of.end_s)


def _added(bins: Iterable[Sequence[int]]) -> list[int]:
    return [sum(of_bin) for of_bin in zip(*bins, strict=True)]


def _shares(seen: Counters) -> SharesRecord | None:
    if (shares := seen.shares) is None:
        return None
    return SharesRecord(
        charged_s=shares.work_ns / 1e9,
        uncharged_s=shares.other_ns / 1e9,
        busy_s=shares.busy_ns / 1e9,
        lost_s=shares.lost_ns / 1e9,
    )


def _together(shares: Sequence[SharesRecord]) -> SharesRecord | None:
    if not shares:
        return None
    return SharesRecord(**{name: sum(getattr(each, name) for each in shares) for name in SharesRecord.model_fields})


def _most(shares: Iterable[float | None]) -> float | None:
    return max((share for share in shares if share is not None), default=None)


def _lateness(seen: Late) -> LatenessRecord:
    p50, p99, p999 = (min(lateness_of_share(seen.counts, share), seen.max_ns) / 1e3 for share in (0.5, 0.01, 0.001))
    return LatenessRecord(p50=p50, p99=p99, p999=p999, max=seen.max_ns / 1e3)
