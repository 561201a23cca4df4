"""For how long programs look at what they do beside others."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from dilaton.measure.waiting.asked import asked_bit_per_s
from dilaton.measure.waiting.begins import Begun
from dilaton.measure.waiting.together import Life, Together, beside_others
from tests.unit.instructions import instructions

LINK, OTHER = {"a:eth0": None, "b:eth0": None}, {"c:eth0": None}


def life(process: str, begin_s: float, end_s: float, way: Mapping[str, int | None] = LINK) -> Life:
    """Of a program on node `a`, over links of rates that are not known."""
    return Life("a", process, begin_s, end_s, way)


def depends(
    one: float | None, other: float | None, *, rate: int | None = 10, narrow: int | None = None, round_trip_s: float = 0
) -> float:
    """The part of what a program saw in its second that depends on one which was there for longer, over a link of that
    rate, if they ask for so much, and behind the link is one of the other's own that is `narrow`."""
    far = {"a:eth0": rate} | ({"c:eth0": narrow} if narrow else {})
    lives = [
        Life("a", "one", 0, 1, {"a:eth0": rate}, asks_bit_per_s=one, round_trip_s=round_trip_s),
        Life("b", "other", 0, 1000, far, asks_bit_per_s=other),
    ]
    return next((found.part for found in beside_others(lives) if found.process == "a/one"), 0.0)


@pytest.mark.parametrize(("one", "other"), [(1, 4), (5, 0), (0.001, 4.999)])
def test_programs_that_leave_half_of_a_link_free_do_not_notice_each_other(one: float, other: float) -> None:
    assert depends(one, other) == 0.0


@pytest.mark.parametrize(("one", "other"), [(1, 4.1), (8, 8), (1, None)])
def test_who_sends_at_its_own_pace_into_a_queue_depends_on_others_wholly(one: float, other: float | None) -> None:
    assert depends(one, other) == 1.0


@pytest.mark.parametrize(
    ("other", "part"), [(0.0, 0.0), (1, 1 / 9), (2.5, 1 / 3), (5, 1), (7, 1), (10, 1), (20, 1), (None, 1)]
)
def test_who_takes_what_there_is_depends_on_others_by_what_they_ask_of_what_is_left(
    other: float | None, part: float
) -> None:
    assert depends(None, other) == pytest.approx(part)


def test_who_takes_what_there_is_takes_no_more_than_its_narrowest_link_carries() -> None:
    assert depends(1, None, narrow=3) == 0.0
    assert depends(None, None, narrow=2) == pytest.approx(1 / 4)
    assert depends(1, None, narrow=8) == 1.0


def test_where_all_that_is_asked_of_a_link_fits_into_it_others_cost_a_few_frames_of_a_round_trip() -> None:
    rate = 10_000_000
    assert depends(1_000, None, rate=rate, narrow=6_000_000, round_trip_s=0.1) == pytest.approx(0.012, rel=0.02)
    assert depends(1_000, None, rate=rate, narrow=9_000_000, round_trip_s=0.1) == pytest.approx(4.5 * 0.012, rel=0.02)
    assert depends(None, 1_000_000, rate=rate, narrow=None, round_trip_s=0.1) == pytest.approx(1 / 9), "it is full"
    assert depends(1_000, None, rate=rate, narrow=6_000_000, round_trip_s=0.001) == 1.0
    assert depends(1_000, None, rate=rate, narrow=6_000_000) == 1.0, "nobody knows of what"
    assert depends(1_000, None, rate=rate, round_trip_s=0.1) == 1.0


def test_of_a_link_whose_rate_is_not_known_all_depends() -> None:
    assert depends(1, 1, rate=None) == 1.0


def test_each_program_to_which_others_matter_counts() -> None:
    rates = {"a:eth0": 10}
    flow = Life("a", "flow", 0, 2, rates)
    sound = Life("a", "sound", 0, 9, rates, asks_bit_per_s=1)
    assert beside_others([flow, sound]) == [Together("a/flow", 0, 2, 1 / 9), Together("a/sound", 0, 9)]
    flow_of_three, *_ = beside_others([flow, sound, Life("a", "video", 0, 9, rates, asks_bit_per_s=4)])
    assert flow_of_three == Together("a/flow", 0, 2)


@pytest.mark.parametrize(
    ("argv", "result", "asked"),
    [
        ("iperf3 -c b -u -b 8M", {"told_throughput": 8e6, "datagram_bytes": 168, "sent": 9}, 10e6),
        ("iperf3 -c b -b 8M", {"told_throughput": 8e6}, None),
        ("iperf3 -c b", {"throughput": 8e6}, None),
        ("ping -c 5 b", {"sent": 5}, 5 * 1514 * 8 / 2),
        ("timeout 5 ping b", {"sent": 5}, 5 * 1514 * 8 / 2),
        ("ping -s 9000 b", {"sent": 5}, None),
        ("ping b", {"error": "it was ended"}, None),
        ("ping b", None, None),
        ("curl http://b/", {"sent": 5}, None),
    ],
)
def test_what_a_program_asks_for_is_known_of_those_that_send_at_their_own_pace(
    argv: str, result: dict[str, Any] | None, asked: float | None
) -> None:
    assert asked_bit_per_s(argv.split(), result, 2.0) == asked


def test_what_lasted_for_no_time_asked_for_what_there_is() -> None:
    assert asked_bit_per_s(["ping", "b"], {"sent": 1}, 0.0) is None


def test_a_program_looks_from_the_begin_of_the_first_beside_it_to_its_own_end() -> None:
    found = beside_others([life("flow", 0.5, 9), life("pings", 0.7, 1.1)])
    assert found == [Together("a/flow", 0.5, 9), Together("a/pings", 0.5, 1.1)]
    assert [each.seconds for each in beside_others([life("flow", 0.5, 1.5), life("late", 1, 8)])] == [1.0, 7.5]


def test_who_is_over_before_another_begins_is_not_beside_it() -> None:
    assert beside_others([life("pings", 0, 0.5), life("flow", 0.5, 4)]) == []


def test_programs_without_a_link_in_common_do_not_notice_each_other() -> None:
    assert beside_others([life("one", 0, 1), life("other", 0, 1, OTHER)]) == []
    assert beside_others([life("one", 0, 1), life("other", 0, 2, OTHER | LINK)])[0] == Together("a/one", 0, 1)
    assert beside_others([life("quiet", 0, 1, {}), life("other", 0, 1)]) == []


def test_one_alone_has_none_beside_it() -> None:
    assert beside_others([life("flow", 0, 1)]) == []
    assert beside_others([]) == []


def test_programs_met_later_by_how_much_further_apart_they_began_to_talk_than_the_lab_says() -> None:
    """One that began first was 300 ms late, and its pings, which should have come 100 ms later, 280 to 290."""
    flow = replace(life("flow", 0.5, 6), begun=Begun(0.8, 0.3, 0.3))
    pings = replace(life("pings", 0.6, 1.2), begun=Begun(0.885, 0.28, 0.29))
    _, found = beside_others([flow, pings])
    assert found == Together("a/pings", 0.8, 1.2, apart_s=pytest.approx(0.02))
    _, found = beside_others([flow, replace(pings, begun=None)])
    assert found == Together("a/pings", 0.5, 1.2), "of which nobody knows"
    _, found, _ = beside_others([flow, pings, life("other", 0.5, 6)])
    assert found.apart_s is None, "nor by how much later the third one began"
    _, found = beside_others([flow, pings, replace(life("other", 0, 6, OTHER), begun=Begun(5, 5, 5))])
    assert found.apart_s == pytest.approx(0.02), "who talks over other links is nobody's business"


def test_four_times_the_programs_of_a_line_are_looked_at_in_little_more_than_four_times_as_much() -> None:
    def looks(nodes: int) -> int:
        lives = [life(f"p{number}", 0, 1, {f"n{number}": None, f"n{number + 1}": None}) for number in range(nodes)]
        return instructions(lambda: beside_others(lives))

    few, many = looks(30), looks(120)
    assert few < many < 1.1 * 4 * few, f"{few} for 30, {many} for 120"
