"""Packets as lines of text, for those who watch a capture while it is made."""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from dilaton.measure.numbers import counted
from dilaton.measure.packets.headers import ACK, FIN, PSH, RST, SYN, TCP, UDP, Addresses, Headers, read_headers
from dilaton.measure.packets.pcapng import Capture
from dilaton.measure.packets.table import PROTOCOLS

PIECE_BYTES = 1 << 20

FLAGS = {SYN: "SYN", FIN: "FIN", RST: "RST", PSH: "PSH", ACK: "ACK"}
ARROWS = ("", "in ", "out")
ETHER_TYPES = {0x0806: "ARP", 0x86DD: "IPv6", 0x0800: "IPv4", 0x88CC: "LLDP"}


def lines(stream: BinaryIO) -> Iterator[str]:
    """A line for each packet of a capture, as soon as `read` of `stream` returns it.

    Raises:
        CaptureError: it is not pcapng, or is damaged before its end.
    """
    capture, addresses = Capture(stream), Addresses()
    for piece in capture.pieces(PIECE_BYTES):
        link_type = capture.interfaces[int(piece.interface[0])].link_type
        headers = read_headers(piece.octets, piece.begin, piece.captured, link_type, addresses)
        for number in range(len(piece.begin)):
            begin = int(piece.begin[number])
            kind = int.from_bytes(piece.octets[begin + 12 : begin + 14].tobytes(), "big")
            direction = ARROWS[min(int(piece.flags[number]) & 3, 2)]
            said = _said(headers, number, addresses.names) or ETHER_TYPES.get(kind, f"EtherType {kind:#06x}")
            size = counted(int(piece.length[number]), "byte")
            yield f"{int(piece.t_ns[number]) / 1e9:14.6f} s  {direction}  {said}, {size}"


def _said(headers: Headers, number: int, names: list[str]) -> str:
    """Addresses and protocol of a packet; empty for one that is not IP."""
    source, destination = names[headers.source[number]], names[headers.destination[number]]
    protocol = int(headers.protocol[number])
    if not source:
        return ""
    if protocol not in (TCP, UDP):
        return f"{source} > {destination}  {PROTOCOLS.get(protocol) or f'protocol {protocol}'}"
    ends = [
        f"[{address}]:{port}" if ":" in address else f"{address}:{port}"
        for address, port in (
            (source, int(headers.source_port[number])),
            (destination, int(headers.destination_port[number])),
        )
    ]
    said = f"{ends[0]} > {ends[1]}  {PROTOCOLS[protocol]} {int(headers.payload[number])}"
    flags = [name for bit, name in FLAGS.items() if headers.tcp_flags[number] & bit]
    if protocol == UDP or not flags:
        return said
    seq, ack = int(headers.sequence[number]), int(headers.acknowledgement[number])
    return f"{said} [{' '.join(flags)}] seq {seq}" + (f" ack {ack}" if "ACK" in flags else "")
