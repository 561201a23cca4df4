"""What a run was seen to do, as far as its verdict asks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dilaton.measure.waiting.answered import Answered
from dilaton.measure.waiting.busy_periods import BusyPeriods
from dilaton.measure.waiting.offered import Offered
from dilaton.measure.waiting.together import Together
from dilaton.measure.waiting.waits import Waits

Memory = Literal["tcp", "udp", "node", "guest", "mappings"]
"""What can be short: what all TCP connections of a guest may take, or all UDP sockets; a node's memory; a guest's; and
what the host maps for a process."""


@dataclass(frozen=True)
class Observation:
    """What a run was seen to do.

    Attributes:
        drive: `wall`, `work` or `event`.
        tdf: Host seconds per virtual second; in the mean, when it followed the load.
        lateness_counts: Timers by lateness: bin 0 on time, bin i those in [2^(i-1), 2^i) virtual nanoseconds.
        lateness_max_ns: The largest.
        busy: The share of virtual time in which the guest's CPU worked, 0..1; None when it is not known.
        busiest_second: The same of the busiest virtual second; None when it is not known.
        busy_periods: For how long without a pause the guest was busy; None when it is not known.
        waits: For how long its programs waited for each other; None when its kernel does not tell.
        together: The programs of the run that talked beside others, as far as is known.
        is_filled: Whether all that programs of the run measured is flows that filled their bottlenecks.
        packets_dropped: By captures, by the name of the interface.
        samples_lost: Samples that should have been taken, and were not.
        captures_ended: Captures that ended before the run did, with the reason.
        samplings_ended: Tables of samples that did, with the reason.
        spinning: Programs that spun on the event drive, with their nodes.
        is_adaptive: Whether the TDF followed the load.
        own_tdf: Of which guest and, where one is alone in it, which node the TDF is; none: it is the run's.
        disk_errors: Requests to disks that this machine could not do.
        shortages: In which node which memory was short, and how often, or how many programs the kernel ended for it; of
            mappings in which guest, as its kernel does not say whose it was.
        share_lost: The part of their time by which programs of nodes with a share of the guest's CPU may be late, as
            they did not get all of it, 0..1.
        virtual_ns: Virtual time in which these timers were served; 0 when it is not known.
        out_share: The share of virtual time that was out of bounds, epoch by epoch, 0..1; of a run that was watched.
        offered: What programs sent, and what they were told to.
        answered: What the answers to pings took of which it is known what they take.
    """

    drive: str
    tdf: float
    lateness_counts: Sequence[int] = ()
    lateness_max_ns: int = 0
    busy: float | None = None
    busiest_second: float | None = None
    busy_periods: BusyPeriods | None = None
    waits: Waits | None = None
    together: Sequence[Together] = ()
    is_filled: bool = False
    packets_dropped: tuple[tuple[str, int], ...] = ()
    samples_lost: int = 0
    captures_ended: tuple[tuple[str, str], ...] = ()
    samplings_ended: tuple[tuple[str, str], ...] = ()
    spinning: tuple[str, ...] = ()
    is_adaptive: bool = False
    own_tdf: tuple[str, ...] = ()
    disk_errors: int = 0
    shortages: tuple[tuple[str, Memory, int], ...] = ()
    share_lost: float = 0.0
    virtual_ns: int = 0
    out_share: float = 0.0
    offered: tuple[Offered, ...] = ()
    answered: tuple[Answered, ...] = ()
