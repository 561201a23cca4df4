"""The table of a capture: a row for each packet."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, BinaryIO

import numpy as np
import pandas as pd

from dilaton.measure.packets.headers import Addresses, Headers, read_headers
from dilaton.measure.packets.pcapng import PIECE_BYTES, Capture, CaptureInterface, Piece

DIRECTIONS = ["", "in", "out"]
PROTOCOLS = {0: "", 1: "icmp", 6: "tcp", 17: "udp", 58: "icmp6", 89: "ospf"}


@dataclass(frozen=True)
class Packets:
    """A capture, read.

    Attributes:
        table: The packets; `docs/python.md` has its columns.
        sack: The blocks of selective acknowledgements: `packet` (row of `table`), `left`, `right` (sequence numbers).
        interfaces: What was captured on, with what the capturer counted.
        is_whole: False when the capture breaks off.
    """

    table: pd.DataFrame
    sack: pd.DataFrame
    interfaces: list[CaptureInterface]
    is_whole: bool


def read_packets(stream: BinaryIO, zero_ns: int = 0, piece_bytes: int = PIECE_BYTES) -> Packets:
    """Reads a capture.

    Args:
        stream: A pcapng file.
        zero_ns: The run's virtual 0 on the capture's clock.
        piece_bytes: How much is read at once.

    Raises:
        CaptureError: it is not pcapng, or is damaged before its end.
    """
    capture, addresses = Capture(stream), Addresses()
    columns, sack = Growing(), Growing()
    for piece in capture.pieces(piece_bytes):
        link_type = capture.interfaces[int(piece.interface[0])].link_type
        headers = read_headers(piece.octets, piece.begin, piece.captured, link_type, addresses)
        sack.extend(_sack_columns(headers, columns.rows))
        columns.extend(_columns(piece, headers, zero_ns))
    if not columns.rows:
        empty = np.empty(0, np.int64)
        nothing = Piece(np.zeros(0, np.uint8), empty, empty, empty, empty, empty, empty)
        headers = read_headers(np.zeros(256, np.uint8), empty, empty, 0, addresses)
        columns.extend(_columns(nothing, headers, zero_ns))
        sack.extend(_sack_columns(headers, 0))
    whole = columns.arrays()
    for name in ("source", "destination"):
        whole[name] = pd.Categorical.from_codes(whole[name], categories=addresses.names)
    whole["direction"] = pd.Categorical.from_codes(whole["direction"], categories=DIRECTIONS)
    whole["protocol"] = _protocol(whole["protocol"])
    blocks = pd.DataFrame(sack.arrays(), copy=False)
    return Packets(pd.DataFrame(whole, copy=False), blocks, capture.interfaces, capture.is_whole)


class Growing:
    """Columns that grow piece by piece, with never more than one of them twice in memory.

    Lists of pieces that are joined at the end would be there twice: their memory is in too many parts to be given back.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._columns: dict[str, Any] = {}

    def extend(self, piece: Mapping[str, Any]) -> None:
        """Adds rows."""
        count = len(next(iter(piece.values())))
        for name, values in piece.items():
            column = self._columns.setdefault(name, np.empty(0, values.dtype))
            if self.rows + count > len(column):
                grown = np.empty(max(self.rows + count, 2 * len(column)), column.dtype)
                grown[: self.rows] = column[: self.rows]
                column = self._columns[name] = grown
            column[self.rows : self.rows + count] = values
        self.rows += count

    def arrays(self) -> dict[str, Any]:
        """The columns, without the room in which they would have grown."""
        return {name: column[: self.rows] for name, column in self._columns.items()}


def _sack_columns(headers: Headers, rows_before: int) -> dict[str, Any]:
    packet, left, right = headers.sack.T
    return {"packet": packet + np.uint32(rows_before), "left": left, "right": right}


def _columns(piece: Piece, headers: Headers, zero_ns: int) -> dict[str, Any]:
    t_ns = piece.t_ns - zero_ns
    return {
        "t_ns": t_ns,
        "t_s": t_ns / 1e9,
        "length_bytes": piece.length.astype(np.int32),
        "direction": (piece.flags & 3).clip(0, 2).astype(np.int8),
        "protocol": headers.protocol,
        "source": headers.source,
        "source_port": headers.source_port,
        "destination": headers.destination,
        "destination_port": headers.destination_port,
        "sequence": headers.sequence,
        "acknowledgement": headers.acknowledgement,
        "tcp_flags": headers.tcp_flags,
        "window": headers.window,
        "payload_bytes": headers.payload,
    }


def _protocol(numbers: Any) -> Any:
    """Protocols by name; a number that has no name here is its own."""
    known = sorted(set(PROTOCOLS) | set(np.unique(numbers).tolist()))
    code = np.zeros(256, np.int16)
    code[known] = np.arange(len(known))
    return pd.Categorical.from_codes(code[numbers], categories=[PROTOCOLS.get(each, str(each)) for each in known])
