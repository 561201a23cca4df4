"""What nodes with a CPU ask of a kernel that they share, as its file says; `crates/clock/src/shares.rs` has what for.

- It exports to modules the sleep that the guest's clock lets programs do. A User-Mode Linux kernel is linked to fixed
  addresses, so those in the file are those in the guest. The tables of exports: include/linux/export.h of the kernel,
  in its form with whole addresses.
- It makes the host process of a new program as a copy of the one whose program asks, by which the clock knows the node.
  Since Linux 6.11 each is made from nothing, and the work of programs would be charged to nobody.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.host.errors import HostLacksError

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile

SLEEP = "usleep_range_state"
"""Since Linux 5.17."""

COPY = "copy_context_skas0"
"""Up to Linux 6.10 (arch/um/os-Linux/skas/process.c); its messages have its name."""

TABLES = ("__ksymtab", "__ksymtab_gpl")
NAMES = "__ksymtab_strings"
EXPORT = struct.Struct("<QQQ")
"""Address of what is exported, of its name, and of its namespace's."""

FIX = "write guests: per-node, or use the kernel of the package user-mode-linux of Debian 12"


@cache
def sleep_address(kernel: Path) -> int:
    """The address of the sleep in a kernel whose CPU nodes can share.

    Args:
        kernel: A `linux.uml`.

    Raises:
        HostLacksError: Nodes cannot share its CPU, or it is no such kernel.
    """
    from elftools.common.exceptions import ELFError  # here, since most guests start without
    from elftools.elf.elffile import ELFFile

    with kernel.open("rb") as file:
        try:
            address = _exported(ELFFile(file), SLEEP)
        except ELFError:
            address = None
    if address is None:
        raise HostLacksError(f"{kernel} exports no {SLEEP}, by which nodes with a cpu share a guest", FIX)
    if COPY.encode() not in kernel.read_bytes():
        what = f"{kernel} has no {COPY}, by which programs of nodes with a cpu are known; Linux has it up to 6.10"
        raise HostLacksError(what, FIX)
    return address


def _exported(elf: ELFFile, name: str) -> int | None:
    """The address of an exported function; None where there is none of that name."""
    strings = elf.get_section_by_name(NAMES)
    if strings is None:
        return None
    names = {strings["sh_addr"] + found.start() for found in re.finditer(f"{name}\0".encode(), strings.data())}
    tables = filter(None, map(elf.get_section_by_name, TABLES))
    exports = (export for table in tables for export in EXPORT.iter_unpack(table.data()))
    return next((value for value, at, _ in exports if at in names), None)
