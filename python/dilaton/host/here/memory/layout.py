"""Memory that the host and guests share: words of 64 bits, laid out by a definition of which Rust makes its structures.

`crates/clock/clock-page.def` and `crates/wire/wire.def` are such definitions: a version, and names of fields in their
order, `name[n]` for n words, perhaps in sections.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

WORD = struct.Struct("=Q")

MAGIC = int.from_bytes(b"DILATON\0", "little")
"""What the first word of whatever is shared holds."""


@dataclass
class Section:
    """Offsets of the fields of one section, in words, and how many words it has."""

    offsets: dict[str, int] = field(default_factory=dict)
    words: int = 0


@dataclass(frozen=True)
class Layout:
    """The sections of a definition, by name; what stands before the first, or has none, is in the section ""."""

    version: int
    sections: dict[str, Section]


def parse_layout(definition: str) -> Layout:
    """Reads the text of a definition."""
    version, section = 0, Section()
    sections = {"": section}
    for line in map(str.strip, definition.splitlines()):
        if not line or line.startswith("#"):
            continue
        if line.startswith("version "):
            version = int(line.removeprefix("version "))
        elif line.startswith("section "):
            section = sections[line.removeprefix("section ")] = Section()
        else:
            name, _, count = line.removesuffix("]").partition("[")
            section.offsets[name] = section.words
            section.words += int(count) if count else 1
    return Layout(version, sections)
