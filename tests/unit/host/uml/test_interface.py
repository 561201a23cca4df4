"""A kernel that works in a way which the clock does not know is refused in words, by what its file imports."""

from __future__ import annotations

import shutil
import struct
from pathlib import Path

import pytest

from dilaton.host.here.uml import interface

ALL = frozenset().union(*(duty.ways[0] for duty in interface.DUTIES))
"""What a kernel of Linux 6.1 imports."""

HEADER, SECTION, SYMBOL = struct.Struct("<6s34xQ10xHH2x"), struct.Struct("<IIQQQQIIQQ"), struct.Struct("<IBBHQQ")


def kernel(path: Path, imports: frozenset[str], exports: frozenset[str] = frozenset()) -> Path:
    """A file with a table of dynamic symbols, and no more."""
    strings, symbols = b"\0", b""
    for name, section in [(name, 0) for name in sorted(imports)] + [(name, 1) for name in sorted(exports)]:
        symbols += SYMBOL.pack(len(strings), 0, 0, section, 0, 0)
        strings += name.encode() + b"\0"
    sections_at = HEADER.size + len(strings) + len(symbols)
    header = HEADER.pack(b"\x7fELF\x02\x01", sections_at, SECTION.size, 2)
    of_strings = SECTION.pack(0, 3, 0, 0, HEADER.size, len(strings), 0, 0, 1, 0)
    of_symbols = SECTION.pack(0, interface.DYNSYM, 0, 0, HEADER.size + len(strings), len(symbols), 0, 0, 8, 24)
    path.write_bytes(header + strings + symbols + of_strings + of_symbols)
    return path


def test_a_kernel_that_imports_all_is_understood(tmp_path: Path) -> None:
    assert not interface.why_not_understood(kernel(tmp_path / "uml", ALL | {"printf"}))


@pytest.mark.parametrize("name", sorted(ALL))
def test_what_a_kernel_lacks_is_named(tmp_path: Path, name: str) -> None:
    """Also where it has a function of that name itself."""
    why = interface.why_not_understood(kernel(tmp_path / "uml", ALL - {name}, exports=frozenset({name})))
    assert f"it does not import {name}" in why


def test_a_kernel_may_sleep_on_a_descriptor_that_it_polls(tmp_path: Path) -> None:
    """As Linux 7 does. One that waits for it in another way would never have its idle time jumped over."""
    polls = ALL - {"timer_gettime"} | {"signalfd", "poll"}
    assert not interface.why_not_understood(kernel(tmp_path / "uml", polls))
    why = interface.why_not_understood(kernel(tmp_path / "waits", polls - {"poll"}))
    assert "does not sleep when it is idle as the clock knows it" in why
    assert why.endswith("it does not import timer_gettime or poll")


@pytest.mark.parametrize("name", sorted(interface.FOREIGN))
def test_a_kernel_that_could_learn_the_hosts_time_is_refused(tmp_path: Path, name: str) -> None:
    why = interface.why_not_understood(kernel(tmp_path / "uml", ALL | {name}))
    assert f"imports {name}, which would tell it the host's time" in why


@pytest.mark.parametrize("contents", [b"", b"#!/bin/sh\n", b"\x7fELF\x02\x01\x01"])
def test_what_is_no_kernel_is_not_understood(tmp_path: Path, contents: bytes) -> None:
    (tmp_path / "uml").write_bytes(contents)
    assert "does not read its clock" in interface.why_not_understood(tmp_path / "uml")


@pytest.mark.skipif(shutil.which("linux.uml") is None, reason="linux.uml is not installed")
def test_the_kernel_of_this_machine_is_understood() -> None:
    assert not interface.why_not_understood(Path(shutil.which("linux.uml") or ""))
