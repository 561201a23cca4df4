"""What a direction of a link does to packets, as queue disciplines of the interface that sends.

A link is a queue, a sender that empties it at the link's rate, and a wire with a delay on which packets may be lost.
One netem could do all of it, but with one limit for the packets that queue and those on the wire together: with a
limit of ten packets, a wire longer than ten packets could never be filled. So the two are separated, a netem with the
delay outside and one with the rate and the queue inside:

    packets ──► netem: loss, delay ──► netem: rate, limit = the queue's ──► wire of the veth, at once

The delay comes *before* the queue, since the kernel hands packets from the outer discipline to the inner one. That
changes nothing that can be observed at the ends: the delay is the same for every packet, so everything that happens at
the queue happens just as it would have, a delay later; the same packets meet a full queue, and a packet leaves the
link when it would have, since delay + waiting = waiting + delay. The inner limit then counts packets in the queue (the
one being sent is one of them), and nothing else.

The outer limit must never be what drops a packet. Packets arrive as fast as the sending node can make them, whatever
the link's rate, so the limit is what would be on the wire at `ARRIVAL_RATE` in the smallest frames, more than any
guest can send. It reserves no memory.

What this does not give:

- Limits in bytes: netem counts packets, so bytes and bandwidth-delay products become full frames. A queue of small
  packets holds fewer bytes than were asked for. With `offload`, a packet may be 64 KB and counts as one.
- Loss behind the queue: a packet is lost before it takes space in the queue and time of the link. With a loss of p,
  the rate that can be reached is the link's, not (1 - p) of it.
- A shared limit, or other ways to queue than first in, first out.
"""

from __future__ import annotations

from dilaton.lab.model import BdpLimit, ByteLimit, Direction, PacketLimit
from dilaton.plan.model import Netem

ETHERNET_HEADER_BYTES = 14
"""What netem counts of a frame besides the packet: no preamble, no check sequence, no gap."""

FRAME_BYTES_MIN = 64

QUEUE_PACKETS_DEFAULT = 1000
"""As the queue of an Ethernet interface in Linux (txqueuelen)."""

ARRIVAL_RATE_BIT_PER_S = 100 * 10**9
"""More than a node can send in frames of the smallest size: 195 million a second."""

LIMIT_MAX = 2**32 - 1
"""netem keeps its limit in 32 bits."""


def queue_packets(direction: Direction, mtu: int, round_trip_ns: int) -> int:
    """The limit of the queue in front of a direction of a link, in packets.

    Args:
        direction: Its effective parameters.
        mtu: Bytes of the largest packet of the link.
        round_trip_ns: The link's delay there and back, with which a bandwidth-delay product is reckoned.
    """
    frame_bytes = mtu + ETHERNET_HEADER_BYTES
    match direction.queue.limit:
        case None:
            packets = QUEUE_PACKETS_DEFAULT
        case PacketLimit(packets=packets):
            pass
        case ByteLimit(bytes=size):
            packets = size // frame_bytes
        case BdpLimit(factor=factor):
            bdp_bits = factor * (direction.rate_bit_per_s or 0) * round_trip_ns / 10**9
            packets = int(bdp_bits / 8 / frame_bytes)
    return min(max(packets, 1), LIMIT_MAX)


def qdiscs(direction: Direction, mtu: int, round_trip_ns: int) -> list[Netem]:
    """The queue disciplines of a direction, outermost first; none where a direction does nothing to packets.

    Args and units as for `queue_packets`.
    """
    rate = direction.rate_bit_per_s
    queue = queue_packets(direction, mtu, round_trip_ns)
    chain = []
    if direction.delay_ns or direction.loss:
        arriving = max(rate or 0, ARRIVAL_RATE_BIT_PER_S)
        on_wire = arriving * direction.delay_ns // (8 * FRAME_BYTES_MIN * 10**9)
        limit = min(on_wire + queue, LIMIT_MAX)
        chain.append(Netem(delay_ns=direction.delay_ns, loss=direction.loss, limit_packets=limit))
    if rate is not None:
        chain.append(Netem(rate_bit_per_s=rate, limit_packets=queue))
    return chain
