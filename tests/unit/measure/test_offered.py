"""Programs that sent less than they were told to say that the CPU was too slow, unless something else explains it."""

from __future__ import annotations

from typing import Any

import pytest

from dilaton.measure.observation import Observation
from dilaton.measure.verdict import Network, judge
from dilaton.measure.waiting.offered import Offered, offered
from tests.unit.measure.made import plan

LAB = """
name: x
time: {drive: DRIVE}
nodes: {a: {NODE}, b: }
links: [{endpoints: a -- b, rate: 10Mbit, delay: 1ms}]
run:
  - {on: b, name: sink, exec: iperf3 -s, background: true, ready: {tcp: 5201}}
  - {on: a, name: flow, exec: iperf3 -c b -u -b 5M -J, after: sink}
COURSE
"""


def sent(told: float | None, got: float, **lab: str) -> list[Offered]:
    """What is known of a flow from `a` that was told to send so much, and sent so much."""
    words = {"DRIVE": "work", "NODE": "", "COURSE": ""} | {name.upper(): text for name, text in lab.items()}
    text = LAB
    for word, value in words.items():
        text = text.replace(word, value)
    result: dict[str, Any] = {"sent_throughput": got} | ({"told_throughput": told} if told else {})
    return offered(plan(text), [("a", "flow", result), ("b", "sink", None)])


def judged(seen: list[Offered], tdf: float = 2.0) -> list[str]:
    return [reason.what for reason in judge(Network(), Observation("work", tdf, offered=tuple(seen))).reasons]


def test_a_sender_that_was_too_slow_is_named_with_both_rates_and_the_advice_is_enough() -> None:
    seen = Observation("work", 2.0, offered=tuple(sent(5e6, 4.3e6)))
    [reason] = judge(Network(), seen).reasons
    assert reason.what == "flow on a sent 4.3 Mbit/s where it was told 5 Mbit/s, as it waited for the CPU"
    assert (reason.level, reason.tdf, reason.advice) == ("suspect", 5.0, "raise tdf to 5")


@pytest.mark.parametrize("got", [5e6, 5.2e6, 4.8e6])
def test_a_sender_that_did_what_it_was_told_is_nothing_to_talk_of(got: float) -> None:
    assert judged(sent(5e6, got)) == []


def test_of_several_the_worst_is_named() -> None:
    [what] = judged([Offered("a", "one", 1e6, 0.9e6), Offered("b", "two", 1e6, 0.5e6), Offered("c", "three", 1e6, 1e6)])
    assert what.startswith("two on b sent 500 kbit/s") and what.endswith("and 1 more sent less than they were told")


@pytest.mark.parametrize(
    ("told", "lab"),
    [
        (None, {}),
        (5e6, {"drive": "event"}),
        (5e6, {"node": "cpu: 0.5"}),
        (5e6, {"course": "faults: [{pause: a, at: 1s, for: 1s}]"}),
        (5e6, {"course": "changes: [{at: 1s, link: a -- b, down: true}]"}),
    ],
    ids=["told nothing", "event", "share", "pause", "down"],
)
def test_what_else_may_have_slowed_a_sender_down_says_nothing_about_the_cpu(
    told: float | None, lab: dict[str, str]
) -> None:
    assert judged(sent(told, 1e6, **lab)) == []
