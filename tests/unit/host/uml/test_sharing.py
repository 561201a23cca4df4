"""What nodes with a CPU ask of a kernel is found in its file, or missed in words."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dilaton.host.errors import HostLacksError
from dilaton.host.here.uml import sharing

BASE = 0x6000_0000
"""Where the made file is in memory, all of it."""

TABLE, NAMES, SECTION_NAMES, SECTIONS = 0x200, 0x300, 0x400, 0x500

HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
SYMBOL = struct.Struct("<IBBHQQ")
"""ELF64: System V ABI, chapter 4."""

SLEEPS_AT = 0x2222


def kernel(path: Path, table: str = "__ksymtab", exported: str = sharing.SLEEP) -> Path:
    """A file with two exports: a longer name at 0x1111, and `exported` at 0x2222."""
    image = bytearray(0x800)
    ident = b"\x7fELF\x02\x01\x01"
    HEADER.pack_into(image, 0, ident, 2, 62, 1, BASE, 0, SECTIONS, 0, 64, 0, 0, SECTION.size, 4, 3)
    strings = f"x{exported}\0{exported}\0".encode()
    pairs = [(0x1111, BASE + NAMES, 0), (SLEEPS_AT, BASE + NAMES + len(exported) + 2, 0)]
    exports = b"".join(sharing.EXPORT.pack(*pair) for pair in pairs)
    names = f"\0{table}\0{sharing.NAMES}\0.shstrtab\0".encode()
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 1, 2, BASE + TABLE, TABLE, len(exports), 0, 0, 8, 0),
        (len(table) + 2, 1, 2, BASE + NAMES, NAMES, len(strings), 0, 0, 1, 0),
        (names.index(b".shstrtab"), 3, 0, 0, SECTION_NAMES, len(names), 0, 0, 1, 0),
    ]
    sections = b"".join(SECTION.pack(*row) for row in rows)
    for place, part in ((TABLE, exports), (NAMES, strings), (SECTION_NAMES, names), (SECTIONS, sections)):
        image[place : place + len(part)] = part
    path.write_bytes(image)
    return path


@pytest.mark.parametrize("table", sharing.TABLES)
def test_the_sleep_is_found_by_its_name(tmp_path: Path, table: str) -> None:
    assert sharing.address(kernel(tmp_path / "uml", table), sharing.SLEEP) == SLEEPS_AT


def without_modules(path: Path, section: int) -> Path:
    """A file with a table of symbols, of which one is the sleep, at 0x2222 in this section."""
    image = bytearray(0x800)
    HEADER.pack_into(image, 0, b"\x7fELF\x02\x01\x01", 2, 62, 1, BASE, 0, SECTIONS, 0, 64, 0, 0, SECTION.size, 4, 3)
    strings = f"\0x{sharing.SLEEP}\0{sharing.SLEEP}\0".encode()
    numbered = enumerate((0x1111, SLEEPS_AT))
    symbols = b"".join(SYMBOL.pack(1 + n * (len(sharing.SLEEP) + 2), 0x12, 0, section, at, 0) for n, at in numbered)
    names = b"\0.symtab\0.strtab\0.shstrtab\0"
    rows = [
        (0, 0, 0, 0, 0, 0, 0, 0, 0, 0),
        (1, 2, 0, 0, TABLE, len(symbols), 2, 0, 8, SYMBOL.size),
        (9, 3, 0, 0, NAMES, len(strings), 0, 0, 1, 0),
        (17, 3, 0, 0, SECTION_NAMES, len(names), 0, 0, 1, 0),
    ]
    sections = b"".join(SECTION.pack(*row) for row in rows)
    for place, part in ((TABLE, symbols), (NAMES, strings), (SECTION_NAMES, names), (SECTIONS, sections)):
        image[place : place + len(part)] = part
    path.write_bytes(image)
    return path


def test_the_sleep_of_a_kernel_without_modules_is_found_in_its_table_of_symbols(tmp_path: Path) -> None:
    made = without_modules(tmp_path / "uml", section=1)
    assert sharing.address(made, sharing.SLEEP) == SLEEPS_AT
    sharing.require_sleep(made)


def test_a_symbol_that_is_defined_elsewhere_is_no_address(tmp_path: Path) -> None:
    with pytest.raises(HostLacksError, match="does not tell where its usleep_range_state is"):
        sharing.require_sleep(without_modules(tmp_path / "uml", section=0))


def test_a_name_is_not_found_in_a_longer_one(tmp_path: Path) -> None:
    with pytest.raises(
        HostLacksError, match="does not tell where its usleep_range_state is, by which nodes with a cpu share a guest"
    ):
        sharing.require_sleep(kernel(tmp_path / "uml", exported=f"{sharing.SLEEP}_x"))


def test_who_is_alone_is_asked_where_a_kernel_tells_how_and_nowhere_else(tmp_path: Path) -> None:
    assert sharing.address(kernel(tmp_path / "uml", exported=sharing.IS_ALONE), sharing.IS_ALONE) == SLEEPS_AT
    assert sharing.address(kernel(tmp_path / "other"), sharing.IS_ALONE) is None


@pytest.mark.parametrize("contents", [b"", b"\1\0\0\0\0\0\0\0" * 16, b"\x7fELF\x02\x01\x01"])
def test_what_is_no_kernel_tells_nothing(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "uml").write_bytes(contents)
    with pytest.raises(HostLacksError, match="does not tell where its usleep_range_state is"):
        sharing.require_sleep(tmp_path / "uml")
