"""Which packets of a lab go on to a machine outside: answers to what that machine has begun, and nothing else.

The machine outside is mostly the one that the lab runs on. Were its address in the lab like any other, each program
in there could try every service that listens on all of this machine's addresses: a way onto the host. A filter in the
node would be in the hands of who is root there. So what leaves is looked at here, where nobody in the lab gets to.

Of IPv6 a packet is read up to a fragment header; one with other extension headers before what it carries begins nothing
and answers nothing (RFC 8200, section 4.1: nodes send them only where somebody asks for them).
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv6Address

ICMP, TCP, UDP, FRAGMENT, ICMPV6 = 1, 6, 17, 44, 58
IPV4_BYTES, IPV6_BYTES, FRAGMENT_BYTES = 20, 40, 8
"""Of headers, at least."""
ECHOES = {ICMP: (8, 0), ICMPV6: (128, 129)}
"""Types of an echo and of its reply (RFC 792, RFC 4443)."""
ERRORS = {ICMP: frozenset({3, 11, 12}), ICMPV6: frozenset({1, 2, 3, 4})}
"""Messages that quote what they are about: unreachable, too big, time exceeded, parameter problem."""
QUOTED_FROM = 8
"""Where what is quoted begins in such a message."""
FLOWS_MAX = 4096
"""As many are remembered, the ones that were used last."""

Flow = tuple[int, bytes, int, int]
"""A protocol, an address of the lab, and the ports outside and there; of ICMP, an echo's identifier, and 0."""


@dataclass(frozen=True)
class Packet:
    """What is looked at of a packet.

    Attributes:
        source, target: Its addresses.
        protocol: Of what it carries.
        carried: That, or the first of it.
        is_later: Whether that is not its beginning, as in all pieces of a packet but the first.
    """

    source: bytes
    target: bytes
    protocol: int
    carried: bytes
    is_later: bool


class Flows:
    """What the machine outside has begun."""

    def __init__(self, addresses: Iterable[IPv4Address | IPv6Address]) -> None:
        """None so far.

        Args:
            addresses: Of the machine outside, in the lab.
        """
        self._addresses = frozenset(address.packed for address in addresses)
        self._begun: OrderedDict[Flow, None] = OrderedDict()

    def takes(self, data: bytes) -> bool:
        """Whether a packet of the machine outside goes into the lab: one of its own addresses."""
        packet = _read(data)
        if packet is None or packet.source not in self._addresses:
            return False
        if flow := _flow(packet, from_outside=True):
            self._begun[flow] = None
            self._begun.move_to_end(flow)
            if len(self._begun) > FLOWS_MAX:
                self._begun.popitem(last=False)
        return True

    def answers(self, data: bytes) -> bool:
        """Whether a packet of the lab is for the machine outside, and answers what it has begun."""
        packet = _read(data)
        if packet is None or packet.target not in self._addresses:
            return False
        if packet.is_later:
            # Of a packet in pieces the first one has the ports, and without it the others are never put together.
            return any(flow[:2] == (packet.protocol, packet.source) for flow in self._begun)
        if packet.carried and packet.carried[0] in ERRORS.get(packet.protocol, ()):
            quoted = _read(packet.carried[QUOTED_FROM:], is_whole=False)
            return (
                quoted is not None
                and quoted.source in self._addresses
                and _flow(quoted, from_outside=True) in self._begun
            )
        return _flow(packet, from_outside=False) in self._begun


def _read(data: bytes, *, is_whole: bool = True) -> Packet | None:
    """A packet; None: it is none, or where all of it should be there, it is not as long as it says."""
    version = data[0] >> 4 if data else 0
    if version == 4 and len(data) >= IPV4_BYTES:
        start, length, pieces = (data[0] & 15) * 4, *struct.unpack_from(">H2xH", data, 2)
        if start < IPV4_BYTES or (is_whole and length != len(data)):
            return None
        return Packet(data[12:16], data[16:20], data[9], data[start:], bool(pieces & 0x1FFF))
    if version == 6 and len(data) >= IPV6_BYTES:
        (length,) = struct.unpack_from(">H", data, 4)
        if is_whole and length != len(data) - IPV6_BYTES:
            return None
        protocol, carried, is_later = data[6], data[IPV6_BYTES:], False
        if protocol == FRAGMENT and len(carried) >= FRAGMENT_BYTES:
            protocol, is_later = carried[0], bool(struct.unpack_from(">H", carried, 2)[0] & 0xFFF8)
            carried = carried[FRAGMENT_BYTES:]
        return Packet(data[8:24], data[24:40], protocol, carried, is_later)
    return None


def _flow(packet: Packet, *, from_outside: bool) -> Flow | None:
    """The flow of a packet to or from an address of the lab; None: it belongs to none."""
    there = packet.target if from_outside else packet.source
    if packet.is_later or len(packet.carried) < QUOTED_FROM:
        return None
    first, second = struct.unpack_from(">HH", packet.carried)
    if packet.protocol in (TCP, UDP):
        return (packet.protocol, there, *((first, second) if from_outside else (second, first)))
    if packet.protocol in ECHOES and packet.carried[0] == ECHOES[packet.protocol][not from_outside]:
        return packet.protocol, there, struct.unpack_from(">H", packet.carried, 4)[0], 0
    return None
