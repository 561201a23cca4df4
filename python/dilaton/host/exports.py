"""What a kernel exports to its modules, read from its file: of all its functions, those meant for code outside it.

A guest's clock calls one of them (`crates/clock/src/shares.rs`), as a module would. A User-Mode Linux kernel is linked
to fixed addresses, so those in the file are those in the guest. ELF: System V ABI, chapter 4; the tables of exports:
include/linux/export.h of the kernel, in its form with whole addresses.
"""

from __future__ import annotations

import mmap
import struct
from functools import cache
from pathlib import Path

from dilaton.host.errors import HostLacksError

SLEEP = "usleep_range_state"
"""Since Linux 5.17."""

TABLES = ("__ksymtab", "__ksymtab_gpl")
ELF_HEADER = struct.Struct("<16sHHIQQQIHHHHHH")
SECTION = struct.Struct("<IIQQQQIIQQ")
EXPORT = struct.Struct("<QQQ")
"""Address of what is exported, of its name, and of its namespace's."""


@cache
def address(kernel: Path, name: str) -> int:
    """The address of an exported function.

    Args:
        kernel: A `linux.uml`.
        name: Of the function.

    Raises:
        HostLacksError: The kernel does not export it, or is no such kernel.
    """
    with kernel.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as image:
        try:
            found = _find(image, name.encode() + b"\0")
        except (struct.error, IndexError):
            found = None
    if found is None:
        what = f"{kernel} exports no {name}, by which nodes with a cpu share a guest"
        raise HostLacksError(what, "write guests: per-node, or use the kernel of the package user-mode-linux")
    return found


def _find(image: mmap.mmap, wanted: bytes) -> int | None:
    """The address of the export of that name, which ends with a zero byte."""
    header = ELF_HEADER.unpack_from(image)
    begin, size, count, names = header[6], header[11], header[12], header[13]
    sections = [SECTION.unpack_from(image, begin + number * size) for number in range(count)]
    names_at = sections[names][4]

    def place_of(address: int) -> int | None:
        """Where in the file what is at `address` in memory is."""
        within = (at + address - low for _, _, _, low, at, long, *_ in sections if 0 < low <= address < low + long)
        return next(within, None)

    for label, _, _, _, offset, length, *_ in sections:
        start = names_at + label
        if image[start : image.find(b"\0", start)].decode("latin-1") not in TABLES:
            continue
        for value, name, _ in EXPORT.iter_unpack(image[offset : offset + length]):
            place = place_of(name)
            if place is not None and image[place : place + len(wanted)] == wanted:
                return int(value)
    return None
