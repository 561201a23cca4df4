"""Makes columns of the bytes of packets: addresses, ports, sequence numbers. Many packets at once, by numpy.

Read are Ethernet (with one VLAN tag) and bare IP, IPv4 and IPv6 without extension headers, TCP and UDP. What a packet
does not have, or what was not captured of it, is 0; `protocol` says what there is.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from dilaton.measure.packets.pcapng import Bytes, Offsets

ETHERNET, RAW_IP = 1, 101
TCP, UDP = 6, 17
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16

_IPV4, _IPV6, _VLAN = 0x0800, 0x86DD, 0x8100
_OPTION_END, _OPTION_NOTHING, _OPTION_SACK = 0, 1, 5
_TCP_OPTIONS_MAX = 40

Column = npt.NDArray[np.generic]


class Addresses:
    """Numbers addresses as they are met; `names[number]` is the text of one. Number 0 is no address."""

    def __init__(self) -> None:
        self.names = [""]
        self._numbers: dict[bytes, int] = {b"": 0}

    def number(self, octets: Bytes) -> npt.NDArray[np.int32]:
        """The numbers of addresses, given as rows of 4 or 16 bytes."""
        width = octets.shape[1]
        rows = np.ascontiguousarray(octets).view(f"V{width}").ravel() if width > 4 else _words(octets)
        unique, inverse = np.unique(rows, return_inverse=True)
        numbers = [self._number(row.tobytes() if width > 4 else int(row).to_bytes(4, "big")) for row in unique]
        return np.array(numbers, dtype=np.int32)[inverse]

    def _number(self, packed: bytes) -> int:
        number = self._numbers.get(packed)
        if number is None:
            number = self._numbers[packed] = len(self.names)
            self.names.append(str(ipaddress.ip_address(packed)))
        return number


def _words(octets: Bytes) -> npt.NDArray[np.uint32]:
    return np.ascontiguousarray(octets).view(">u4").ravel().astype(np.uint32)


@dataclass
class Headers:
    """Columns, one row a packet.

    Attributes:
        protocol: Of IP: 6 is TCP, 17 is UDP; 0: not IP, or not captured.
        source, destination: Numbers of `Addresses`.
        sequence, acknowledgement: Of TCP, as they are in the header, modulo 2^32.
        tcp_flags: FIN 1, SYN 2, RST 4, PSH 8, ACK 16.
        window: Of TCP, without its scale.
        payload: Bytes behind the headers of TCP or UDP, by the length that IP gives.
        sack: Rows of (packet, left edge, right edge): the blocks of selective acknowledgements (RFC 2018).
    """

    protocol: npt.NDArray[np.uint8]
    source: npt.NDArray[np.int32]
    destination: npt.NDArray[np.int32]
    source_port: npt.NDArray[np.uint16]
    destination_port: npt.NDArray[np.uint16]
    sequence: npt.NDArray[np.uint32]
    acknowledgement: npt.NDArray[np.uint32]
    tcp_flags: npt.NDArray[np.uint8]
    window: npt.NDArray[np.uint16]
    payload: npt.NDArray[np.int32]
    sack: npt.NDArray[np.uint32] = field(default_factory=lambda: np.empty((0, 3), dtype=np.uint32))


def read_headers(octets: Bytes, begin: Offsets, captured: Offsets, link_type: int, addresses: Addresses) -> Headers:
    """Reads the headers of packets.

    Args:
        octets: Where the packets are, with zeros behind them.
        begin, captured: Where each begins, and how much of it is there.
        link_type: 1 (Ethernet) or 101 (IP); of other links no header is read.
        addresses: Takes in the addresses that are met.
    """
    count = len(begin)
    network, ether_type = _network_layer(octets, begin, link_type)
    end = begin + captured
    result = Headers(
        protocol=np.zeros(count, np.uint8),
        source=np.zeros(count, np.int32),
        destination=np.zeros(count, np.int32),
        source_port=np.zeros(count, np.uint16),
        destination_port=np.zeros(count, np.uint16),
        sequence=np.zeros(count, np.uint32),
        acknowledgement=np.zeros(count, np.uint32),
        tcp_flags=np.zeros(count, np.uint8),
        window=np.zeros(count, np.uint16),
        payload=np.zeros(count, np.int32),
    )
    transport = np.zeros(count, np.int64)
    behind = np.zeros(count, np.int64)
    """Bytes behind the IP header."""

    four = np.flatnonzero((ether_type == _IPV4) & (network + 20 <= end))
    at = network[four]
    header = (octets[at] & 15).astype(np.int64) * 4
    result.protocol[four] = octets[at + 9]
    result.source[four] = addresses.number(octets[at[:, None] + np.arange(12, 16)]) if len(four) else 0
    result.destination[four] = addresses.number(octets[at[:, None] + np.arange(16, 20)]) if len(four) else 0
    transport[four] = at + header
    behind[four] = _u16(octets, at + 2) - header
    # Only the first fragment of a packet has the header of its transport.
    is_later_fragment = (_u16(octets, at + 6) & 0x1FFF) != 0
    behind[four[is_later_fragment]] = -1

    six = np.flatnonzero((ether_type == _IPV6) & (network + 40 <= end))
    at = network[six]
    result.protocol[six] = octets[at + 6]
    result.source[six] = addresses.number(octets[at[:, None] + np.arange(8, 24)]) if len(six) else 0
    result.destination[six] = addresses.number(octets[at[:, None] + np.arange(24, 40)]) if len(six) else 0
    transport[six] = at + 40
    behind[six] = _u16(octets, at + 4)

    has_ports = ((result.protocol == TCP) | (result.protocol == UDP)) & (behind >= 8) & (transport + 4 <= end)
    ported = np.flatnonzero(has_ports)
    at = transport[ported]
    result.source_port[ported] = _u16(octets, at)
    result.destination_port[ported] = _u16(octets, at + 2)
    is_udp = result.protocol[ported] == UDP
    result.payload[ported[is_udp]] = behind[ported[is_udp]] - 8
    _read_tcp(octets, ported[~is_udp], transport, behind, end, result)
    return result


def _read_tcp(octets: Bytes, rows: Offsets, transport: Offsets, behind: Offsets, end: Offsets, into: Headers) -> None:
    rows = rows[(transport[rows] + 20 <= end[rows]) & (behind[rows] >= 20)]
    at = transport[rows]
    header = (octets[at + 12] >> 4).astype(np.int64) * 4
    into.sequence[rows] = _u32(octets, at + 4)
    into.acknowledgement[rows] = _u32(octets, at + 8)
    into.tcp_flags[rows] = octets[at + 13]
    into.window[rows] = _u16(octets, at + 14)
    into.payload[rows] = np.maximum(behind[rows] - header, 0)
    whole = (header >= 30) & (at + header <= end[rows])
    into.sack = _read_sack(octets, rows[whole], at[whole] + 20, at[whole] + header[whole])


def _read_sack(octets: Bytes, rows: Offsets, position: Offsets, end: Offsets) -> npt.NDArray[np.uint32]:
    """Walks the options of all packets in step: as many steps as the packet with most options has."""
    found = []
    for _ in range(_TCP_OPTIONS_MAX):
        going = position < end
        rows, position, end = rows[going], position[going], end[going]
        if not len(rows):
            break
        kind, length = octets[position], octets[position + 1].astype(np.int64)
        is_sack = kind == _OPTION_SACK
        for block in range(4):
            has = is_sack & (length >= 2 + 8 * (block + 1))
            at = position[has] + 2 + 8 * block
            blocks = [rows[has], _u32(octets, at), _u32(octets, at + 4)]
            found.append(np.column_stack(blocks).astype(np.uint32))
        step = np.where(kind == _OPTION_NOTHING, 1, np.maximum(length, 2))
        position = np.where(kind == _OPTION_END, end, position + step)
    if not found:
        return np.empty((0, 3), dtype=np.uint32)
    whole = np.concatenate(found)
    return whole[np.argsort(whole[:, 0], kind="stable")]


def _network_layer(octets: Bytes, begin: Offsets, link_type: int) -> tuple[Offsets, Offsets]:
    """Where the packet of the network begins in each frame, and its EtherType; 0 when it is not known."""
    if link_type == ETHERNET:
        ether_type, header = _u16(octets, begin + 12), 14
        tagged = ether_type == _VLAN
        ether_type = np.where(tagged, _u16(octets, begin + 16), ether_type)
        return begin + header + 4 * tagged, ether_type
    if link_type == RAW_IP:
        version = octets[begin] >> 4
        return begin, np.where(version == 4, _IPV4, np.where(version == 6, _IPV6, 0)).astype(np.int64)
    return begin, np.zeros(len(begin), np.int64)


def _u16(octets: Bytes, at: Offsets) -> Offsets:
    return (octets[at].astype(np.int64) << 8) | octets[at + 1]


def _u32(octets: Bytes, at: Offsets) -> Offsets:
    return (_u16(octets, at) << 16) | _u16(octets, at + 2)
