"""Whether the results of a run can be trusted.

**Problem.** An emulator that is too slow for its network does not stop: it goes on and gives wrong numbers. What a run
can be blamed for is what was late, of packets and of programs, and the plan says what the network can notice of that.
That is a matter of *paths*, between nodes that talk to each other (`dilaton.plan.network.conversations`): an access
link of 100 us before a way of 40 ms, or one of 10 Gbit/s before a bottleneck of 10 Mbit/s, notices nothing by itself.

- **Waiting.** Programs wait for the guest's CPU, on every drive but `event`, where it takes no time. What they do late
  is noticed when it comes later by a quarter of a round trip, or of what the bottleneck's queue takes to fill or drain:
  `dilaton.measure.waiting.waits` explains what is known of that, `busy_periods` beside it what is where a kernel does
  not tell who waits, and `patience` decides, for the TDF that follows the load as well. A guest with a TDF of its own
  is as slow as the lab asks for.

  Where all that was measured is flows that filled their bottlenecks, none was kept from anything, by waits, a stall or
  a busy CPU (`dilaton.measure.waiting.filled`); likewise what nodes lacked of their shares.

- **Beginning.** Programs that begin at one instant wait for each other first, and then find what others have done
  meanwhile. A twentieth of the time that one of them looks at may be a wait in it (`dilaton.measure.waiting.together`),
  or by how much further apart they began than the lab says, where that is known (`dilaton.measure.waiting.begins`).

Every packet that leaves a queue or a wire does so by a timer of the guest's kernel, and what a timer is late, the
packet is. So the histogram of *lateness* is the histogram of the errors of packets' times. On the work drive packets
keep their instants even when the CPU comes to them later. What is late there is what they ask of programs, and where
it is known how long programs waited, that and nothing else is judged.

- **Delay.** A packet that is late by 1 % of a link's delay makes the round trip over it wrong by less than 1 %; on a
  path each link adds its own. So at most one timer in a hundred may be later than 1 % of the mean delay of a path's
  links, on the work drive than 5 % of it; if one in a hundred is later than ten times that, round trips are not those
  of the lab.
- **Absence.** On the wall drive nothing is served while the CPU is away, and the one timer to which it then comes late
  stands for all packets that came due meanwhile. How many these are is not counted; how long it was is. So the bounds
  of the delay hold for instants, too: in at most 1 % of virtual time may what comes due have to wait for longer.
- **Offered load.** A program that was told to send at a rate says itself whether it could
  (`dilaton.measure.waiting.offered`): one that sent less waited for the CPU, however short and rare that was in the
  whole run.
- **Answers.** What the answer to a ping takes over links that nobody else uses is known before
  (`dilaton.measure.waiting.answered`): if half of them took a twentieth more, the machine took that for each packet,
  and nothing waited.
- **Ends.** The rate of UDP that `iperf3` says was received is divided by the time until it hears of the end, over a
  queue that the flow may have filled (`dilaton.measure.waiting.ended`). Fractions of a millisecond decide whether there
  is room for the word of that end. So of that time at most a twentieth may be one in which nothing came, and which the
  way does not explain (judged in `dilaton.run.record.programs`, of the results that a record has).
- **Serialisation.** When a timer is later than a full frame takes on a link, the next frame is due as well, and both
  leave back to back: the gaps between packets, and what the queue behind sees, are no longer the link's. So at most one
  timer in a hundred may be later than a full frame takes on the fastest bottleneck of a path. If half of all are later
  than ten frames take, the link sends bursts.
- **Frames between guests** are moved by no timer of their receiver. How late each was is counted, too, and held to the
  bounds of timers, by the paths that lead over the wires on which they came: on the work drive to a twentieth of what
  one way takes, as of all else, divided by its wires, each of which adds its own. A round trip takes twice as long, but
  then frames may be late both ways.
- **Stalls.** A single long lateness is the host's, not the lab's. TCP takes no harm from what is shorter than a round
  trip, as its probes wait for two of them (RFC 8985, section 7.2), nor programs from less than a tick of the kernel.
- **Capacity.** A guest has one CPU. What waits for it waits, as in every queue, in the mean rho / (1 - rho) times as
  long as its service takes: at a busy fraction of 0.9 nine times. Beyond, the CPU is the bottleneck, not the network; a
  second of that is enough to spoil what a program measures in it, however idle the rest of the run was.
- **Epochs.** A run that is watched is judged epoch by epoch as well. Some of its epochs are out of bounds wherever the
  TDF follows: a load that comes is known when an epoch is over, and programs that start make the CPU busy. But in at
  most a fifth of virtual time may that be, or what was measured in all is not of the network. A second of it is not
  minded, as a shorter overload is not minded elsewhere.
- **Shares.** A node whose CPU is a share of its guest's may wake late and catch up; what it cannot catch up with is
  lost. A program is late by no more than all that was lost, so that, as a part of its time, is by how much it took too
  long: of what its CPU had to do in all, or of how long the shortest program lived, whichever is more. It may be a
  twentieth, as of everything else here. A core of the host is no steadier: what else the host does makes the same work
  cost half as much again.
- **Repetition.** On the event drive a program that spins is preempted where the host happens to be: the same seed may
  give another run.
- **Memory.** A guest is many machines in the memory of one. Where TCP's buffers all together come near what the kernel
  lets them have, receivers drop what no queue has, and senders slow down. Without memory the kernel ends a program.
- **Offload.** With segmentation offload the kernel takes up to 64 KiB of a flow for one packet: a queue counts, a loss
  takes and a delay moves all of it at once, which is not what a network of packets does.
- **Observation.** Packets that a capture dropped, and samples that were not taken or not in time, are not in the
  results.

A lab may say how much lateness it does not mind, which then takes the place of what its paths can notice where that is
less. `dilaton.measure.reasons` has what the advice is reckoned from.

`docs/fidelity.md` is the same for users.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import NamedTuple

from dilaton.measure import numbers
from dilaton.measure.lateness import lateness_of_share, share_later, time_later
from dilaton.measure.observation import Memory, Observation
from dilaton.measure.reasons import (
    WRITE_CPU,
    Level,
    Reason,
    Verdict,
    duration,
    enough,
    late,
    percent,
    raise_or_change,
    raised,
    slow,
)
from dilaton.measure.waiting.busy_periods import LATE_SHARE_MAX, BusyPeriods
from dilaton.measure.waiting.offered import SHORT_MAX
from dilaton.measure.waiting.patience import Patience
from dilaton.measure.waiting.together import Together
from dilaton.measure.waiting.waits import Waits
from dilaton.plan.network.bounds import DELAY_SHARE_MAX, FRAMES_MAX, Network

TIMERS_LATE_MAX = 0.01
"""The share of timers, and on the wall drive of instants, that may be later than a bound."""

INVALID_TIMES = 10.0
"""What is later than so many times the bound of the delay is not the lab's any more."""
FRAMES_INVALID = 10.0
LATE_SHARE_INVALID = 0.5
"""The share of timers that may be later than `FRAMES_INVALID` frames take."""

BESIDE_SHARE_MAX = 0.05
"""The share of the time for which a program talks beside others that one of them may have waited without a pause."""

STALL_NS_MIN = 10_000_000
"""A tick of a guest's kernel (HZ = 100): a shorter stall is nothing to a program."""

OFFLOAD_BYTES_MAX = 65536
"""What the kernel takes for one packet with segmentation offload."""

SHARE_LOST_MAX, SHARE_LOST_INVALID = 0.05, 0.1
"""By how much of its time a node's program may be late as its CPU was not there."""

OUT_SHARE_MAX = 0.2
OUT_NS_MIN = 1_000_000_000
"""The share of virtual time, judged epoch by epoch, that may be out of bounds, and the time that may be so in any
case."""

BUSY_MAX = 0.9
BUSY_WANTED = 0.5
"""What the advice aims at."""


def judge(network: Network, seen: Observation) -> Verdict:
    """The verdict on a run."""
    found = [
        _waiting(network, seen),
        _beginning(network, seen),
        _delay(network, seen),
        _absence(network, seen),
        _serialisation(network, seen),
        _stall(network, seen),
        _busy(seen),
        _epochs(seen),
        _shares(seen),
        _offload(network),
        *(_dropped(name, count) for name, count in seen.packets_dropped if count),
        *(_ended(f"the capture of {name}", why, "captures", "capture less") for name, why in seen.captures_ended),
        *(_ended(f"the samples of {of}", why, "tables", "sample less often") for of, why in seen.samplings_ended),
        _samples(seen),
        *map(_spun, seen.spinning),
        _disks(seen),
        *(_short(*shortage) for shortage in seen.shortages),
        _offered(seen),
        _answered(seen),
    ]
    return Verdict.of(reason for reason in found if reason)


def judge_frames(network: Network, seen: Observation, counts: Sequence[int], max_ns: int) -> list[Reason]:
    """What is wrong with the frames that came over wires, by the bounds of timers, which move packets within a guest.

    Args:
        network: What the links promise over which they came.
        seen: Of the guest that received them: its drive and TDF.
        counts: Frames by lateness, as `Observation.lateness_counts`.
        max_ns: The largest lateness.
    """
    late_ns = min(lateness_of_share(counts, TIMERS_LATE_MAX), max_ns)
    found: list[Reason] = []

    def exceeds(value_ns: float, bound_ns: float, what: str, is_invalid: bool = False) -> None:
        if value_ns > bound_ns:
            level: Level = "invalid" if is_invalid else "suspect"
            found.append(late(level, what, value_ns, bound_ns, seen))

    most = f"1 % of frames from other guests were later than {duration(late_ns)}"
    if delay_ns := network.delay_ns_min:
        share = percent(late_ns / delay_ns)
        part = f"{share} of the delay of {network.delay_link}: round trips are wrong by up to as much"
        bound_ns = delay_ns * network.delay_share_max
        exceeds(late_ns, bound_ns, f"{most}, {part}", late_ns > bound_ns * INVALID_TIMES)
    if frame_ns := network.frame_ns_min:
        frame = f"a full frame takes {duration(frame_ns)} on {network.frame_link}: packets came in bursts"
        is_bursty = share_later(counts, frame_ns * FRAMES_INVALID) > LATE_SHARE_INVALID
        exceeds(late_ns, frame_ns * FRAMES_MAX, f"{most}; {frame}, not at the link's pace", is_bursty)
    stall = f"a frame from another guest was late by {max_ns / 1e6:.4g} ms: for that long nothing was received"
    return [*found, *filter(None, [_stalled(network, seen, max_ns, stall)])]


def _offload(network: Network) -> Reason | None:
    if not network.offloaded:
        return None
    (name, mtu), more = network.offloaded[0], len(network.offloaded) - 1
    others = f" and {more} more" if more else ""
    return Reason(
        "suspect",
        f"{name}{others} takes up to 64 KiB for one packet, as its link has offload: true",
        OFFLOAD_BYTES_MAX,
        mtu,
        "B",
        "remove offload: true, unless speed matters more than packets",
    )


def _late_ns(seen: Observation) -> float:
    """The lateness that 1 % of the timers exceed: by the bins, but of few timers no more than that of the latest."""
    return min(lateness_of_share(seen.lateness_counts, TIMERS_LATE_MAX), seen.lateness_max_ns)


def judge_waiting(asked: Patience, seen: Observation) -> Reason | None:
    """What is wrong with how long the programs of a guest waited, of which the rest is seen."""
    if not asked.is_lost or seen.drive == "event" or seen.own_tdf or seen.is_filled:
        return None
    return slow(seen, asked.said(), asked.share(), LATE_SHARE_MAX, asked.factor_needed())


def _waiting(network: Network, seen: Observation) -> Reason | None:
    told = seen.waits or seen.busy_periods
    return None if told is None else judge_waiting(Patience(network, told), seen)


def _beginning(network: Network, seen: Observation) -> Reason | None:
    told = seen.waits or seen.busy_periods
    if not seen.together or told is None or seen.drive == "event" or seen.own_tdf or seen.is_filled:
        return None

    def share(of: Together) -> float:
        return _met_later(of, told).ns / (of.seconds * 1e9) * of.part

    minded = [each for each in seen.together if _met_later(each, told).ns > (network.tolerance_ns or 0)]
    worst = max(minded, key=share, default=None)
    if worst is None or share(worst) <= BESIDE_SHARE_MAX:
        return None
    later, part = _met_later(worst, told), share(worst) / worst.part
    looked = f"{percent(part)} of the time that {worst.process} looked at beside others{_depends(worst.part)}"
    what = f"{later.what.format(duration(later.ns))}, {looked}{later.so}"
    return slow(seen, what, share(worst), BESIDE_SHARE_MAX, share(worst) / BESIDE_SHARE_MAX)


class _Later(NamedTuple):
    """By how much later than in the lab a program may have met others, virtual nanoseconds, and what says so."""

    ns: float
    what: str
    so: str = ""


def _met_later(of: Together, told: Waits | BusyPeriods) -> _Later:
    begin_ns, end_ns = of.begin_s * 1e9, of.end_s * 1e9
    waited, begun = "a program waited for the CPU for {}", ": it may have begun as much later than they"
    if not isinstance(told, Waits):
        return _Later(told.longest_ns(begin_ns, end_ns), "the guest was busy without a pause for {}", begun)
    if of.apart_s is None:
        return _Later(told.longest_ns(begin_ns, end_ns), waited, begun)
    went_on = _Later(told.talker_ns(begin_ns, end_ns), waited, ": it may have gone on as much later than they")
    return max(_Later(of.apart_s * 1e9, "programs began to talk {} further apart than the lab says"), went_on)


def _depends(part: float) -> str:
    return "" if part == 1 else f", on whom {percent(part)} of what it got depends"


def _offered(seen: Observation) -> Reason | None:
    if not (short := [each for each in seen.offered if each.short > SHORT_MAX]):
        return None
    worst, more = max(short, key=lambda each: each.short), len(short) - 1
    others = f", and {more} more sent less than they were told" if more else ""
    what = (
        f"{worst.process} on {worst.node} sent {numbers.rate(worst.sent_bit_per_s)} where it was told "
        f"{numbers.rate(worst.told_bit_per_s)}, as it waited for the CPU{others}"
    )
    # It had 1 - short of what it needed at least, and is to have it with room.
    factor = 1 / (1 - min(worst.short, 0.99)) / BUSY_WANTED
    return Reason("suspect", what, worst.short, SHORT_MAX, "ratio", raised(seen, factor), enough(seen, factor))


def _answered(seen: Observation) -> Reason | None:
    longer = [each for each in seen.answered if each.longer_ns > each.longer_ns_max]
    worst = max(longer, key=lambda each: each.longer_ns / each.longer_ns_max, default=None)
    if worst is None:
        return None
    what = (
        f"half of the answers to {worst.process} on {worst.node} took {duration(worst.took_ns)} and more, where its "
        f"links take {duration(worst.known_ns)} and nobody else uses them"
    )
    return late("suspect", what, worst.longer_ns, worst.longer_ns_max, seen)


def _tolerated(network: Network, bound_ns: float) -> float:
    """A bound on lateness, or what the lab does not mind where that is more."""
    return max(bound_ns, network.tolerance_ns or 0)


def _keeps_instants(seen: Observation) -> bool:
    """Whether a late timer moves no packet, and what it asks of programs is judged as waits are."""
    return seen.drive == "work" and seen.waits is not None


def _delay(network: Network, seen: Observation) -> Reason | None:
    if network.delay_ns_min is None or _keeps_instants(seen):
        return None
    bound_ns = _tolerated(network, network.delay_ns_min * network.delay_share_max)
    late_ns = _late_ns(seen)
    if late_ns <= bound_ns:
        return None
    invalid_ns = max(bound_ns, network.delay_ns_min * network.delay_share_max * INVALID_TIMES)
    level: Level = "invalid" if late_ns > invalid_ns else "suspect"
    what = (
        f"1 % of timers were later than {duration(late_ns)}, {percent(late_ns / network.delay_ns_min)} of the delay "
        f"of {network.delay_link}: round trips are wrong by up to as much"
    )
    return late(level, what, late_ns, bound_ns, seen)


def _absence(network: Network, seen: Observation) -> Reason | None:
    if network.delay_ns_min is None or seen.drive != "wall" or not seen.virtual_ns:
        return None

    def share_later_than(bound_ns: float) -> float:
        # Timers that were late by the same stall count one by one.
        return min(1.0, time_later(seen.lateness_counts, seen.lateness_max_ns, bound_ns) / seen.virtual_ns)

    bound_ns = _tolerated(network, network.delay_ns_min * DELAY_SHARE_MAX)
    share = share_later_than(bound_ns)
    if share <= TIMERS_LATE_MAX:
        return None
    level: Level = (
        "invalid"
        if share_later_than(max(bound_ns, network.delay_ns_min * DELAY_SHARE_MAX * INVALID_TIMES)) > TIMERS_LATE_MAX
        else "suspect"
    )
    part = f"{percent(bound_ns / network.delay_ns_min)} of the delay of {network.delay_link}"
    what = (
        f"for {percent(share)} of the time packets that came due had to wait for more than {duration(bound_ns)}, "
        f"{part}: the guest did not have its core, or too much to do"
    )
    # At n times the TDF n times as much host time goes into a virtual second, and all of it is n times shorter.
    factor = next(2.0**n for n in count(1) if share_later_than(2.0**n * bound_ns) <= TIMERS_LATE_MAX)
    return Reason(level, what, share, TIMERS_LATE_MAX, "ratio", raise_or_change(seen, factor), enough(seen, factor))


def _serialisation(network: Network, seen: Observation) -> Reason | None:
    if network.frame_ns_min is None or _keeps_instants(seen):
        return None
    bound_ns = _tolerated(network, network.frame_ns_min * FRAMES_MAX)
    late_ns = _late_ns(seen)
    if late_ns <= bound_ns:
        return None
    is_bursty = share_later(seen.lateness_counts, network.frame_ns_min * FRAMES_INVALID) > LATE_SHARE_INVALID
    what = (
        f"1 % of timers were later than {duration(late_ns)}; a full frame takes {duration(network.frame_ns_min)} on "
        f"{network.frame_link}: packets left in bursts, not at the link's pace"
    )
    level: Level = "invalid" if is_bursty else "suspect"
    return late(level, what, late_ns, bound_ns, seen)


def _stall(network: Network, seen: Observation) -> Reason | None:
    what = f"a timer was late by {seen.lateness_max_ns / 1e6:.4g} ms: for that long nothing moved in the guest"
    return None if seen.is_filled else _stalled(network, seen, seen.lateness_max_ns, what)


def _stalled(network: Network, seen: Observation, late_ns: int, what: str) -> Reason | None:
    bound_ns = max(STALL_NS_MIN, 2 * (network.delay_ns_min or 0))
    return replace(late("suspect", what, late_ns, bound_ns, seen), tdf=None) if late_ns > bound_ns else None


def _busy(seen: Observation) -> Reason | None:
    busy, when = seen.busy or 0.0, "of the time"
    if busy <= BUSY_MAX:
        busy, when = seen.busiest_second or 0.0, "of its busiest second"
    if busy <= BUSY_MAX or seen.is_filled:
        return None
    what = f"the guest's CPU was busy {percent(busy)} {when}: what it forwards and computes waits for it"
    factor = busy / BUSY_WANTED
    advice = f"{raised(seen, factor)}, {WRITE_CPU}, or do less in the lab"
    return Reason("suspect", what, busy, BUSY_MAX, "ratio", advice, enough(seen, factor))


def _epochs(seen: Observation) -> Reason | None:
    if seen.out_share <= OUT_SHARE_MAX or seen.out_share * seen.virtual_ns <= OUT_NS_MIN:
        return None
    what = f"fidelity was out of bounds for {percent(seen.out_share)} of virtual time, judged epoch by epoch"
    advice = "write on_violation: retry, or a higher min for auto" if seen.is_adaptive else "raise tdf"
    return Reason("suspect", what, seen.out_share, OUT_SHARE_MAX, "ratio", advice)


def _shares(seen: Observation) -> Reason | None:
    if seen.share_lost <= SHARE_LOST_MAX:
        return None
    level: Level = "invalid" if seen.share_lost > SHARE_LOST_INVALID else "suspect"
    what = f"nodes with a cpu did not get {percent(seen.share_lost)} of it, as other work of the guest was in the way"
    advice = f"{raised(seen, 2)}, or write guests: per-node"
    return Reason(level, what, seen.share_lost, SHARE_LOST_MAX, "ratio", advice)


def _dropped(name: str, count: int) -> Reason:
    what = f"the capture of {name} dropped {numbers.counted(count, 'packet')}: what is read from it is incomplete"
    return Reason("suspect", what, count, 0, "packets", "raise tdf, or capture less: a filter, a smaller snaplen")


def _ended(ended: str, why: str, unit: str, less: str) -> Reason:
    what = f"{ended} ended before the run: {why}"
    return Reason("suspect", what, 1, 0, unit, f"make room on the disk, or {less}")


def _samples(seen: Observation) -> Reason | None:
    if not seen.samples_lost:
        return None
    what = f"{numbers.counted(seen.samples_lost, 'sample')} could not be taken"
    return Reason("suspect", what, seen.samples_lost, 0, "samples", "raise tdf, or sample less often")


def _disks(seen: Observation) -> Reason | None:
    if not seen.disk_errors:
        return None
    requests = numbers.counted(seen.disk_errors, "request")
    what = f"{requests} to disks failed, since this machine could not do them: nodes saw I/O errors"
    return Reason("invalid", what, seen.disk_errors, 0, "requests", "make room where the run directory and images are")


def _short(node: str, memory: Memory, times: int) -> Reason:
    often = "once" if times == 1 else f"{times} times"
    programs = "a program" if times == 1 else f"{times} programs"
    match memory:
        case "tcp":
            what = f"TCP in {node} was short of memory {often}: it may have dropped what no queue has, and sent less"
        case "udp":
            what = f"UDP in {node} was short of memory {often}, and dropped what no queue has"
        case "node" | "guest":
            whose = "its memory: was full" if memory == "node" else "its guest's memory was full"
            what = f"the kernel ended {programs} in {node}, since {whose}"
        case "mappings":
            what = f"the kernel of {node} ended {programs}, as the host lets a process have no more mappings of memory"
            return Reason("suspect", what, times, 0, "times", "on the host: sudo sysctl vm.max_map_count=1048576")
    # A guest is given what its nodes are promised.
    return Reason("suspect", what, times, 0, "times", f"write more memory: at {node}")


def _spun(program: str) -> Reason:
    what = f"{program}: used 5 s of CPU time without entering the kernel, and was then preempted by the host's clock"
    advice = "use the work drive for programs that wait in a loop; if it only computes, the run may not be repeatable"
    return Reason("suspect", what, 5, 5, "s", advice)
