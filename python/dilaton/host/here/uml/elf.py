"""What a kernel's file has in it: an ELF file of 64 bits, as much as is asked of one (System V ABI, chapter 4).

A library for ELF took as long to import as a guest takes to boot, for two questions: where a section is, and what the
symbols are. So these are read here, from the file mapped into memory, of which only what is looked at is read.
`tests/unit/host/uml/test_elf.py` compares the answers with such a library's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import NamedTuple

MAGIC = b"\x7fELF\x02\x01"
"""Of 64 bits, the least significant byte first."""

SYMTAB, NOBITS, DYNSYM = 2, 8, 11
"""Kinds of sections: SHT_SYMTAB, SHT_NOBITS, SHT_DYNSYM."""

HEADER, SECTION, SYMBOL = struct.Struct("<40xQ10xHHH"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")
UNDEFINED = 0
"""The section of symbols that are elsewhere: SHN_UNDEF."""


@dataclass(frozen=True)
class Section:
    """A section of a file.

    Attributes:
        kind: one of the kinds above, or another.
        address: of its first byte in memory.
        data: in it.
        link: the number of a section that belongs to it.
    """

    kind: int
    address: int
    data: bytes
    link: int


class Symbol(NamedTuple):
    """A symbol: its name, what it stands for, and whether that is in this file."""

    name: bytes
    value: int
    is_defined: bool


def rows(form: struct.Struct, section: Section) -> Iterator[tuple[int, ...]]:
    """The rows of a section that is a table, but for what is left of a damaged one at its end."""
    return form.iter_unpack(section.data[: len(section.data) // form.size * form.size])


class Elf:
    """An ELF file; one without sections where it is none, or a damaged one."""

    def __init__(self, path: Path) -> None:
        """Opens it.

        Raises:
            OSError: it cannot be read.
        """
        self._image: mmap | bytes = b""
        self._rows: list[tuple[int, ...]] = []
        self._names = 0
        with path.open("rb") as file:
            if file.read(len(MAGIC)) == MAGIC:
                self._image = mmap(file.fileno(), 0, access=ACCESS_READ)
        if len(self._image) < HEADER.size:
            return
        at, size, count, self._names = HEADER.unpack_from(self._image)
        if size == SECTION.size and at + count * size <= len(self._image) and self._names < count:
            self._rows = [SECTION.unpack_from(self._image, at + number * size) for number in range(count)]

    def section(self, name: str) -> Section | None:
        """The section of that name; None where there is none."""
        if not self._rows:
            return None
        names, wanted = self._rows[self._names][4], name.encode() + b"\0"
        is_it = (self._image[names + row[0] : names + row[0] + len(wanted)] == wanted for row in self._rows)
        return next((self._section(row) for row, is_named in zip(self._rows, is_it, strict=True) if is_named), None)

    def symbols(self, kind: int) -> Iterator[Symbol]:
        """The symbols in the tables of that kind, `SYMTAB` or `DYNSYM`."""
        for table in map(self._section, (row for row in self._rows if row[1] == kind)):
            if table.link >= len(self._rows):
                continue
            strings = self._section(self._rows[table.link]).data
            for at, _, _, section, value, _ in rows(SYMBOL, table):
                yield Symbol(strings[at : strings.find(b"\0", at)], value, section != UNDEFINED)

    def _section(self, row: tuple[int, ...]) -> Section:
        _, kind, _, address, offset, length, link, _, _, _ = row
        return Section(kind, address, self._image[offset : offset + length] if kind != NOBITS else b"", link)
