"""Lines of outputs get the instants at which they were whole."""

from __future__ import annotations

import pytest

from dilaton.run.files.written import lines


@pytest.mark.parametrize(
    ("growth", "output", "expected"),
    [
        ([(5, 2), (7, 4)], b"a\nb\n", [(5, "a"), (7, "b")]),
        ([(5, 4)], b"a\nb\n", [(5, "a"), (5, "b")]),
        ([(5, 1), (7, 3)], b"ab\n", [(7, "ab")]),  # in two parts
        ([(5, 2)], b"a\nb", [(5, "a"), (5, "b")]),  # more than was noted
        ([(5, 4), (7, 2), (9, 6)], b"a\nb\nc\n", [(5, "a"), (5, "b"), (9, "c")]),  # cut by its program
        ([(5, 4)], b"\xff\r\n\n", [(5, "\N{REPLACEMENT CHARACTER}"), (5, "")]),
        ([], b"a\n", []),
        ([(5, 0)], b"", []),
    ],
)
def test_a_line_has_the_instant_of_its_last_byte(
    growth: list[tuple[int, int]], output: bytes, expected: list[tuple[int, str]]
) -> None:
    assert list(lines(growth, output)) == expected
