"""What is read of ELF files is what a library for them reads."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import SymbolTableSection

from dilaton.host import files
from dilaton.host.here.uml import kernels
from dilaton.host.here.uml.elf import DYNSYM, SYMTAB, Elf


@pytest.mark.parametrize(
    "of", [lambda: kernels.chosen().program, lambda: files.built(files.AGENT), lambda: Path(sys.executable).resolve()]
)
def test_sections_and_symbols_are_what_a_library_finds(of: object) -> None:
    assert callable(of)
    path = of()
    ours = Elf(path)
    with path.open("rb") as file:
        theirs = ELFFile(file)
        for section in theirs.iter_sections():
            if section.name and section["sh_type"] != "SHT_NOBITS":
                found = ours.section(section.name)
                assert found is not None
                first = theirs.get_section_by_name(section.name)
                assert (found.address, found.data) == (first["sh_addr"], first.data())
        for kind, name in ((DYNSYM, ".dynsym"), (SYMTAB, ".symtab")):
            table = theirs.get_section_by_name(name)
            symbols = table.iter_symbols() if isinstance(table, SymbolTableSection) else ()
            said = [(one.name, one["st_value"], one["st_shndx"] != "SHN_UNDEF") for one in symbols]
            assert said == [(one.name.decode(), one.value, one.is_defined) for one in ours.symbols(kind)]
    assert ours.section(".no-such-section") is None


@pytest.mark.parametrize("whole", [0, 5, 63, 64, 100, 0x500, 5000])
def test_what_is_left_of_a_file_has_no_sections(tmp_path: Path, whole: int) -> None:
    (tmp_path / "file").write_bytes(kernels.chosen().program.read_bytes()[:whole])
    cut = Elf(tmp_path / "file")
    assert cut.section(".text") is None
    assert list(cut.symbols(DYNSYM)) == []
