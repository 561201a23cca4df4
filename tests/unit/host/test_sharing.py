"""What nodes with a CPU ask of a kernel is found in its file, or missed in words."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dilaton.host import sharing
from dilaton.host.errors import HostLacksError

BASE = 0x6000_0000
"""Where the made file is in memory, all of it."""

TABLE, NAMES, SECTION_NAMES, SECTIONS = 0x200, 0x300, 0x400, 0x500

HEADER, SECTION = struct.Struct("<16sHHIQQQIHHHHHH"), struct.Struct("<IIQQQQIIQQ")
"""ELF64: System V ABI, chapter 4."""

SLEEPS_AT = 0x2222


def kernel(path: Path, table: str = "__ksymtab", exported: str = sharing.SLEEP, text: str = sharing.COPY) -> Path:
    """A file with two exports, a longer name at 0x1111 and `exported` at 0x2222, and a text."""
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
    path.write_bytes(image + text.encode())
    return path


@pytest.mark.parametrize("table", sharing.TABLES)
def test_the_sleep_is_found_by_its_name(tmp_path: Path, table: str) -> None:
    assert sharing.sleep_address(kernel(tmp_path / "uml", table)) == SLEEPS_AT


def test_a_name_is_not_found_in_a_longer_one(tmp_path: Path) -> None:
    with pytest.raises(HostLacksError, match="exports no usleep_range_state, by which nodes with a cpu share a guest"):
        sharing.sleep_address(kernel(tmp_path / "uml", exported=f"{sharing.SLEEP}_x"))


def test_a_kernel_that_makes_processes_from_nothing_is_refused(tmp_path: Path) -> None:
    """As Linux does since 6.11: nothing would be charged to any node, and all of them would be as fast as the guest."""
    with pytest.raises(HostLacksError, match=r"has no copy_context_skas0, by which programs .* up to 6\.10") as refused:
        sharing.sleep_address(kernel(tmp_path / "uml", text=""))
    assert "guests: per-node" in str(refused.value)


@pytest.mark.parametrize("contents", [b"", b"\1\0\0\0\0\0\0\0" * 16, b"\x7fELF\x02\x01\x01"])
def test_what_is_no_kernel_exports_nothing(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "uml").write_bytes(contents)
    with pytest.raises(HostLacksError, match="exports no usleep_range_state"):
        sharing.sleep_address(tmp_path / "uml")
