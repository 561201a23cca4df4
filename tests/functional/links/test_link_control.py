"""Steering links of a run that goes on: at exact instants, resetting nothing, and unharmed by what is refused."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

from dilaton.run.control.answers import CLOCK_RELEASE, CLOCK_UNTIL, LINK_CHANGE, LINK_SHOW
from dilaton.run.control.requests import Client
from tests.conftest import Outcome, dilaton, held_run, outcome_of

LAB = """
name: steered-links
time: {tdf: 10}  # between two pings is what one takes of the CPU, too
nodes: {a: {}, r: {kind: router}, b: {}}
links:
  - {endpoints: [a, r], rate: 100Mbit, delay: 10ms}
  - r -- b
changes: [{at: 8s, link: a -- r, delay: 30ms}]
addressing: {ipv6: "fd00:9::/48"}
run: [{on: a, name: ping, exec: ping -6 -i 0.1 -c 140 b}]
"""


@pytest.fixture(scope="module")
def outcome(tmp_path_factory: pytest.TempPathFactory) -> Outcome:
    """A run whose links were steered at instants at which its clock was held."""
    directory = tmp_path_factory.mktemp("links")
    with held_run(directory, LAB, "5s") as (process, out):
        steer(out)
        return outcome_of(process, out)


def steer(out: Path) -> None:
    refused = dilaton("link", out, "a--r", "set", "delay=5")
    assert (refused.returncode, refused.stderr) == (
        2,
        "dilaton: delay: 5: a delay needs a unit: write 5ms (or ns, us, s, min, h)\n",
    )
    done = dilaton("link", out, "a--r", "set", "queue.limit=50", "delay.jitter=1us")
    assert "tc qdisc add dev eth0 parent 1:1 handle 2: netem limit 51 rate 100000000bit" in done.stdout
    assert dilaton("link", out, "a--r", "set", "delay=20ms", "--at", "6s").returncode == 0
    with Client(out) as client:
        client.request(CLOCK_UNTIL, at="9s")
        (shown,) = client.request(LINK_SHOW, link="a--r")["links"]
        assert shown["ends"][0]["egress"]["qdiscs"][1]["limit_packets"] == 51, "the planned change resets nothing"
        client.request(LINK_CHANGE, link="r -- b", settings=[["down", "true"]])
        client.request(CLOCK_UNTIL, at="10s")
        client.request(LINK_CHANGE, link="r -- b", settings=[["down", "false"]])
        client.request(CLOCK_RELEASE)


def rtts_ms(outcome: Outcome) -> dict[int, float]:
    """The round-trip time of each ping that was answered, by its number."""
    text = outcome.stdout("a", "ping")
    return {int(number): float(ms) for number, ms in re.findall(r"icmp_seq=(\d+) ttl=\d+ time=([\d.]+)", text)}


LATE_MS, LATE_MAX = 0.5, 3
"""What a round trip may take of the CPU, and how many may take more: where a hypervisor has the core for a moment,
the host charges that to the guest."""


def assert_round_trips(found_and_expected: Iterable[tuple[float, float]]) -> None:
    """None is early, and hardly any late; milliseconds."""
    late_ms = [found - expected for found, expected in found_and_expected]
    assert min(late_ms) >= 0
    assert sum(late > LATE_MS for late in late_ms) <= LATE_MAX, sorted(late_ms)[-10:]


def test_each_change_comes_when_it_was_asked_for(outcome: Outcome) -> None:
    events = [event for event in outcome.events if event["kind"] == "link-changed"]
    assert [event["at_ns"] / 1e9 for event in events] == [5, 6, 8, 9, 10]
    assert [event["t_ns"] / 1e9 for event in events] == pytest.approx([5, 6, 8, 9, 10], abs=0.02)
    assert [event["what"] for event in events] == [
        "queue.limit 50, delay.jitter 1us",
        "delay 20ms",
        "delay 30ms",
        "down",
        "up",
    ]
    sent = [((number - 1) * 0.1, ms) for number, ms in rtts_ms(outcome).items()]
    assert_round_trips(
        (ms, 20 if sent_s < 6 else 40 if sent_s < 8 else 60)
        for sent_s, ms in sent
        if not any(abs(sent_s - edge) < 0.15 for edge in (6, 8, 9, 10))
    )


def test_a_link_that_is_down_carries_nothing_and_comes_back_with_addresses_and_routes(outcome: Outcome) -> None:
    lost = set(range(1, 141)) - set(rtts_ms(outcome))
    # A ping leaves a little more than 0.1 s after the one before.
    assert set(range(92, 99)) <= lost <= set(range(89, 102))


def test_who_steered_is_told_with_both_times_and_what_the_agent_was_told_is_kept(outcome: Outcome) -> None:
    steered = [event for event in outcome.events if event["kind"] == "link-steered"]
    assert [event["asked"] for event in steered] == [
        "queue.limit=50 delay.jitter=1us",
        "delay=20ms",
        "down=true",
        "down=false",
    ]
    assert [round(event["t_ns"] / 1e9, 6) for event in steered] == [5, 5, 9, 10]
    assert all(event["host_s"] > 0 and (outcome.path / event["file"]).is_file() for event in steered)


def test_the_run_is_unharmed(outcome: Outcome) -> None:
    assert outcome.record["state"] == "finished"
    assert outcome.process("ping")["exit"] == 0
