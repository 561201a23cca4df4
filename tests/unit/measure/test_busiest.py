"""The busiest second of a run is found from looks at its clock, however they fall."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from dilaton.measure.busiest import STRETCH_NS, BusiestSecond

LOOK_NS = STRETCH_NS // 10


def followed(busy: list[float], begin_ns: int = 0) -> float | None:
    """A guest that was so busy from look to look."""
    now_ns, idle_ns = begin_ns, 0
    second = BusiestSecond(now_ns, idle_ns)
    for share in busy:
        now_ns += LOOK_NS
        idle_ns += round((1 - share) * LOOK_NS)
        second.look(now_ns, idle_ns)
    return second.busy


def test_a_run_of_less_than_a_second_has_none() -> None:
    assert followed([1.0] * 9) is None


@given(before=st.integers(0, 40), after=st.integers(0, 40))
def test_a_saturation_of_two_seconds_is_seen_wherever_it_begins(before: int, after: int) -> None:
    assert followed([0.1] * before + [1.0] * 20 + [0.1] * after) == 1.0


@given(st.lists(st.floats(0, 1), min_size=10, max_size=50))
def test_it_is_no_busier_than_the_busiest_look(busy: list[float]) -> None:
    found = followed(busy)
    assert found is not None and 0 <= found <= max(busy) + 1e-6


def test_a_jump_over_an_hour_is_one_long_second() -> None:
    second = BusiestSecond(0, 0)
    second.look(3600 * STRETCH_NS, 3599 * STRETCH_NS)
    assert second.busy is not None and second.busy < 0.001
