"""The host's side of the clock page: layout, commands, and the mapping that it shares with the clock."""

from __future__ import annotations

import os
import threading
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.host.clock_page import NEVER_NS, ClockPage, Orders, Timeline
from dilaton.host.errors import GuestError

YEAR_NS = 365 * 24 * 3600 * 10**9


def test_a_command_is_complete_when_its_sequence_is_even() -> None:
    page = ClockPage(realtime_base_ns=5)
    try:
        assert page.command(Orders(Fraction(3, 2))) == 2
        fields = ("command_running", "command_tdf_numerator", "command_tdf_denominator", "command_sequence")
        assert [page.read(field) for field in fields] == [1, 3, 2, 2]
        assert page.command(Orders(None)) == 4
        assert page.read("command_running") == 0
        assert page.read("realtime_base_ns") == 5
        assert not page.applied(4), "no clock has taken it over"
    finally:
        page.close()


def test_on_the_work_drive_the_host_knows_virtual_time_up_to_the_latest_reading() -> None:
    page = ClockPage(realtime_base_ns=0)
    try:
        page.command(Orders(Fraction(10), "work"))
        assert page.read("command_drive") == 1
        page._write("timeline_drive", 1)
        page._write("timeline_end_ns", NEVER_NS)
        page._write("timeline_running", 1)
        page._write("timeline_tdf_numerator", 10)
        page._write("timeline_tdf_denominator", 1)
        page._write("virtual_now_ns", 7)
        assert page.virtual_ns(host_ns=10**18) == 7
        page._write("timeline_virtual_ns", 9)
        assert page.virtual_ns(host_ns=10**18) == 9, "a jump counts before anybody reads the clock"
    finally:
        page.close()


def test_a_page_that_is_being_written_is_read_once_that_is_over() -> None:
    page = ClockPage(realtime_base_ns=0)
    page._write("timeline_sequence", 1)
    rest = threading.Timer(0.1, page._write, ("timeline_sequence", 2))
    try:
        rest.start()
        assert page.timeline().tdf is None
        assert page.read("timeline_sequence") == 2
        page._write("timeline_sequence", 3)
        with pytest.raises(GuestError, match="half-written"):
            page.timeline()
    finally:
        rest.join()
        page.close()


def test_many_commands_to_a_guest_that_does_not_wake_do_not_block() -> None:
    page = ClockPage(realtime_base_ns=0)
    try:
        for _ in range(5000):
            page.command(Orders(Fraction(1)))
    finally:
        page.close()


@pytest.mark.parametrize("has_read", [True, False])
def test_a_command_to_a_guest_that_is_gone_is_nobodys_trouble(has_read: bool) -> None:
    page = ClockPage(realtime_base_ns=0)
    try:
        page.command(Orders(Fraction(1)))
        if has_read:
            os.read(page.wake_fd, 1)
        page.close_guest_side()
        for _ in range(2):
            page.command(Orders(Fraction(1)))
    finally:
        page.close()


@given(
    tdf=st.fractions(min_value=Fraction(1, 10**6), max_value=10**6),
    elapsed=st.integers(min_value=0, max_value=100 * YEAR_NS),
)
def test_a_line_is_the_exact_quotient(tdf: Fraction, elapsed: int) -> None:
    line = Timeline("wall", drive_ns=7, virtual_ns=11, fraction=0, tdf=tdf)
    assert line.virtual_at(7 + elapsed) == min(NEVER_NS, 11 + elapsed * tdf.denominator // tdf.numerator)


def test_the_fraction_left_by_a_change_counts() -> None:
    half = 1 << 63
    line = Timeline("wall", drive_ns=0, virtual_ns=0, fraction=half, tdf=Fraction(2))
    assert [line.virtual_at(ns) for ns in range(4)] == [0, 1, 1, 2]


def test_a_held_line_stands_still() -> None:
    assert Timeline("wall", drive_ns=0, virtual_ns=9, fraction=0, tdf=None).virtual_at(10**18) == 9


def test_a_line_stops_at_its_end() -> None:
    line = Timeline("wall", drive_ns=0, virtual_ns=0, fraction=0, tdf=Fraction(1), end_ns=70)
    assert [line.virtual_at(ns) for ns in (69, 70, 71, 10**18)] == [69, 70, 70, 70]


def test_end_and_highest_speed_are_in_the_page_and_no_longer_when_they_are_lifted() -> None:
    page = ClockPage(realtime_base_ns=0)
    try:
        page.command(Orders(Fraction(1), "work", end_ns=123, max_speed=Fraction(5, 2)))
        fields = ("command_end_ns", "command_ceiling_numerator", "command_ceiling_denominator")
        assert [page.read(field) for field in fields] == [123, 2, 5]
        page.command(Orders(Fraction(1), "work"))
        assert [page.read(field) for field in fields] == [NEVER_NS, 0, 0]
        page.command(Orders(Fraction(1), since_host_ns=7))
        assert page.read("command_since_ns") == 7
        page.command(Orders(Fraction(1)))
        assert page.read("command_since_ns") == 0
    finally:
        page.close()


def test_a_pace_beyond_the_highest_speed_is_slowed_down_to_it() -> None:
    assert Orders(Fraction(1, 10), max_speed=Fraction(2)).pace == Fraction(1, 2)
    assert Orders(Fraction(10), max_speed=Fraction(2)).pace == 10
    assert Orders(None, max_speed=Fraction(2)).pace is None


@pytest.mark.parametrize("factor", [Fraction(0), Fraction(-1), Fraction(10**6 + 1), Fraction(1, 10**10)])
def test_absurd_factors_are_refused(factor: Fraction) -> None:
    with pytest.raises(ValueError, match="a TDF is a number from 1e-09 to 1e"):
        Orders(factor)
    with pytest.raises(ValueError, match="a highest speed is"):
        Orders(Fraction(1), max_speed=factor)


def test_an_end_before_the_start_is_refused() -> None:
    with pytest.raises(ValueError, match="not an instant"):
        Orders(Fraction(1), end_ns=-1)
