"""The host's side of the clock page: layout, commands, and the mapping that it shares with the clock."""

from __future__ import annotations

import os
import random
import threading
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilaton.host.counters import NOTHING, Begin, Contention, Counters, Lack, Late, Shares, Stretch
from dilaton.host.errors import GuestError
from dilaton.host.here.memory.clock_page import ClockPage, Timeline
from dilaton.host.orders import NEVER_NS, Orders

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


def test_the_present_busy_period_counts_as_if_it_ended_now() -> None:
    page = ClockPage(realtime_base_ns=0)
    try:
        page._write("virtual_now_ns", 1000)
        page.begin_histograms()
        before = page.counters(0).busy
        assert (sum(before.since().counts), before.longest_ns) == (0, 0), "what was before is over"
        for field, value in (("busy_ns_log2", 2), ("busy_total_ns_log2", 40), ("busy_interrupts_log2", 3)):
            page._write(field, value, 5)
        for field, value in (("busy_max_ns", 21), ("busy_since_ns", 1500), ("virtual_now_ns", 1600)):
            page._write(field, value)
        page._write("busy_interrupts", 4)
        page._write("idle_total_ns_log2", 460, 9)
        seen = page.counters(0).busy.since()
        bins = zip(seen.counts, seen.totals_ns, seen.interrupts, strict=True)
        assert {number: bin_ for number, bin_ in enumerate(bins) if any(bin_)} == {5: (2, 40, 3), 7: (1, 100, 4)}
        assert (seen.longest_ns, sum(seen.idle_totals_ns)) == (100, 460)
        page.begin_histograms()
        assert sum(page.counters(0).busy.since().totals_ns) == 0
    finally:
        page.close()


def test_what_a_guest_has_counted_is_a_value_that_stays_as_it_is() -> None:
    page = ClockPage(realtime_base_ns=0)
    try:
        assert page.counters(0).shares is None, "no node has a share"
        assert page.counters(0).contention is None, "the kernel does not tell"
        page.tell_functions(1, 1)
        names = ("reads", "idle_virtual_ns", "disk_requests", "disk_errors", "spinners", "address_space_lacked_bytes")
        names += ("nodes_work_ns", "other_work_ns", "nodes_busy_ns", "nodes_lost_ns", "counter_switch_ns")
        for value, name in enumerate(names, 1):
            page._write(name, value)
        page._write("virtual_now_ns", 1100)
        page._write("busy_since_ns", 1100)
        page._write("lacked", 5)
        waits_of = ("contended_ns_log2", "contended_total_ns_log2", "contended_interrupts_log2", "jobs_ns_log2")
        for number, name in enumerate(waits_of):
            page._write(name, 20 + number, 3)
        for number, (length_ns, end_ns) in enumerate([(30, 150), (20, 90)]):
            page._write("contended_longest_ns", length_ns, number)
            page._write("contended_longest_end_ns", end_ns, number)
        page._write("talkers_longest_ns", 5)
        page._write("talkers_longest_end_ns", 160)
        for place, (process, at_ns) in enumerate([(3, 170), (0, 180), (1, 0)]):
            page._write("begins_process", process, place)
            page._write("begins_ns", at_ns, place)
        page._write("counter_calls_max", 1)
        for name, value in (("lateness", 7), ("frame_lateness", 8)):
            page._write(f"{name}_ns_log2", value, 3)
            page._write(f"{name}_max_ns", 10 * value)
        seen = page.counters(zero_ns=100)
        waits = [[0, 0, 0, value, *NOTHING[4:]] for value in (20, 21, 22, 23)]
        expected = Counters(
            virtual_ns=1000,
            idle_ns=2,
            reads=1,
            timers=Late([0, 0, 0, 7, *NOTHING[4:]], 70),
            frames=Late([0, 0, 0, 8, *NOTHING[4:]], 80),
            busy=seen.busy,
            contention=Contention(
                *waits, [Stretch(20, 50), Stretch(-30, -10)], [Begin(2, 70), Begin(0, None)], [Stretch(55, 60)]
            ),
            shares=Shares(7, 8, 9, 10),
            disk_requests=3,
            disk_errors=4,
            spinning=5,
            lacks=Lack.KVM | Lack.AMX,
            address_space_lacked_bytes=6,
            counter_switch_ns=11,
            counter_given_up=True,
        )
        assert seen == expected
        page._write("lateness_ns_log2", 9, 3)
        page._write("reads", 2)
        assert seen == expected
        page.begin_histograms()
        assert page.counters(100).contention == Contention(*[[0] * 64] * 4, [], [Begin(2, 70), Begin(0, None)], [])
    finally:
        page.close()


def test_whatever_is_on_a_page_is_read_or_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dilaton.host.here.memory.clock_page.SEQUENCE_PAUSE_HOST_S", 0)
    monkeypatch.setattr("dilaton.host.here.memory.clock_page.SEQUENCE_TRIES", 2)
    chance, told = random.Random(1), 0
    page = ClockPage(realtime_base_ns=0)
    try:
        for _ in range(300):
            for word in range(len(page._words)):
                page._words[word] = chance.getrandbits(64) >> chance.choice((0, 1, 32, 60, 63))
            page.counters(7).busy.since()
            for read in (page.timeline, lambda: page.virtual_ns(5), lambda: page.is_held(5)):
                try:
                    read()
                except GuestError as error:
                    told += "what no clock writes" in str(error)
    finally:
        page.close()
    assert told > 100
