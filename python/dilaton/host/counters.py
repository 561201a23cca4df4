"""What guests and the wires between them have counted at some moment: values that do not change any more."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from enum import IntFlag
from typing import TypeVar

BINS = 64
"""How many bins a histogram has: bin 0 counts zeros, bin n what has n binary digits."""

NOTHING = (0,) * BINS
"""A histogram in which nothing was counted."""


class Lack(IntFlag):
    """What a program asked for that a guest does not have."""

    KVM = 1
    OTHER_CPU = 2
    AMX = 4
    CPU_TIMER = 8
    """A timer of CPU time, on the event drive."""


NO_LACK = Lack(0)


@dataclass(frozen=True)
class Late:
    """How late timers were served, or frames received.

    Attributes:
        counts: How many, by their lateness in virtual nanoseconds, in bins.
        max_ns: The largest lateness.
    """

    counts: Sequence[int] = NOTHING
    max_ns: int = 0

    def and_then(self, later: Late) -> Late:
        """Those counted here and there."""
        return Late(_added(self.counts, later.counts), max(self.max_ns, later.max_ns))


@dataclass(frozen=True)
class Busy:
    """Busy periods of a guest, by their length in virtual nanoseconds, in bins: bin i those of [2^(i-1), 2^i).

    A guest counts while it is read, one word after the other, so a period may be in one of the sequences and not yet in
    the others.

    Attributes:
        counts: How many have ended.
        totals_ns: How long these were together, in virtual time.
        interrupts: How many interrupts the kernel got in them.
        idle_totals_ns: How long the idle periods between them were together, by their length.
        longest_ns: The longest, the present one included.
        present_ns: How long the present one has been so far; 0: there is none.
        present_interrupts: How many interrupts the kernel got in that.
    """

    counts: Sequence[int] = NOTHING
    totals_ns: Sequence[int] = NOTHING
    interrupts: Sequence[int] = NOTHING
    idle_totals_ns: Sequence[int] = NOTHING
    longest_ns: int = 0
    present_ns: int = 0
    present_interrupts: int = 0

    def since(self, before: Busy | None = None) -> Busy:
        """Those that have ended since an earlier moment, or ever, and the present one as if it ended now.

        One that went on at that moment is among them with its whole length, whatever was seen of it then.
        """
        before = before or Busy()
        counts, totals_ns, interrupts, idle_totals_ns = (
            [now - then for now, then in zip(*both, strict=True)]
            for both in (
                (self.counts, before.counts),
                (self.totals_ns, before.totals_ns),
                (self.interrupts, before.interrupts),
                (self.idle_totals_ns, before.idle_totals_ns),
            )
        )
        counts = _whole(counts, totals_ns)
        if self.present_ns:
            present = min(self.present_ns.bit_length(), BINS - 1)
            counts[present] += 1
            totals_ns[present] += self.present_ns
            interrupts[present] += self.present_interrupts
        return Busy(counts, totals_ns, interrupts, idle_totals_ns, self.longest_ns)

    def and_then(self, later: Busy) -> Busy:
        """Those here, the present one as if it had ended, and those of later."""
        ended = self.since()
        return replace(
            later,
            counts=_added(ended.counts, later.counts),
            totals_ns=_added(ended.totals_ns, later.totals_ns),
            interrupts=_added(ended.interrupts, later.interrupts),
            idle_totals_ns=_added(ended.idle_totals_ns, later.idle_totals_ns),
            longest_ns=max(ended.longest_ns, later.longest_ns),
        )


@dataclass(frozen=True)
class Stretch:
    """A stretch of virtual time: its ends, since the run's virtual 0."""

    begin_ns: int
    end_ns: int

    @property
    def ns(self) -> int:
        """How long it is."""
        return self.end_ns - self.begin_ns


@dataclass(frozen=True)
class Begin:
    """When a program that the lab starts began to talk to others.

    Attributes:
        process: Which process of the plan, by its place there.
        at_ns: Since the run's virtual 0; None: it has not.
    """

    process: int
    at_ns: int | None


@dataclass(frozen=True)
class Contention:
    """Stretches of virtual time in which a program waited for the CPU that another had, in the bins of busy periods.

    Attributes:
        counts: How many there were.
        totals_ns: How long they were together.
        interrupts: How many interrupts the kernel got in them.
        jobs: What programs were woken up for and have done, by how long that took, waiting included.
        longest: The longest of them, the longest first; there may be shorter ones.
        begins: When programs that the lab starts began to talk, of the first of them, as far as it is known.
        waits: For how long programs that talk may have waited, the longest first; there may be shorter ones.
    """

    counts: Sequence[int] = NOTHING
    totals_ns: Sequence[int] = NOTHING
    interrupts: Sequence[int] = NOTHING
    jobs: Sequence[int] = NOTHING
    longest: Sequence[Stretch] = ()
    begins: Sequence[Begin] = ()
    waits: Sequence[Stretch] = ()

    def since(self, before: Contention | None = None) -> Contention:
        """Those that have ended since an earlier moment, or ever; `longest`, `begins` and `waits` are those of all."""
        before = before or Contention()
        counts, totals_ns, interrupts, jobs = (
            [now - then for now, then in zip(*both, strict=True)]
            for both in (
                (self.counts, before.counts),
                (self.totals_ns, before.totals_ns),
                (self.interrupts, before.interrupts),
                (self.jobs, before.jobs),
            )
        )
        whole = _whole(counts, totals_ns)
        return replace(self, counts=whole, totals_ns=totals_ns, interrupts=interrupts, jobs=jobs)

    def and_then(self, later: Contention) -> Contention:
        """Those counted here and there."""
        return Contention(
            _added(self.counts, later.counts),
            _added(self.totals_ns, later.totals_ns),
            _added(self.interrupts, later.interrupts),
            _added(self.jobs, later.jobs),
            sorted([*self.longest, *later.longest], key=lambda each: each.ns, reverse=True),
            [*self.begins, *later.begins],
            sorted([*self.waits, *later.waits], key=lambda each: each.ns, reverse=True),
        )


@dataclass(frozen=True)
class Shares:
    """What nodes have got whose CPUs are shares of their guest's, in virtual nanoseconds but for the work.

    Attributes:
        work_ns: CPU time of the host that they used.
        other_ns: CPU time of the host that was charged to no node.
        busy_ns: How long they took for their work.
        lost_ns: How much longer they took than they should have.
    """

    work_ns: int = 0
    other_ns: int = 0
    busy_ns: int = 0
    lost_ns: int = 0

    def and_then(self, later: Shares) -> Shares:
        """What they have got here and there."""
        return Shares(
            self.work_ns + later.work_ns,
            self.other_ns + later.other_ns,
            self.busy_ns + later.busy_ns,
            self.lost_ns + later.lost_ns,
        )


@dataclass(frozen=True)
class Counters:
    """What a guest has counted, since its start where nothing else is said.

    Attributes:
        virtual_ns: The latest reading of its clock, since the run's virtual 0. An idle guest reads no clock.
        idle_ns: Virtual time in which it was idle.
        reads: Readings of its clock.
        timers: Those served since the run's virtual 0.
        frames: Those that came over wires since then.
        busy: Its busy periods since then.
        contention: How programs waited for each other since then; None where the kernel does not tell.
        shares: None where no node has a share of its CPU.
        disk_requests: Served by its disks.
        disk_errors: Of these, those that failed.
        spinning: Programs found to spin, on the event drive.
        lacks: What its programs have asked for in vain.
        address_space_lacked_bytes: The largest address space that one of them asked for in vain.
        counter_switch_ns: What it takes to give up the time-stamp counter and to take it back; 0: not measured.
        counter_given_up: Whether it gives that up while programs run.
    """

    virtual_ns: int = 0
    idle_ns: int = 0
    reads: int = 0
    timers: Late = field(default_factory=Late)
    frames: Late = field(default_factory=Late)
    busy: Busy = field(default_factory=Busy)
    contention: Contention | None = None
    shares: Shares | None = None
    disk_requests: int = 0
    disk_errors: int = 0
    spinning: int = 0
    lacks: Lack = NO_LACK
    address_space_lacked_bytes: int = 0
    counter_switch_ns: int = 0
    counter_given_up: bool = False

    def and_then(self, later: Counters, begun: Counters) -> Counters:
        """What a guest has counted whose kernel ended with these, and another one went on.

        Args:
            later: What that has counted by now.
            begun: What it had counted when it went on with the run.
        """
        return replace(
            later,
            virtual_ns=max(self.virtual_ns, later.virtual_ns),
            idle_ns=self.idle_ns + later.idle_ns - begun.idle_ns,
            reads=self.reads + later.reads - begun.reads,
            timers=self.timers.and_then(later.timers),
            frames=self.frames.and_then(later.frames),
            busy=self.busy.and_then(later.busy),
            contention=_one_then_other(self.contention, later.contention),
            shares=_one_then_other(self.shares, later.shares),
            disk_requests=self.disk_requests + later.disk_requests,
            disk_errors=self.disk_errors + later.disk_errors,
            spinning=self.spinning + later.spinning,
            lacks=self.lacks | later.lacks,
            address_space_lacked_bytes=max(self.address_space_lacked_bytes, later.address_space_lacked_bytes),
            counter_switch_ns=max(self.counter_switch_ns, later.counter_switch_ns),
            counter_given_up=self.counter_given_up or later.counter_given_up,
        )


@dataclass(frozen=True)
class Traffic:
    """What one way of a wire has carried.

    Frames under way are those sent and neither received nor not received, `bytes_under_way` what they take in the ring.
    `late`, `disordered` and `lost` break what the wire promises, and are 0 in every run.
    """

    sender: int
    """Number of the guest that sends."""
    receiver: int
    sent: int = 0
    bytes_sent: int = 0
    not_sent: int = 0
    received: int = 0
    bytes_received: int = 0
    not_received: int = 0
    late: int = 0
    disordered: int = 0
    bytes_under_way: int = 0

    @property
    def lost(self) -> int:
        """Frames that are nowhere; those on the way between others are found when the next one is `disordered`."""
        missing = self.sent - self.received - self.not_received
        return abs(missing) if missing < 0 or not self.bytes_under_way else 0


@dataclass(frozen=True)
class Waits:
    """What a guest has spent on keeping to the others' time.

    Attributes:
        windows: Stretches of virtual time in which it could run.
        waits: How often it waited for another.
        waited_host_ns: For how long.
        agreements: How often all had to agree on when the next thing happens.
        wakes: How often it woke another.
    """

    windows: int = 0
    waits: int = 0
    waited_host_ns: int = 0
    agreements: int = 0
    wakes: int = 0


@dataclass(frozen=True)
class Wires:
    """The wires of a run: what each way has carried, there and back of one wire after the other, and what each guest
    has spent on waiting, in their order."""

    ways: Sequence[Traffic]
    waits: Sequence[Waits]


def _whole(counts: Sequence[int], totals_ns: Sequence[int]) -> list[int]:
    """The counts of stretches of which the totals may have been counted already: of those shorter than 2^i, so many are
    needed to be that long together."""
    return [
        max(count, -(-total_ns >> bin_)) for bin_, (count, total_ns) in enumerate(zip(counts, totals_ns, strict=True))
    ]


def _added(these: Sequence[int], those: Sequence[int]) -> list[int]:
    return [one + other for one, other in zip(these, those, strict=True)]


Counted = TypeVar("Counted", Contention, Shares)


def _one_then_other(one: Counted | None, other: Counted | None) -> Counted | None:
    return one.and_then(other) if one and other else one or other
