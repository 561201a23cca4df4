"""A guest that gets on is waited for, however slowly it does."""

from __future__ import annotations

from dilaton.host.patience import Patience


def test_a_guest_that_stands_still_is_given_up_after_so_many_looks_in_a_row() -> None:
    patience = Patience(3)
    assert [patience.ends(place) for place in (0, 0, 0, 5, 5, 5, 5)] == [False] * 6 + [True]


def test_patience_wears_thin_long_before_it_ends_and_not_with_a_guest_that_gets_on() -> None:
    patience = Patience(120)
    thin = []
    for place in (0, 0, 0, 0, 1):
        assert not patience.ends(place)
        thin.append(patience.wears_thin())
    assert thin == [False, False, False, True, False]


def test_a_guest_that_gets_on_is_waited_for() -> None:
    patience = Patience(2)
    assert not any(patience.ends(look // 2) for look in range(10_000))


def test_a_guest_that_goes_too_far_is_given_up() -> None:
    patience = Patience(2, farthest=7)
    assert not patience.ends(7)
    assert patience.ends(8)
