"""Which packets of a lab go on to a machine outside: answers to what that machine has begun, and nothing else.

The machine outside is mostly the one that the lab runs on. Were its address in the lab like any other, each program
in there could try every service that listens on all of this machine's addresses: a way onto the host. A filter in the
node would be in the hands of who is root there. So what leaves is looked at here, where nobody in the lab gets to.

Of IPv4 alone; what else a node sends by itself, as IPv6's announcements, is left out.
"""

from __future__ import annotations

import struct
from collections import OrderedDict
from ipaddress import IPv4Address

ICMP, TCP, UDP = 1, 6, 17
HEADER_BYTES = 20
ECHO, ECHO_REPLY = 8, 0
ERRORS = frozenset({3, 11, 12})
"""ICMP's messages that quote what they are about: unreachable, time exceeded, parameter problem (RFC 792)."""
FLOWS_MAX = 4096
"""As many are remembered, the ones that were used last."""

Flow = tuple[int, bytes, int, int]
"""A protocol, an address of the lab, and the ports outside and there; of ICMP, an echo's identifier, and 0."""


class Flows:
    """What the machine outside has begun."""

    def __init__(self, address: IPv4Address) -> None:
        """None so far.

        Args:
            address: Of the machine outside, in the lab.
        """
        self._address = address.packed
        self._begun: OrderedDict[Flow, None] = OrderedDict()

    def takes(self, packet: bytes) -> bool:
        """Whether a packet of the machine outside goes into the lab: one of its own address, and of IPv4."""
        if not _is_whole(packet) or packet[12:16] != self._address:
            return False
        if flow := _flow(packet, packet[16:20], from_outside=True):
            self._begun[flow] = None
            self._begun.move_to_end(flow)
            if len(self._begun) > FLOWS_MAX:
                self._begun.popitem(last=False)
        return True

    def answers(self, packet: bytes) -> bool:
        """Whether a packet of the lab is for the machine outside, and answers what it has begun."""
        if not _is_whole(packet) or packet[16:20] != self._address:
            return False
        start = _start(packet)
        if struct.unpack_from(">H", packet, 6)[0] & 0x1FFF:
            # Of a packet in pieces the first one has the ports, and without it the others are never put together.
            return any(flow[:2] == (packet[9], packet[12:16]) for flow in self._begun)
        if packet[9] == ICMP and packet[start : start + 1] and packet[start] in ERRORS:
            quoted = packet[start + 8 :]
            return (
                len(quoted) >= HEADER_BYTES
                and quoted[12:16] == self._address
                and _flow(quoted, quoted[16:20], from_outside=True) in self._begun
            )
        return _flow(packet, packet[12:16], from_outside=False) in self._begun


def _is_whole(packet: bytes) -> bool:
    """Whether it is a packet of IPv4, as long as it says."""
    return (
        len(packet) >= HEADER_BYTES
        and packet[0] >> 4 == 4
        and _start(packet) >= HEADER_BYTES
        and struct.unpack_from(">H", packet, 2)[0] == len(packet)
    )


def _start(packet: bytes) -> int:
    """Where what the packet carries begins."""
    return (packet[0] & 15) * 4


def _flow(packet: bytes, there: bytes, *, from_outside: bool) -> Flow | None:
    """The flow of a packet to or from an address of the lab; None: it belongs to none."""
    start = _start(packet)
    if len(packet) < start + 8 or (from_outside and struct.unpack_from(">H", packet, 6)[0] & 0x1FFF):
        return None
    if packet[9] in (TCP, UDP):
        source, target = struct.unpack_from(">HH", packet, start)
        return (packet[9], there, source, target) if from_outside else (packet[9], there, target, source)
    if packet[9] == ICMP and packet[start] == (ECHO if from_outside else ECHO_REPLY):
        return ICMP, there, struct.unpack_from(">H", packet, start + 4)[0], 0
    return None
