"""Numbers as people read them."""

from __future__ import annotations

import pytest

from dilaton.measure import numbers


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (9.4123456, "9.412"),
        (1000, "1000"),
        (123456, "123456"),
        (0.0125, "0.013"),
        (0.1, "0.1"),
        (-0.5, "-0.5"),
    ],
)
def test_a_number_has_four_digits_and_no_zeros_at_its_end(value: float, text: str) -> None:
    assert numbers.significant(value) == text


def test_what_is_small_is_not_nothing() -> None:
    assert numbers.ratio(1e-6) == "0.0001 %"
    assert numbers.ratio(3e-9) == "0.0000003 %"
    assert numbers.duration(-3e-13) == "-0.0003 ns"
