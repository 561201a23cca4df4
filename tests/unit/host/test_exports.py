"""The function by which nodes sleep is found in the file of a kernel."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from dilaton.host import exports
from dilaton.host.errors import HostLacksError

BASE = 0x6000_0000
"""Where the made file is in memory, all of it."""

TABLE, NAMES, SECTION_NAMES, SECTIONS = 0x200, 0x300, 0x400, 0x500


def kernel(path: Path, table: str = "__ksymtab") -> Path:
    """A file with two exports, `first` at 0x1111 and `second` at 0x2222."""
    image = bytearray(0x800)
    exports.ELF_HEADER.pack_into(
        image, 0, b"\x7fELF\x02\x01\x01", 2, 62, 1, BASE, 0, SECTIONS, 0, 64, 0, 0, exports.SECTION.size, 3, 2
    )
    names = b"\0" + table.encode() + b"\0.text\0.shstrtab\0"
    image[SECTION_NAMES : SECTION_NAMES + len(names)] = names
    image[NAMES : NAMES + 13] = b"first\0second\0"
    pairs = [(0x1111, BASE + NAMES, 0), (0x2222, BASE + NAMES + 6, 0)]
    image[TABLE : TABLE + 48] = b"".join(exports.EXPORT.pack(*pair) for pair in pairs)
    rows = [
        (names.index(table.encode()), 1, 2, BASE + TABLE, TABLE, 48, 0, 0, 8, 0),
        (names.index(b".text"), 1, 2, BASE + NAMES, NAMES, 13, 0, 0, 1, 0),
        (names.index(b".shstrtab"), 3, 0, 0, SECTION_NAMES, len(names), 0, 0, 1, 0),
    ]
    image[SECTIONS : SECTIONS + 3 * exports.SECTION.size] = b"".join(exports.SECTION.pack(*row) for row in rows)
    path.write_bytes(image)
    return path


@pytest.mark.parametrize("table", exports.TABLES)
def test_an_export_is_found_by_its_name(tmp_path: Path, table: str) -> None:
    assert exports.address(kernel(tmp_path / "uml", table), "second") == 0x2222


def test_a_name_is_not_found_by_its_beginning(tmp_path: Path) -> None:
    with pytest.raises(HostLacksError, match="exports no sec, by which nodes with a cpu share a guest"):
        exports.address(kernel(tmp_path / "uml"), "sec")


def test_what_is_no_kernel_exports_nothing(tmp_path: Path) -> None:
    (tmp_path / "uml").write_bytes(struct.pack("<Q", 1) * 16)
    with pytest.raises(HostLacksError, match="exports no second"):
        exports.address(tmp_path / "uml", "second")
