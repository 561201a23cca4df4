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
MORE
COURSE
"""


def sent(told: float | None, got: float, **lab: str) -> list[Offered]:
    """What is known of a flow from `a` that was told to send so much, and sent so much."""
    words = {"DRIVE": "work", "NODE": "", "MORE": "", "COURSE": ""}
    words |= {name.upper(): text for name, text in lab.items()}
    text = LAB
    for word, value in words.items():
        text = text.replace(word, value)
    result: dict[str, Any] = {"sent_throughput": got, "loss": 0.0} | ({"told_throughput": told} if told else {})
    return offered(plan(text), [("a", "flow", result), ("b", "sink", None)])


def sent_by_tcp(*, told: float = 5e6, retransmits: int | None = 0, seconds: float = 1.0, **lab: str) -> list[str]:
    """What is said of a sender of TCP that sent half of what it was told."""
    made = LAB.replace("-u ", "")
    for word, value in ({"DRIVE": "work", "NODE": "", "MORE": "", "COURSE": "", "1ms": "1ms"} | lab).items():
        made = made.replace(word, value)
    result = {
        "told_throughput": told,
        "sent_throughput": told / 2,
        "retransmits": retransmits,
        "intervals": [{"start_s": 0.0, "end_s": seconds}],
    }
    return judged(offered(plan(made), [("a", "flow", result), ("b", "sink", None)]))


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


def test_a_sender_of_tcp_that_neither_network_nor_receiver_held_back_had_too_little_of_a_cpu() -> None:
    assert sent_by_tcp() == ["flow on a sent 2.5 Mbit/s where it was told 5 Mbit/s, as it waited for the CPU"]
    assert sent_by_tcp(MORE="  - {on: a, exec: date}") == sent_by_tcp(), "it does not talk"


@pytest.mark.parametrize(
    "given",
    [
        {"told": 5.1e6},
        {"retransmits": 1},
        {"retransmits": None},
        {"seconds": 0.1},
        {"1ms": "60ms", "seconds": 100.0},
        {"MORE": "  - {on: a, exec: ping b}"},
        {"NODE": "cpu: 0.5"},
        {"NODE": "sysctls: {net.ipv4.tcp_rmem: 4096 8192 8192}"},
        {"COURSE": "changes: [{at: 1s, link: a -- b, delay: 9ms}]"},
        {"DRIVE": "event"},
    ],
    ids=["link", "loss", "unknown loss", "start", "window", "others", "share", "tuned", "change", "event"],
)
def test_what_else_may_have_slowed_a_sender_of_tcp_down_says_nothing_about_the_cpu(given: dict[str, Any]) -> None:
    assert sent_by_tcp(**given) == []
