"""The host's side of the wire: layout, distances, and what is written for the guests."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.host.counters import Traffic, Waits, Wires
from dilaton.host.here.memory.wire import AWAY, LEFT, RING_BYTES_MIN, STOPPED, WAITING, Way, Wire, distances_ns, layout
from dilaton.host.orders import NEVER_NS


def way(sender: int, receiver: int, delay_ns: int) -> Way:
    return Way(sender, receiver, delay_ns, RING_BYTES_MIN)


@pytest.fixture
def wire() -> Iterator[Wire]:
    made = Wire(2, [way(0, 1, 5), way(1, 0, 7)], spin_ns=3)
    yield made
    made.close()


def test_what_different_guests_write_lies_in_different_cache_lines() -> None:
    sections = layout().sections
    assert sections["member"].words % 8 == 0
    assert sections["way"].words % 8 == 0
    assert [sections["way"].offsets[name] % 8 for name in ("sender", "head", "tail")] == [0, 0, 0]
    assert sections["record"].words == 2


def test_rings_begin_behind_each_other_and_end_in_the_memory(wire: Wire) -> None:
    rings = [(wire._read("way", number, "ring_offset"), wire._read("way", number, "ring_bytes")) for number in (0, 1)]
    assert rings[0][0] + rings[0][1] == rings[1][0]
    assert rings[1][0] + rings[1][1] == os.fstat(wire.fd).st_size
    assert all(offset % 64 == 0 and size >= RING_BYTES_MIN for offset, size in rings)


def test_guests_are_bound_by_each_other_once_all_know_their_virtual_zero(wire: Wire) -> None:
    assert [wire._read("member", guest, "zero_ns") for guest in (0, 1)] == [NEVER_NS, NEVER_NS]
    assert wire._read("header", 0, "begun") == 0
    wire.begin({0: 100, 1: 200})
    assert [wire._read("member", guest, "zero_ns") for guest in (0, 1)] == [100, 200]
    assert wire._read("header", 0, "begun") == 1


def test_a_kernel_that_began_in_the_middle_of_the_run_goes_on_with_a_zero_before_its_own(wire: Wire) -> None:
    wire.begin({0: 100, 1: 200})
    wire._write("member", 1, "state", AWAY)
    assert [wire.is_away(guest) for guest in (0, 1)] == [False, True]
    wire.go_on(1, -5)
    assert wire._read("member", 1, "zero_ns") == 2**64 - 5
    assert not wire.is_away(1)
    assert not wire.is_overwritten()


def test_a_new_wire_has_carried_nothing_and_no_ring_was_full(wire: Wire) -> None:
    assert wire.counted() == Wires([Traffic(0, 1), Traffic(1, 0)], [Waits(), Waits()])
    assert wire.full_way() is None
    wire._write("header", 0, "full_way", 1)
    assert wire.full_way() == 0


def test_what_was_counted_of_each_way_and_guest_is_told_by_its_name(wire: Wire) -> None:
    names = ("frames_sent", "bytes_sent", "frames_not_sent", "frames_received", "bytes_received")
    names += ("frames_not_received", "frames_late", "frames_disordered")
    for value, name in enumerate(names, 1):
        wire._write("way", 1, name, value)
    wire._write("way", 1, "head", 80)
    wire._write("way", 1, "tail", 16)
    for value, name in enumerate(("windows", "waits", "waited_host_ns", "agreements", "wakes"), 1):
        wire._write("member", 0, name, value)
    seen = wire.counted()
    assert seen.ways == [Traffic(0, 1), Traffic(1, 0, 1, 2, 3, 4, 5, 6, 7, 8, bytes_under_way=64)]
    assert seen.waits == [Waits(windows=1, waits=2, waited_host_ns=3, agreements=4, wakes=5), Waits()]


def test_the_distance_to_oneself_is_the_shortest_way_there_and_back() -> None:
    star = [way(0, 1, 10), way(1, 0, 10), way(0, 2, 3), way(2, 0, 4)]
    assert distances_ns(3, star) == [7, 10, 3, 10, 20, 13, 4, 14, 7]


def test_a_guest_that_nothing_reaches_is_never_reached() -> None:
    assert distances_ns(2, [way(0, 1, 5)]) == [NEVER_NS, 5, NEVER_NS, NEVER_NS]


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(1, 50)), max_size=20))
def test_no_detour_is_shorter_than_the_distance(drawn: list[tuple[int, int, int]]) -> None:
    ways = [way(a, b, delay) for a, b, delay in drawn if a != b]
    distances = distances_ns(5, ways)
    for one in ways:
        assert distances[5 * one.sender + one.receiver] <= one.delay_ns
    for a in range(5):
        for b in range(5):
            for c in range(5):
                assert distances[5 * a + c] <= min(NEVER_NS, distances[5 * a + b] + distances[5 * b + c])


@pytest.mark.parametrize(
    ("sender", "receiver", "delay_ns", "ring_bytes"),
    [(1, 1, 5, RING_BYTES_MIN), (0, 1, 0, RING_BYTES_MIN), (0, 1, NEVER_NS, RING_BYTES_MIN), (0, 1, 5, 1000)],
)
def test_a_way_that_cannot_be_is_refused(sender: int, receiver: int, delay_ns: int, ring_bytes: int) -> None:
    with pytest.raises(ValueError, match="wire"):
        Way(sender, receiver, delay_ns, ring_bytes)


def test_a_frame_is_lost_that_was_sent_and_is_nowhere() -> None:
    under_way = Traffic(0, 1, sent=5, received=2, not_received=1, bytes_under_way=64)
    assert (under_way.lost, replace(under_way, bytes_under_way=0).lost, replace(under_way, sent=2).lost) == (0, 2, 1)


def test_what_only_the_host_writes_is_seen_when_it_is_another(wire: Wire) -> None:
    assert not wire.is_overwritten()
    wire.begin({0: 100, 1: 200})
    # Clocks write these.
    for section, number, name in (
        ("header", 0, "lock"),
        ("member", 1, "next_ns"),
        ("way", 1, "head"),
        ("way", 0, "tail"),
    ):
        wire._write(section, number, name, 1 << 60)
    assert not wire.is_overwritten()
    for section, number, name in (
        ("header", 0, "guests"),
        ("header", 0, "begun"),
        ("member", 1, "zero_ns"),
        ("member", 0, "state"),
        ("way", 1, "ring_offset"),
    ):
        was = wire._read(section, number, name)
        wire._write(section, number, name, 1 << 60)
        assert wire.is_overwritten(), name
        wire._write(section, number, name, was)
        assert not wire.is_overwritten()
    wire._memory[wire._distances_at] ^= 1
    assert wire.is_overwritten()


def test_a_way_that_is_none_was_not_full(wire: Wire) -> None:
    wire._write("header", 0, "full_way", 3)
    assert wire.full_way() is None


def test_guests_stand_still_when_the_lock_is_held_or_all_wait_for_an_instant(wire: Wire) -> None:
    assert wire.standstill() is None
    wire._write("header", 0, "lock", 1)
    assert wire.standstill()
    wire._write("header", 0, "lock", 0)
    wire._write("member", 0, "state", WAITING)
    assert wire.standstill() is None
    wire._write("member", 1, "state", STOPPED)
    before = wire.standstill()
    assert before and before == wire.standstill()
    # It has agreed with the others meanwhile.
    wire._write("member", 1, "agreements", 1)
    assert wire.standstill() != before


def test_guests_in_which_nothing_will_happen_do_not_stand_still(wire: Wire) -> None:
    wire._write("member", 0, "state", LEFT)
    wire._write("member", 1, "state", WAITING)
    wire._write("member", 1, "next_ns", NEVER_NS)
    assert wire.standstill() is None
