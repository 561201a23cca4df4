"""Reads captures: pcapng files of little-endian machines, with one interface or more.

**Problem.** A run may leave ten million packets. A library that makes an object of each takes minutes for them and
gigabytes. **Rule.** Only the *lengths* of blocks are walked in Python, since each says where the next one is; what is
in the blocks is gathered for a whole piece of the file at once, by numpy, from the offsets that the walk has found.
The file is read in pieces, so memory holds the table and one piece.

A capture that was cut off, as that of a killed run, ends at its last whole block.

Format: draft-ietf-opsawg-pcapng, sections 4.1 (section header), 4.2 (interface description), 4.3 (enhanced packet) and
4.6 (interface statistics).
"""

from __future__ import annotations

import struct
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import BinaryIO

import numpy as np
import numpy.typing as npt

from dilaton.measure.numbers import counted

PIECE_BYTES = 8 << 20
BEGIN_BYTES = 12
"""The first bytes of a file, by which it is known."""
BLOCK_BYTES_MAX = 16 << 20
"""A block that says it is longer is damage: no frame is."""

TICKS_MAX = 10**15
"""A second: femtoseconds, finer than any capturer's."""

PADDING_BYTES = 256
"""Zeros behind a piece, so that headers may be gathered from it without asking first whether they are whole."""

_SECTION, _INTERFACE, _STATISTICS, _PACKET = 0x0A0D0D0A, 1, 5, 6
_BYTE_ORDER = 0x1A2B3C4D
_FIXED_BYTES = {_INTERFACE: 8, _STATISTICS: 12}
"""What stands before the options of a block."""
_IF_NAME, _IF_TSRESOL = 2, 9
_ISB_IFRECV, _ISB_IFDROP, _ISB_OSDROP = 4, 5, 7

Offsets = npt.NDArray[np.int64]
Bytes = npt.NDArray[np.uint8]


class CaptureError(Exception):
    """A file is no capture that can be read; the message says what is wrong with it."""


@dataclass
class CaptureInterface:
    """An interface that packets were captured on."""

    name: str
    link_type: int
    """As pcap numbers them: 1 is Ethernet, 101 a bare IP packet."""
    ticks_per_s: int = 10**6
    received: int | None = None
    """Packets that met the filter, as the capturer counted them at its end; None when the file does not say."""
    dropped: int | None = None
    """Those among them that are not in the file."""


@dataclass
class Piece:
    """The packets of a piece of a capture.

    Attributes:
        octets: What was read, `PADDING_BYTES` zeros behind it.
        begin: Where in `octets` the captured bytes of each packet begin.
        t_ns: Virtual instants, nanoseconds.
        captured: Bytes of each packet that were kept.
        length: Bytes that each packet had.
        interface: Which of the capture's interfaces each came from.
        flags: The `epb_flags` of each, 0 without; bits 0 and 1 are 1 for a packet that came in, 2 for
            one that went out.
    """

    octets: Bytes
    begin: Offsets
    t_ns: Offsets
    captured: Offsets
    length: Offsets
    interface: Offsets
    flags: Offsets


class Capture:
    """A capture as it is read: `pieces` once, and then `interfaces` and `is_whole`."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self.interfaces: list[CaptureInterface] = []
        self.is_whole = True
        """False when the last block breaks off, as when the run was killed."""

    def pieces(self, piece_bytes: int = PIECE_BYTES) -> Iterator[Piece]:
        """The packets, in the order of the file.

        Raises:
            CaptureError: it is not pcapng, or is damaged before its end.
        """
        rest = b""
        is_first = True
        while read := self._stream.read(piece_bytes):
            data = rest + read
            if is_first and len(data) < BEGIN_BYTES:
                rest = data  # as of a pipe, which gives what there is
                continue
            if is_first:
                _check_begin(data)
                is_first = False
            packets, end = self._walk(data)
            if len(packets):
                yield self._gather(data, np.frombuffer(packets, dtype=np.int64))
            rest = data[end:]
        if is_first and rest:
            _check_begin(rest)
        self.is_whole = not rest and not is_first

    def _walk(self, data: bytes) -> tuple[array[int], int]:
        """Offsets of the packet blocks in `data`, and where the first block that is not whole begins."""
        packets = array("q")
        unpack, size = struct.Struct("<II").unpack_from, len(data)
        position = 0
        while position + 12 <= size:
            kind, length = unpack(data, position)
            if length < 12 or length % 4 or length > BLOCK_BYTES_MAX:
                behind = counted(len(packets), "packet")
                raise CaptureError(f"damaged: a block of {counted(length, 'byte')} behind {behind} of a piece")
            if position + length > size:
                break
            if kind == _PACKET:
                packets.append(position)
            else:
                self._note(kind, data[position + 8 : position + length - 4])
            position += length
        return packets, position

    def _note(self, kind: int, body: bytes) -> None:
        """Takes in a block that is no packet; kinds that are not known are skipped, as the format wants it."""
        if len(body) < _FIXED_BYTES.get(kind, 0):
            raise CaptureError(f"damaged: a block of kind {kind} has {counted(len(body), 'byte')}")
        if kind == _INTERFACE:
            options = dict(_options(body[8:]))
            resolution = (options.get(_IF_TSRESOL) or b"\x06")[0]
            ticks = 2 ** (resolution & 0x7F) if resolution & 0x80 else 10**resolution
            if ticks > TICKS_MAX:
                raise CaptureError(f"damaged: an interface with {ticks:.0e} ticks a second")
            name = options.get(_IF_NAME, b"").rstrip(b"\0").decode(errors="replace")
            self.interfaces.append(CaptureInterface(name, struct.unpack_from("<H", body)[0], ticks))
        elif kind == _STATISTICS:
            number = struct.unpack_from("<I", body)[0]
            if number < len(self.interfaces):
                self.interfaces[number].received, self.interfaces[number].dropped = _counts(body)

    def _gather(self, data: bytes, blocks: Offsets) -> Piece:
        octets = np.zeros(len(data) + PADDING_BYTES, dtype=np.uint8)
        octets[: len(data)] = np.frombuffer(data, dtype=np.uint8)
        words = octets[: len(octets) // 4 * 4].view("<u4")
        # Blocks are multiples of four bytes long, and so is every piece's rest: all offsets are whole words.
        at = blocks >> 2
        interface = words[at + 2].astype(np.int64)
        if not self.interfaces or int(interface.max()) >= len(self.interfaces):
            raise CaptureError("damaged: a packet of an interface that is not described")
        captured = words[at + 5].astype(np.int64)
        room = words[at + 1].astype(np.int64) - 32
        if (captured > room).any():
            raise CaptureError("damaged: a packet that is longer than its block")
        ticks = (words[at + 3].astype(np.int64) << 32) | words[at + 4].astype(np.int64)
        per_s = np.array([each.ticks_per_s for each in self.interfaces], dtype=np.int64)[interface]
        padded = (captured + 3) & ~3
        # epb_flags is looked for where writers put it: as the first option.
        option = (blocks + 28 + padded) >> 2
        has_flags = (room - padded >= 8) & (words[option] == (2 | 4 << 16))
        return Piece(
            octets=octets,
            begin=blocks + 28,
            t_ns=_nanoseconds(ticks, per_s),
            captured=captured,
            length=words[at + 6].astype(np.int64),
            interface=interface,
            flags=np.where(has_flags, words[option + 1], 0).astype(np.int64),
        )


def dropped_in(tail: bytes) -> int | None:
    """How many packets a capture of one interface lacks, from the end of its file; None when that does not say."""
    if len(tail) < 12:
        return None
    length = struct.unpack_from("<I", tail, len(tail) - 4)[0]
    if not 24 <= length <= len(tail) or struct.unpack_from("<II", tail, len(tail) - length) != (_STATISTICS, length):
        return None
    return _counts(tail[len(tail) - length + 8 : -4])[1]


def _counts(body: bytes) -> tuple[int | None, int | None]:
    """What an interface statistics block says was received and was dropped."""
    counts = {code: int.from_bytes(value, "little") for code, value in _options(body[12:])}
    drops = [counts[code] for code in (_ISB_IFDROP, _ISB_OSDROP) if code in counts]
    return counts.get(_ISB_IFRECV), sum(drops) if drops else None


def _nanoseconds(ticks: Offsets, per_s: Offsets) -> Offsets:
    """Exact where a tick is a whole number of nanoseconds or a power of ten smaller, and without overflow."""
    seconds, rest = ticks // per_s, ticks % per_s
    multiple = 10**9 // np.maximum(per_s, 1)
    is_whole = multiple * per_s == 10**9
    return seconds * 10**9 + np.where(is_whole, rest * multiple, (rest / per_s * 1e9).astype(np.int64))


def _check_begin(data: bytes) -> None:
    if len(data) < BEGIN_BYTES or struct.unpack_from("<I", data)[0] != _SECTION:
        raise CaptureError("not a pcapng file")
    if struct.unpack_from("<I", data, 8)[0] != _BYTE_ORDER:
        raise CaptureError("a pcapng file of a big-endian machine, which is not read here")


def _options(data: bytes) -> Iterator[tuple[int, bytes]]:
    position = 0
    while position + 4 <= len(data):
        code, length = struct.unpack_from("<HH", data, position)
        if code == 0:
            return
        yield code, data[position + 4 : position + 4 + length]
        position += 4 + (length + 3) // 4 * 4
