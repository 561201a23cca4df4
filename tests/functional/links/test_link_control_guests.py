"""Steering what takes more than one agent or link: links between guests, and segments, each at one instant."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from dilaton.run.control.answers import CLOCK_RELEASE, CLOCK_TDF, CLOCK_UNTIL, LINK_CHANGE
from dilaton.run.control.requests import Client
from tests.conftest import Outcome, dilaton, held_run, outcome_of
from tests.functional.links.test_link_control import assert_round_trips

LAB = """
name: steered-between-guests
# What is steered from outside while it runs must not be over before; between two pings is what one takes of the CPU, too.
time: {tdf: 10, max_speed: 2}
nodes: {a: {guest: left}, c: {guest: left}, d: {guest: left}, b: {guest: right}}
links:
  - {endpoints: [a, b], rate: 100Mbit, delay: 10ms, lookahead: 5ms}
  - {endpoints: [a, c, d], rate: 100Mbit, delay: 1ms}
changes:
  - {at: 8s, link: a -- b, down: true}
  - {at: 9s, link: a -- b, down: false}
  - {at: 8s, link: d -- c -- a, delay: 3ms}
run:
  - {on: a, name: far, exec: ping -i 0.1 -c 110 b}
  - {on: c, name: near, exec: ping -i 0.1 -c 110 d}
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A run whose links were steered while its clock was held, and while it ran."""
    directory = tmp_path_factory.mktemp("between")
    with held_run(directory, LAB, "2s") as (process, out):
        steer(out)
        return outcome_of(process, out)


def steer(out: Path) -> None:
    refused = dilaton("link", out, "a--b", "set", "delay=4ms")
    assert refused.returncode == 2
    assert "agreed at the start that none takes less than 5ms; write lookahead: 4ms" in refused.stderr
    shown = dilaton("link", out, "a--b", "set", "delay=7ms", "--at", "4s").stdout
    assert "from a: 100 Mbit/s, 10 ms one way" in shown, "what it is now, the wire's part included"
    done = dilaton("link", out, "a--c--d", "set", "delay=2ms", "--at", "6s").stdout
    assert re.findall(r"^(\w+):eth\d--lan0", done, re.MULTILINE) == ["a", "c", "d"]
    with Client(out) as client:
        client.request(CLOCK_UNTIL, at="5s")
        # Virtual time goes on, but stands still while both guests hear of it.
        client.request(CLOCK_TDF, tdf="50")
        client.request(CLOCK_RELEASE)
        client.request(LINK_CHANGE, link="b -- a", settings=[["delay", "20ms"]])
        client.request(CLOCK_TDF, tdf="10")


def rtts_ms(outcome: Outcome, node: str, process: str) -> list[tuple[float, float]]:
    """When each ping that was answered left, in seconds, and its round-trip time."""
    text = outcome.stdout(node, process)
    found = re.findall(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+)", text)
    return [((int(number) - 1) * 0.1, float(ms)) for number, ms in found]


def test_a_link_between_guests_changes_at_one_instant_in_both(outcome: Outcome) -> None:
    (at_s,) = (event["t_ns"] / 1e9 for event in outcome.events if event.get("asked") == "delay=20ms")
    assert 5 <= at_s < 8
    assert_round_trips(
        (ms, 20 if sent_s < 4 else 14 if sent_s < at_s else 40)
        for sent_s, ms in rtts_ms(outcome, "a", "far")
        if not any(abs(sent_s - edge) < 0.15 for edge in (4, at_s, 8, 9))
    )


def test_a_link_between_guests_that_is_down_carries_nothing(outcome: Outcome) -> None:
    answered = [sent_s for sent_s, _ in rtts_ms(outcome, "a", "far")]
    assert not [sent_s for sent_s in answered if 8.1 < sent_s < 8.9]
    assert [sent_s for sent_s in answered if sent_s > 9.5]


def test_all_of_a_segment_changes_at_one_instant(outcome: Outcome) -> None:
    assert_round_trips(
        (ms, 2 if sent_s < 6 else 4 if sent_s < 8 else 6)
        for sent_s, ms in rtts_ms(outcome, "c", "near")
        if sent_s > 0.15 and not any(abs(sent_s - edge) < 0.15 for edge in (6, 8))
    )


def test_the_run_is_unharmed(outcome: Outcome) -> None:
    assert outcome.record["state"] == "finished"
    steered = [event["link"] for event in outcome.events if event["kind"] == "link-steered"]
    ports = [f"{end}--lan0:eth{n}" for n, end in enumerate(("a:eth1", "c:eth0", "d:eth0"))]
    assert sorted(steered) == sorted(["a:eth0--b:eth0", *ports, "a:eth0--b:eth0"])
