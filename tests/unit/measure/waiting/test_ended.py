"""When iperf3 hears of the end of a flow of UDP, and what of that its way explains."""

from __future__ import annotations

import pytest

from dilaton.measure.waiting.ended import Ended, ended
from dilaton.run.record.programs import Programs, late_ends
from tests.unit.measure.made import plan

LAB = """
name: x
time: {drive: DRIVE}
nodes: {a: , b: , c: }
links:
  - {endpoints: a -- b, rate: 13.2Mbit, delay: 4ms, queue: {limit: 300}}
  - {endpoints: b -- c, rate: 3.1Mbit, delay: 300us, queue: {limit: 30}}
run:
  - {on: c, name: sink, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: flood, exec: iperf3 -c c -u -l 1400 -b 5M -t 1 -J, after: sink}
MORE
"""

QUEUE_S = 31 * 1514 * 8 / 3.1e6
"""Thirty frames wait, and one is being sent."""
ROUND_TRIP_S = 0.0086


def flood(counted_s: float, drive: str = "work", more: str = "") -> list[Ended]:
    """A flood of which the server got two thirds, and counted so long."""
    result = {
        "told_throughput": 5e6,
        "sent_throughput": 5e6,
        "datagram_bytes": 1400,
        "loss": 1 / 3,
        "throughput": 5e6 * 2 / 3 / counted_s,
        "intervals": [{"start_s": 0.0, "end_s": 1.0}],
    }
    text = LAB.replace("DRIVE", drive).replace("MORE", more)
    return ended(plan(text), [("c", "sink", None), ("a", "flood", result)])


def test_sending_a_full_queue_and_a_round_trip_explain_when_the_end_is_heard_of() -> None:
    [seen] = flood(1 + QUEUE_S + ROUND_TRIP_S)
    assert seen.late_s == pytest.approx(0, abs=2e-3)
    assert not late_ends(Programs(ended=[seen]))


def test_what_is_more_by_a_twentieth_is_told_of_the_flow_that_has_most() -> None:
    found = flood(1.226) + flood(1.4)
    [reason] = late_ends(Programs(ended=found))
    share = found[1].share
    assert (reason.level, reason.value, reason.tdf) == ("suspect", share, None)
    assert share == pytest.approx((0.4 - QUEUE_S - ROUND_TRIP_S) / 1.4, abs=2e-3)
    assert reason.what.startswith("iperf3 heard of the end of flood on a 27")


def test_a_queue_that_others_may_fill_explains_it_too() -> None:
    ping = "  - {on: a, exec: ping -c 1 b}"
    assert flood(1.3, more=ping)[0].late_s < flood(1.3)[0].late_s - 0.2


def test_nothing_is_late_where_computing_takes_no_time() -> None:
    assert not flood(2.0, "event")
