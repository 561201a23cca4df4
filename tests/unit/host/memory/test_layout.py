"""The layout of shared memory follows from its definition."""

from __future__ import annotations

from dilaton.host.here.memory.layout import Section, parse_layout


def test_a_field_lies_behind_those_before_it() -> None:
    layout = parse_layout("# words\nversion 7\nfirst\nmany[64]\n\nlast\n")
    assert layout.version == 7
    assert layout.sections == {"": Section({"first": 0, "many": 1, "last": 65}, 66)}


def test_a_section_begins_its_own_count_of_words() -> None:
    layout = parse_layout("version 3\nsection first\na\nb[4]\nc\n# words\nsection second\nd\n")
    assert layout.version == 3
    assert layout.sections["first"] == Section({"a": 0, "b": 1, "c": 5}, 6)
    assert layout.sections["second"] == Section({"d": 0}, 1)
