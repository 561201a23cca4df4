"""The busy periods of a part of a run, from what a guest had counted at its two ends."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.host.counters import BINS, Begin, Busy, Contention, Counters, Lack, Late, Shares, Stretch

Bins = dict[int, tuple[int, int, int]]


def busy(bins: Bins, present: tuple[int, int] = (0, 0)) -> Busy:
    """Those of each bin: how many, how long together, and their interrupts."""
    columns = ([bins.get(number, (0, 0, 0))[column] for number in range(BINS)] for column in range(3))
    counts, totals_ns, interrupts = columns
    return Busy(counts, totals_ns, interrupts, present_ns=present[0], present_interrupts=present[1])


def bins_of(seen: Busy) -> Bins:
    bins = zip(seen.counts, seen.totals_ns, seen.interrupts, strict=True)
    return {number: bin_ for number, bin_ in enumerate(bins) if any(bin_)}


def test_a_period_that_goes_on_counts_as_if_it_ended_now() -> None:
    seen = busy({5: (2, 40, 3), 7: (1, 90, 1)}, present=(100, 4))
    assert bins_of(seen.since()) == {5: (2, 40, 3), 7: (2, 190, 5)}


def test_a_period_that_went_on_at_the_begin_has_its_whole_length() -> None:
    before = busy({5: (2, 40, 3)}, present=(100, 4))
    assert bins_of(busy({5: (3, 60, 4), 8: (1, 200, 9)}).since(before)) == {5: (1, 20, 1), 8: (1, 200, 9)}
    # It ended in the bin in which it was seen.
    assert bins_of(busy({5: (2, 40, 3), 7: (1, 120, 5)}).since(before)) == {7: (1, 120, 5)}


def test_a_period_that_was_being_counted_at_the_begin_is_one() -> None:
    before = busy({5: (3, 40, 3)})
    assert bins_of(busy({5: (3, 60, 4)}).since(before)) == {5: (1, 20, 1)}


@given(st.lists(st.tuples(st.integers(1, 2**40), st.integers(0, 9)), max_size=30), st.data())
def test_whenever_a_guest_is_read_no_period_is_longer_than_its_bin_says(
    periods: list[tuple[int, int]], data: st.DataObject
) -> None:
    """The guest adds to one sequence after the other: what is read first may lack the latest period."""

    def read(ended: int, lacking: int) -> Busy:
        bins: Bins = {}
        for number, (length_ns, interrupts) in enumerate(periods[:ended], 1):
            count, total_ns, asked = bins.get(length_ns.bit_length(), (0, 0, 0))
            has = [column < 3 - lacking or number < ended for column in range(3)]
            added = (count + has[0], total_ns + has[1] * length_ns, asked + has[2] * interrupts)
            bins[length_ns.bit_length()] = added
        return busy(bins, periods[ended] if ended < len(periods) else (0, 0))

    first = data.draw(st.integers(0, len(periods)), "ended before")
    last = data.draw(st.integers(first, len(periods)), "ended now")
    lacked = data.draw(st.integers(0, 3), "sequences that had not got the last period before")
    lacks = data.draw(st.integers(0, 3 if first < last else lacked), "sequences that have not got the last period now")
    for number, (count, total_ns, interrupts) in bins_of(read(last, lacks).since(read(first, lacked))).items():
        assert count >= 0 and 0 <= total_ns <= count << number and interrupts >= 0


def test_what_kernels_of_a_guest_have_counted_one_after_the_other_is_counted_together() -> None:
    late = Late([1] * BINS, 9)
    first = Counters(virtual_ns=500, idle_ns=400, reads=70, timers=late, busy=busy({5: (2, 40, 3)}, present=(100, 4)))
    begun = Counters(virtual_ns=499, idle_ns=1000, reads=30)
    later = Counters(
        virtual_ns=900,
        idle_ns=1300,
        reads=50,
        timers=Late([2] * BINS, 5),
        busy=busy({5: (1, 20, 1)}, present=(10, 1)),
        lacks=Lack.KVM,
    )
    seen = first.and_then(later, begun)
    assert (seen.virtual_ns, seen.idle_ns, seen.reads, seen.lacks) == (900, 700, 90, Lack.KVM)
    assert seen.timers == Late([3] * BINS, 9)
    assert bins_of(seen.busy) == {5: (3, 60, 4), 7: (1, 100, 4)}
    assert (seen.busy.present_ns, seen.busy.present_interrupts) == (10, 1)
    assert first.and_then(begun, begun).virtual_ns == 500


ONES = [1] * BINS

COUNTED: dict[str, Any] = {
    "timers": Late(ONES, 9),
    "frames": Late(ONES, 9),
    "busy": Busy(ONES, ONES, ONES, ONES, 9),
    "contention": Contention(
        ONES, ONES, ONES, ONES, [Stretch(3, 9), Stretch(1, 2)], [Begin(4, 8), Begin(5, None)], [Stretch(2, 6)]
    ),
    "shares": Shares(1, 2, 3, 4),
    "lacks": Lack.KVM,
    "counter_given_up": True,
}
"""What is no number of its own."""


@pytest.mark.parametrize("name", [field.name for field in fields(Counters)])
def test_nothing_that_a_kernel_has_counted_is_forgotten_when_another_one_goes_on(name: str) -> None:
    counted = COUNTED.get(name, 7)
    seen = replace(Counters(), **{name: counted}).and_then(Counters(), Counters())
    assert getattr(seen, name) == counted
