"""The judgement of an emulated link, from made-up time stamps."""

from __future__ import annotations

from dilaton.measure.link_validation import judge_delay, judge_rate, judge_tcp, lateness_ns

MS = 10**6


def test_lateness_is_what_a_probe_took_beyond_the_delay_and_lost_ones_have_none() -> None:
    assert lateness_ns({0: 0, 1: 5, 2: 9}, {0: 10 * MS + 3, 2: 10 * MS + 8}, 10 * MS) == [-1, 3]


def test_an_early_probe_and_a_late_thousandth_are_told() -> None:
    late = [-1] + [100] * 998 + [40_000]
    assert [line.holds for line in judge_delay(late, 10 * MS, tdf=1)] == [False, True, False]
    assert [line.holds for line in judge_delay([100] * 1000, 10 * MS, tdf=100)] == [True, True, True]


def test_the_bound_is_tighter_when_dilated() -> None:
    late = [5_000] * 1000
    assert [line.holds for line in judge_delay(late, 10 * MS, tdf=1)] == [True, True, True]
    assert [line.holds for line in judge_delay(late, 10 * MS, tdf=100)] == [True, False, False]


def test_even_frames_at_the_rate_hold_and_bursts_do_not() -> None:
    gap = 1514 * 8 * 10  # 100 Mbit/s
    even = [number * gap for number in range(100)]
    pairs = [number // 2 * 2 * gap for number in range(101)]
    assert [line.holds for line in judge_rate(even, 1500, 10**8)] == [True, True]
    assert [line.holds for line in judge_rate(pairs, 1500, 10**8)] == [True, False]
    assert not judge_rate(even, 1500, 99 * 10**6)[0].holds


def test_the_throughput_of_tcp_is_held_against_the_rate_with_its_headers() -> None:
    assert judge_tcp(1e8 * 1448 / 1514, 1500, 10**8).holds
    assert not judge_tcp(0.94e8, 1500, 10**8).holds
