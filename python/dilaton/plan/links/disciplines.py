"""What a direction of a link does to packets, as queue disciplines of the interface that sends.

A link is a queue, a sender that empties it at the link's rate, and a wire with a delay on which packets may be lost.
One netem could do all of it, but with one limit for the packets that queue and those on the wire together: with a
limit of ten packets, a wire longer than ten packets could never be filled. So the two are separated:

    packets ──► drops ──► wire: netem with delay, loss, … ──► queue: the link's rate and limit ──► veth, at once

**The wire comes before the queue**, since the kernel hands packets from the outer discipline to the inner one. For a
constant delay that changes nothing that can be observed at the ends: everything that happens at the queue happens just
as it would have, a delay later; the same packets meet a full queue, and a packet leaves the link when it would have,
since delay + waiting = waiting + delay. Losses are then losses in front of the queue: a lost packet takes neither its
space nor time of the link, so a link of loss p still carries its whole rate. A jitter varies what arrives at the queue,
and the queue keeps the order that it finds.

The limit of the wire must never be what drops a packet. Packets arrive as fast as the sending node can make them,
whatever the link's rate, so it is what would be on the wire at `ARRIVAL_RATE` in the smallest frames, more than any
guest can send. It reserves no memory.

**Who holds the queue** depends on what is asked of it.

- A first-in-first-out queue with a limit in packets and a constant rate is a second *netem*. It knows at arrival when a
  packet will have been sent, so its timers cannot drift, a packet arrives when its last bit does, and no burst is
  possible. (netem counts the packet being sent, the limit that users write does not; hence one more.)
- Everything else waits in a discipline of its own below a shaper, because netem offers neither limits in bytes nor
  active queue management, and packets that wait in it keep the rate at which they came. The shaper is *hfsc* with one
  linear upper limit: it spaces the starts of packets by exactly what each takes, makes up for a late timer, and
  saves up nothing while idle. A token bucket cannot do all three: what it may save for late timers it also saves up
  when idle. (A real-time curve does all three, too. But the kernels of today take a class of which packets waited when
  the interface went down for one that is in the tree of those to be served, and so never serve it again.) hfsc reckons
  with rates of 32 bits and a rounding that reaches 0.5 % at `HFSC_RATE_MAX`; beyond it is *htb* with a bucket of
  `BURST_NS`. A packet then arrives when its *first* bit is sent, its own time on the link earlier.
- `tbf` and `htb` are those of the kernel with the burst that the user names, and `cake` brings its own shaper.
- A duplicating netem may stand with no other netem in a tree (the kernel refuses it), so it gets a shaper, too.
- A delivery trace is enforced by `fq`, which keeps each packet until the departure time that a BPF program has written
  into it (`crates/agent/src/network/trace.rs`); that program also decides which packets find the queue full.

**What TCP sees** of it must be what it would see of a bottleneck somewhere on its path: nothing but delay, loss and
marks. Its small queues (TSQ) hold back a sender whose packets wait in its own machine. netem takes the packets out of
the sender's account when it delays them or has a rate, and it hides from the sender what the disciplines inside it
drop; so there always is one in front of a queue, with a rate that delays nothing (`ORPHANING_RATE_BIT_PER_S`) when
there is nothing else to do. A queue of a link thus fills, and drops, in the same way whether the sender is the node or
a machine behind it.

A direction that changes in the course of the run has one shape for all of its states, so that each change is a change
of parameters and no packet on the wire or in the queue is lost by it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from dilaton.lab.parts.impairments import BdpLimit, ByteLimit, PacketLimit, TimeLimit
from dilaton.lab.parts.impairments import Loss as LabLoss
from dilaton.lab.parts.links import Direction
from dilaton.lab.text import units
from dilaton.plan.links import queues
from dilaton.plan.links.queues import (
    ORPHANING_RATE_BIT_PER_S,
    Delivery,
    DropEvery,
    DropGilbertElliott,
    DropPackets,
    DropRandom,
    Drops,
    Egress,
    GilbertElliottLoss,
    Netem,
    NetemLoss,
    Qdisc,
    RandomLoss,
    StateLoss,
)

ETHERNET_HEADER_BYTES = 14
"""What the kernel counts of a frame besides the packet: no preamble, no check sequence, no gap."""

FRAME_BYTES_MIN = 64

QUEUE_PACKETS_DEFAULT = 1000
"""As the queue of an Ethernet interface in Linux (txqueuelen)."""

ARRIVAL_RATE_BIT_PER_S = 100 * 10**9
"""More than a node can send in frames of the smallest size: 195 million a second."""

HFSC_RATE_MAX = 10**10

BURST_NS = 20_000
"""What an htb in place of hfsc may be late without losing rate."""

LIMIT_MAX = 2**32 - 1
"""The kernel keeps limits in 32 bits."""

QueueKind = Literal["none", "netem", "shaped", "trace"]


@dataclass(frozen=True)
class Shape:
    """Which disciplines a direction has, whatever their parameters."""

    wire: bool
    queue: QueueKind
    htb: bool = False
    """Whether the shaper is htb rather than hfsc."""
    has_table: bool = False
    """Whether even a uniform distribution is given as a table, since it follows another one."""


def shape(states: Sequence[Direction], used: Shape | None = None) -> Shape:
    """The shape that serves all states of a direction.

    Args:
        states: All that are to come.
        used: The shape that it has already, of which all is kept that serves, so that little is made anew and little
            that waits is lost.
    """
    rates = {state.rate_bit_per_s for state in states}
    fits_netem = all(_fits_netem(state) for state in states)
    kept = used.queue if used else "none"
    if any(state.trace is not None for state in states):
        queue: QueueKind = "trace"
    elif rates == {None} and kept != "shaped":
        queue = "none"
    elif fits_netem and (kept == "netem" or (len(rates) == 1 and kept != "shaped")):
        queue = "netem"
    else:
        queue = "shaped"
    htb = any((rate or units.RATE_MAX) > HFSC_RATE_MAX for rate in rates)
    return Shape(
        wire=queue != "none" or any(_has_wire(state) for state in states) or bool(used and used.wire),
        queue=queue,
        htb=htb or bool(used and used.htb),
        has_table=any(state.delay.distribution.name != "uniform" for state in states) or bool(used and used.has_table),
    )


def _fits_netem(state: Direction) -> bool:
    in_packets = not isinstance(state.queue.limit, ByteLimit)
    return state.queue.discipline == "fifo" and in_packets and not state.duplicate.probability


def _has_wire(state: Direction) -> bool:
    chances = (state.duplicate, state.corrupt, state.reorder)
    delays = state.delay.mean_ns or state.delay.jitter_ns
    return bool(delays or _netem_loss(state.loss) or any(chance.probability for chance in chances))


def queue_packets(direction: Direction, mtu: int, round_trip_ns: int) -> int:
    """The limit of the queue in front of a direction of a link, in packets of the largest size.

    Args:
        direction: Its parameters.
        mtu: Bytes of the largest packet of the link.
        round_trip_ns: The link's delay there and back, with which a bandwidth-delay product is reckoned.
    """
    if isinstance(direction.queue.limit, PacketLimit):
        return direction.queue.limit.packets
    if direction.queue.limit is None:
        return QUEUE_PACKETS_DEFAULT
    packets = queue_bytes(direction, mtu, round_trip_ns) // (mtu + ETHERNET_HEADER_BYTES)
    return min(max(packets, 1), LIMIT_MAX - 1)


def queue_bytes(direction: Direction, mtu: int, round_trip_ns: int) -> int:
    """The limit of the queue in bytes; args as for `queue_packets`."""
    rate = direction.rate_bit_per_s or 0
    match direction.queue.limit:
        case ByteLimit(bytes=size):
            found = size
        case BdpLimit(factor=factor):
            found = int(factor * rate * round_trip_ns / (8 * 10**9))
        case TimeLimit(ns=ns):
            found = rate * ns // (8 * 10**9)
        case _:
            found = queue_packets(direction, mtu, round_trip_ns) * (mtu + ETHERNET_HEADER_BYTES)
    return min(max(found, 1), LIMIT_MAX)


def egress(direction: Direction, form: Shape, mtu: int, round_trip_ns: int, name: str, seed: int) -> Egress:
    """What a direction does to packets in one of its states.

    Args:
        direction: Its parameters.
        form: The shape that it has in all its states.
        mtu: As for `queue_packets`.
        round_trip_ns: As for `queue_packets`.
        name: Of the direction, by which its random numbers differ from those of others with the same seed.
        seed: Of all that has none of its own.
    """
    chain: list[Qdisc] = []
    if form.wire:
        packets = queue_packets(direction, mtu, round_trip_ns)
        chain.append(_wire(direction, form, packets, _seed_of(f"netem {seed}", name)))
    chain += _queue(direction, form, mtu, round_trip_ns)
    delivery = None
    if direction.trace is not None and direction.trace.file is not None:
        limit = queue_packets(direction, mtu, round_trip_ns)
        delivery = Delivery(trace=direction.trace.file.name, delay_ns=direction.delay_ns, limit_packets=limit)
    return Egress(drops=_drops(direction.loss, name), delivery=delivery, qdiscs=chain)


def held_bytes(found: Egress, frame_bytes: int) -> int:
    """What a direction with a rate can hold on its wire and in its queue, all frames being of the largest size."""
    last, rate = found.qdiscs[-1] if found.qdiscs else None, found.rate_bit_per_s
    if found.delivery is not None:
        return (found.delivery.limit_packets + QUEUE_PACKETS_DEFAULT) * frame_bytes
    if not rate:
        return 0
    packets = getattr(last, "limit_packets", 0) * frame_bytes
    return rate * found.delay_ns // (8 * 10**9) + int(getattr(last, "limit_bytes", packets))


def _wire(direction: Direction, form: Shape, queue: int, seed: int) -> Netem:
    delay, reorder, loss = direction.delay, direction.reorder, _netem_loss(direction.loss)
    probabilities = (direction.duplicate.probability, direction.corrupt.probability, reorder.probability)
    longest_ns = delay.mean_ns + 4 * delay.jitter_ns
    arriving = max(direction.rate_bit_per_s or 0, ARRIVAL_RATE_BIT_PER_S)
    on_wire = arriving * longest_ns // (8 * FRAME_BYTES_MIN * 10**9)
    orphans = form.queue != "none" and not longest_ns
    return Netem(
        delay_ns=delay.mean_ns,
        jitter_ns=delay.jitter_ns,
        delay_correlation=delay.correlation,
        table=delay.distribution.name if delay.jitter_ns and form.has_table else None,
        loss=loss,
        duplicate=direction.duplicate.probability,
        duplicate_correlation=direction.duplicate.correlation,
        corrupt=direction.corrupt.probability,
        corrupt_correlation=direction.corrupt.correlation,
        reorder=reorder.probability,
        reorder_correlation=reorder.correlation,
        gap=reorder.gap if reorder.probability else 0,
        rate_bit_per_s=ORPHANING_RATE_BIT_PER_S if orphans else None,
        limit_packets=min(max(on_wire + queue, QUEUE_PACKETS_DEFAULT), LIMIT_MAX),
        seed=seed if delay.jitter_ns or loss is not None or any(probabilities) else None,
    )


def _seed_of(seed: int | str, name: str) -> int:
    """The seed of one direction, from one that several share."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:8], "big")


def _netem_loss(loss: LabLoss) -> NetemLoss | None:
    if loss.seed is not None:
        return None
    if loss.random:
        return RandomLoss(probability=loss.random, correlation=loss.correlation)
    if loss.gemodel is not None:
        model = loss.gemodel
        r = 1 - model.p if model.r is None else model.r
        return GilbertElliottLoss(p=model.p, r=r, loss_bad=model.loss_bad, loss_good=model.loss_good)
    if loss.state is not None:
        state = loss.state
        p31 = 1 - state.p13 if state.p31 is None else state.p31
        return StateLoss(p13=state.p13, p31=p31, p32=state.p32, p23=state.p23, p14=state.p14)
    return None


def _drops(loss: LabLoss, name: str) -> Drops | None:
    if loss.every is not None:
        return DropEvery(period=loss.every)
    if loss.packets is not None:
        return DropPackets(numbers=sorted(set(loss.packets)))
    if loss.seed is None:
        return None
    seed = _seed_of(loss.seed, name)
    if loss.random:
        return DropRandom(probability=loss.random, seed=seed)
    model = loss.gemodel
    if model is None:
        return None
    r = 1 - model.p if model.r is None else model.r
    return DropGilbertElliott(p=model.p, r=r, loss_bad=model.loss_bad, loss_good=model.loss_good, seed=seed)


def _queue(direction: Direction, form: Shape, mtu: int, round_trip_ns: int) -> list[Qdisc]:
    """The disciplines behind the wire."""
    queue, rate = direction.queue, direction.rate_bit_per_s or units.RATE_MAX
    packets = queue_packets(direction, mtu, round_trip_ns)
    if form.queue == "none":
        return []
    if form.queue == "trace":
        return [queues.Fq(limit_packets=LIMIT_MAX, flow_limit_packets=LIMIT_MAX)]
    if form.queue == "netem":
        return [Netem(rate_bit_per_s=rate, limit_packets=packets + 1)]
    size = queue_bytes(direction, mtu, round_trip_ns)
    frame = mtu + ETHERNET_HEADER_BYTES
    if queue.discipline == "cake":
        return [queues.Cake(rate_bit_per_s=rate, limit_bytes=size)]
    burst = min(max(queue.burst_bytes or 0, rate * BURST_NS // (8 * 10**9), frame), LIMIT_MAX)
    shaper: Qdisc
    if queue.discipline == "tbf":
        shaper = queues.Tbf(rate_bit_per_s=rate, burst_bytes=burst)
    elif queue.discipline == "htb" or form.htb:
        shaper = queues.Htb(rate_bit_per_s=rate, burst_bytes=burst)
    else:
        shaper = queues.Hfsc(rate_bit_per_s=rate)
    return [shaper, _waiting(direction, packets, size, frame)]


def _waiting(direction: Direction, packets: int, size: int, frame: int) -> Qdisc:
    """What packets wait in below a shaper; parameters that the user leaves open have the kernel's defaults."""
    queue = direction.queue
    target_ns = queue.target_ns or (15_000_000 if queue.discipline == "pie" else 5_000_000)
    interval_ns = queue.interval_ns or 100_000_000
    match queue.discipline:
        case "codel":
            return queues.Codel(limit_packets=packets, target_ns=target_ns, interval_ns=interval_ns, ecn=queue.ecn)
        case "fq_codel":
            return queues.FqCodel(
                limit_packets=packets,
                flows=queue.flows or 1024,
                target_ns=target_ns,
                interval_ns=interval_ns,
                quantum_bytes=frame,
                ecn=queue.ecn,
            )
        case "pie":
            return queues.Pie(limit_packets=packets, target_ns=target_ns, ecn=queue.ecn)
        case "sfq":
            return queues.Sfq(limit_packets=packets, quantum_bytes=frame)
        case "fq":
            return queues.Fq(limit_packets=packets, flow_limit_packets=packets)
        case "red":
            return _red(direction, size, frame)
        case _ if isinstance(queue.limit, ByteLimit):
            return queues.Bfifo(limit_bytes=size)
        case _:
            return queues.Pfifo(limit_packets=packets)


def _red(direction: Direction, size: int, frame: int) -> queues.Red:
    """RED with the thresholds that tc-red(8) advises where none are named."""
    queue = direction.queue
    high = queue.max_bytes or max(size // 4, 3 * frame)
    low = queue.min_bytes or max(high // 3, frame)
    high = max(high, low + frame)
    return queues.Red(
        limit_bytes=max(size, high + frame),
        min_bytes=low,
        max_bytes=high,
        probability=0.02 if queue.probability is None else queue.probability,
        average_packet_bytes=min(frame, 1000),
        burst_packets=-(-(2 * low + high) // (3 * min(frame, 1000))),
        rate_bit_per_s=direction.rate_bit_per_s or units.RATE_MAX,
        ecn=queue.ecn,
    )
