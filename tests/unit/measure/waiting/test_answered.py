"""Answers that took longer than their links take say that the machine was too slow, unless something else explains it."""

from __future__ import annotations

from typing import Any

import pytest

from dilaton.measure.observation import Observation
from dilaton.measure.verdict import Network, judge
from dilaton.measure.waiting.answered import Answered, answered
from tests.unit.measure.made import plan

LAB = """
name: x
time: {drive: work}
nodes: {a: , b: {kind: router}, c: , d: }
links: [{endpoints: a -- b, rate: 1Mbit, delay: 2ms}, {endpoints: b -- c, delay: 3ms}, {endpoints: b -- d, delay: 1ms}]
run:
  - {on: a, name: asks, exec: ping -i 0.1 -c 5 c}
"""

LINKS_NS = 10_000_000 + 2 * 118 * 8 * 1000
"""What those between `a` and `c` take, of which one has a rate."""


def seen(took_ms: float, *changes: tuple[str, str]) -> list[Answered]:
    """What is known of a ping half of whose answers took so long, in a lab with changes to its text."""
    text = LAB
    for written, instead in changes:
        assert written in text
        text = text.replace(written, instead)
    return answered(plan(text), [("a", "asks", {"rtt": {"p50": took_ms / 1e3}})])


def judged(found: list[Answered], tdf: float = 2.0) -> list[Any]:
    return list(judge(Network(), Observation("work", tdf, answered=tuple(found))).reasons)


def test_answers_that_took_longer_are_named_with_what_their_links_take_and_the_advice_is_enough() -> None:
    [one] = seen(13)
    assert (one.known_ns, one.longer_ns_max) == (LINKS_NS, LINKS_NS / 20)
    [reason] = judged([one])
    assert reason.what == (
        "half of the answers to asks on a took 13 ms and more, where its links take 11.9 ms and nobody else uses them"
    )
    assert (reason.level, reason.unit, reason.tdf) == ("suspect", "us", 5.0)
    assert reason.value == pytest.approx(13_000 - LINKS_NS / 1e3)


@pytest.mark.parametrize("took_ms", [5, 11.9, 12.4])
def test_answers_that_took_what_they_should_are_nothing_to_talk_of(took_ms: float) -> None:
    assert judged(seen(took_ms)) == []


def test_what_is_less_than_any_program_minds_or_this_lab_does_is_nothing() -> None:
    short = (("rate: 1Mbit, ", ""), ("2ms", "100us"), ("3ms", "100us"))
    assert judged(seen(0.49, *short)) == [] and judged(seen(0.51, *short)) != []
    assert judged(seen(0.51, *short, ("run:", "fidelity: {lateness: 200us}\nrun:"))) == []


@pytest.mark.parametrize(
    "change",
    [
        ("drive: work", "drive: event"),
        ("delay: 3ms", "delay: {mean: 3ms, jitter: 1ms}"),
        ("2ms}", "2ms, queue: {discipline: cake}}"),
        ("nodes: {a: ,", "nodes: {a: {cpu: 0.5},"),
        ("run:", "run:\n  - {on: d, exec: ping c}"),
        ("run:", "run:\n  - {on: d, exec: python3 load.py}"),
        ("ping -i 0.1", "ping -f"),
        ("ping -i 0.1", "ping -i 0.001"),
        ("ping -i 0.1", "ping -s 5000"),
        ("ping -i 0.1", "ping -s much"),
        ("ping -i 0.1", "probe"),
        ("run:", "faults: [{loss: 10%, link: a -- b, at: 1s, for: 1s}]\nrun:"),
        ("{endpoints: b -- d", "{endpoints: c -- d, delay: 1ms}, {endpoints: b -- d"),
    ],
    ids=[
        "event",
        "jitter",
        "cake",
        "share",
        "others",
        "unknown",
        "flood",
        "full",
        "cut",
        "size",
        "probe",
        "fault",
        "ring",
    ],
)
def test_what_else_may_have_held_up_answers_says_nothing_about_the_machine(change: tuple[str, str]) -> None:
    assert seen(50, change) == []


def test_links_without_a_delay_promise_nothing() -> None:
    assert seen(50, ("rate: 1Mbit, delay: 2ms", "rate: 1Mbit"), (", delay: 3ms", "")) == []


def test_others_elsewhere_and_shares_of_who_answers_change_nothing() -> None:
    more = ("run:", "run:\n  - {on: d, exec: ping b}")
    assert judged(seen(50, more, ("c: , d", "c: {cpu: 0.5}, d"))) != []
