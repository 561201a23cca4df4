"""What waits and jobs say about what a faster CPU would change."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dilaton.measure.waiting.busy_periods import BusyPeriods
from dilaton.measure.waiting.waits import Waits

MS = 1_000_000


def histogram(**bins: int) -> list[int]:
    """Bins by their numbers, as `b14=3`."""
    return [bins.get(f"b{number}", 0) for number in range(64)]


def stretches(count: int, length_ns: int, interrupts: int) -> BusyPeriods:
    """As many stretches of so long, with so many interrupts in all."""
    name = f"b{length_ns.bit_length()}"
    totals = (count, count * length_ns, interrupts)
    return BusyPeriods(*(histogram(**{name: total}) for total in totals), longest=length_ns)  # type: ignore[misc]


def test_the_share_that_waited_is_of_all_interrupts() -> None:
    seen = Waits(stretches(10, 4 * MS, 1004), interrupts=2004)
    assert seen.late_share(MS) == pytest.approx(750 / 2004)
    assert seen.late_share(4 * MS) == 0
    assert Waits(stretches(1, 4 * MS, 30), interrupts=40).late_share(MS) == 0, "of a few, which are of starts"
    assert Waits().late_share(1) == 0


def test_jobs_may_take_twice_what_waits_may() -> None:
    seen = Waits(jobs=histogram(b10=60, b23=40))
    assert seen.long_share(MS) == pytest.approx(0.4)
    assert seen.long_share(4 * MS) == 0
    assert Waits(jobs=histogram(b10=60, b23=20)).long_share(MS) == 0, "of a few"


def test_what_programs_do_as_they_start_may_take_long() -> None:
    seen = Waits(jobs=histogram(b10=20, b23=49), starts=2)
    assert seen.long_share(MS) == 0 and not seen.is_minded(MS), "of 49 that are late 20 are of starts"
    assert replace(seen, starts=1).long_share(MS) == pytest.approx(39 / 69)
    assert replace(seen, jobs=histogram(b10=20, b23=50)).is_minded(MS)
    assert not replace(seen, jobs=histogram(b10=1000, b23=70)).is_minded(MS), "50 of 1070, and 70 with those of starts"


@pytest.mark.parametrize(
    "seen",
    [
        Waits(stretches(10, 4 * MS, 1000), interrupts=2000),
        Waits(jobs=histogram(b10=60, b26=40)),
        Waits(stretches(10, 4 * MS, 1000), interrupts=2000, jobs=histogram(b10=60, b26=40)),
    ],
)
def test_the_factor_is_enough_and_not_much_more_than_that(seen: Waits) -> None:
    factor = seen.factor_needed(MS)
    assert seen.is_minded(MS)
    assert replace(seen, speed=factor / 1.3).is_minded(MS) and not replace(seen, speed=factor).is_minded(MS)


def test_at_twice_the_tdf_half_as_many_interrupts_come_in_stretches_of_half_the_length() -> None:
    seen = Waits(stretches(10, 4 * MS, 1004), interrupts=2000, speed=2)
    assert seen.late_share(MS) == pytest.approx(1000 / 2 * (1 - MS / (2 * MS)) / 2000)


@pytest.mark.parametrize(
    ("begin", "end", "longest"), [(0, 100, 30), (20, 100, 20), (25, 35, 10), (50, 100, 5), (50, 53, 3), (30, 70, 10)]
)
def test_between_two_instants_nobody_waited_longer_than_for_what_lies_there_or_than_the_shortest_that_is_known(
    begin: int, end: int, longest: int
) -> None:
    assert Waits(longest=[(10, 40), (80, 85)]).longest_ns(begin, end) == longest


def test_nobody_waited_where_no_stretch_is_known() -> None:
    assert Waits().longest_ns(0, 100) == 0


def test_a_program_that_talks_waited_for_as_long_as_it_did_itself() -> None:
    seen = Waits(longest=[(10, 90)], talkers=[(30, 50), (80, 85)])
    assert seen.talker_ns(0, 100) == 20
    assert seen.talker_ns(45, 100) == 5
    assert seen.longest_ns(0, 100) == 80
