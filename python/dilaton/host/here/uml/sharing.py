"""What a guest's clock calls in its kernel, as the kernel's file says.

Nodes with a CPU sleep by a function of the kernel that they share (`crates/clock/src/nodes/shares.rs`), and so do
programs that poll (`occasions/polling.rs`); another one tells whether a program is the only one that can run
(`occasions/contention.rs`). Where they are is
told among the kernel's exports to modules, or, as a kernel without modules exports nothing, in the file's table of
symbols. A User-Mode Linux kernel is linked to fixed addresses, so those in the file are those in the guest. The tables
of exports: include/linux/export.h of the kernel, in its form with whole addresses.
"""

from __future__ import annotations

import re
import struct
from functools import cache
from pathlib import Path

from dilaton.host.errors import HostLacksError
from dilaton.host.here.uml.elf import SYMTAB, Elf, rows

SLEEP = "usleep_range_state"
"""Since Linux 5.17."""

IS_ALONE = "single_task_running"
"""Since Linux 4.3."""

FUNCTIONS = (SLEEP, IS_ALONE)
"""Those whose symbols a kernel of our own keeps."""

TABLES = ("__ksymtab", "__ksymtab_gpl")
NAMES = "__ksymtab_strings"
EXPORT = struct.Struct("<QQQ")
"""Address of what is exported, of its name, and of its namespace's."""

FIX = "write guests: per-node, or use Debian's kernel: dilaton kernel use debian"


@cache
def address(kernel: Path, function: str) -> int | None:
    """Where a kernel has a function; None where it does not tell.

    Args:
        kernel: A `linux.uml`.
        function: One of `FUNCTIONS`.
    """
    elf = Elf(kernel)
    return _exported(elf, function) or _defined(elf, function)


def require_sleep(kernel: Path) -> None:
    """Checks that nodes can share the CPU of a kernel.

    Raises:
        HostLacksError: They cannot, or it is no kernel.
    """
    if address(kernel, SLEEP) is None:
        raise HostLacksError(
            f"{kernel} does not tell where its {SLEEP} is, by which nodes with a cpu share a guest", FIX
        )


def _exported(elf: Elf, name: str) -> int | None:
    """The address of an exported function; None where there is none of that name."""
    strings = elf.section(NAMES)
    if strings is None:
        return None
    names = {strings.address + found.start() for found in re.finditer(f"{name}\0".encode(), strings.data)}
    tables = filter(None, map(elf.section, TABLES))
    exports = (export for table in tables for export in rows(EXPORT, table))
    return next((value for value, at, _ in exports if at in names), None)


def _defined(elf: Elf, name: str) -> int | None:
    """The address of a function in the table of symbols; None where there is none, or none of that name."""
    wanted = name.encode()
    symbols = (symbol for symbol in elf.symbols(SYMTAB) if symbol.is_defined)
    return next((symbol.value for symbol in symbols if symbol.name == wanted), None)
