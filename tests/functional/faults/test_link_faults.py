"""Links that suffer faults do so from exactly the instant that is asked for to exactly its end, and are then as before."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dilaton
from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.course.test_pauses import DATE_S
from tests.functional.time.test_repeatable import left

STEP_S = 0.005
"""Between two packets."""

SENDER = f"""
import socket, sys, time
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for number in range(1, 660):
    time.sleep(max(0, {DATE_S} + number * {STEP_S} - time.time()))
    try: to.sendto(str(number).encode(), (sys.argv[1], 9))
    except OSError: pass
"""
"""Sends packets with their numbers, one every `STEP_S`."""

RECEIVER = f"""
import socket, time
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("", 9))
while True: print(int(here.recv(99)) * {STEP_S}, time.time() - {DATE_S}, flush=True)
"""
"""Prints when each packet was sent and when it arrived."""

RUN = f"""
run:
  - {{on: a, name: a-hears, exec: {json.dumps([str(PYTHON), "-c", RECEIVER])}, background: true}}
  - {{on: b, name: b-hears, exec: {json.dumps([str(PYTHON), "-c", RECEIVER])}, background: true}}
  - {{on: a, name: a-sends, exec: {json.dumps([str(PYTHON), "-c", SENDER, "b"])}}}
  - {{on: b, name: b-sends, exec: {json.dumps([str(PYTHON), "-c", SENDER, "a"])}}}
  - {{on: a, name: qdiscs, exec: tc qdisc show dev eth0, start: 3200ms}}
  - {{on: b, name: address, exec: ip -o address show dev eth0, start: 3200ms}}
  - {{on: b, name: neighbours, exec: ip neighbour show, start: 3200ms}}
  - {{on: b, name: routes, exec: ip route show, start: 3200ms}}
"""

PLAIN = f"""
name: links
time: {{drive: event}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], rate: 10Mbit, delay: 1ms}}]
changes: [{{at: 600ms, link: a--b, delay: 2ms}}]
{RUN}
"""

LAB = f"""{PLAIN}
faults:
  - {{name: slow, at: 500ms, for: 250ms, link: a--b, delay: 50ms}}
  - {{name: deaf, after: slow.end, wait: 250ms, for: 250ms, link: a--b, a_to_b: {{loss: 100%}}}}
  - {{name: dark, at: 1500ms, for: 250ms, link: a--b, down: true}}
  - {{name: flaps, at: 2s, for: 1s, flap: {{link: a--b, down: 100ms, up: 150ms}}}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def arrivals(outcome: Outcome, node: str) -> dict[float, float]:
    """When packets arrived at a node, by when they were sent."""
    lines = outcome.stdout(node, f"{node}-hears").splitlines()
    return {round(float(sent), 3): float(arrived) for sent, arrived in (line.split() for line in lines)}


def lost(outcome: Outcome, node: str, begin_s: float, end_s: float) -> list[float]:
    """When those packets were sent, between these instants, that never got to a node."""
    arrived = arrivals(outcome, node)
    numbers = range(round(begin_s / STEP_S), round(end_s / STEP_S))
    return [sent for number in numbers if (sent := round(number * STEP_S, 3)) not in arrived]


def steps(begin_s: float, end_s: float) -> list[float]:
    return [round(number * STEP_S, 3) for number in range(round(begin_s / STEP_S), round(end_s / STEP_S))]


@pytest.mark.parametrize("node", ["a", "b"])
@pytest.mark.parametrize(
    ("begin_s", "end_s", "delay_s"), [(0.2, 0.5, 0.001), (0.5, 0.75, 0.05), (0.75, 1.0, 0.002), (3.005, 3.2, 0.002)]
)
def test_a_delay_begins_and_ends_at_its_instant_and_then_is_what_the_link_became_meanwhile(
    outcome: Outcome, node: str, begin_s: float, end_s: float, delay_s: float
) -> None:
    arrived = arrivals(outcome, node)
    # The one that is sent at the very instant may be on either side of it.
    sent = [each for each in steps(begin_s, end_s) if each != begin_s]
    assert {each: arrived[each] - each for each in sent} == {each: pytest.approx(delay_s, abs=0.0006) for each in sent}


def test_a_loss_of_one_direction_leaves_the_other_alone(outcome: Outcome) -> None:
    assert lost(outcome, "b", 0.9, 1.4)[1:-1] == steps(1.0, 1.25)[1:-1] or lost(outcome, "b", 0.9, 1.4) == steps(
        1, 1.25
    )
    assert lost(outcome, "a", 0.9, 1.4) == []


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_link_that_is_down_carries_nothing_until_exactly_the_end(outcome: Outcome, node: str) -> None:
    assert set(steps(1.5, 1.75)[1:]) <= set(lost(outcome, node, 1.4, 1.9)) <= set(steps(1.495, 1.755))


@pytest.mark.parametrize("node", ["a", "b"])
def test_a_link_that_flaps_is_down_and_up_in_turn(outcome: Outcome, node: str) -> None:
    missing = lost(outcome, node, 1.9, 3.2)
    down = [(begin_s, begin_s + 0.1) for begin_s in (2.0, 2.25, 2.5, 2.75)]
    assert {each for begin_s, end_s in down for each in steps(begin_s, end_s)[1:]} <= set(missing)
    assert set(missing) <= {each for begin_s, end_s in down for each in steps(begin_s - STEP_S, end_s + STEP_S)}


def test_begin_and_end_are_events_at_their_instants(outcome: Outcome) -> None:
    seen = [
        (event["kind"], event["what"], round(event["t_ns"] / 1e9, 4)) for event in outcome.events if "fault" in event
    ]
    assert seen == [
        (kind, what, instant)
        for what, begin, end in (
            ("link a--b delay 50ms", 0.5, 0.75),
            ("link a--b a_to_b.loss 100%", 1.0, 1.25),
            ("link a--b down", 1.5, 1.75),
            ("flap a--b", 2.0, 3.0),
        )
        for kind, instant in (("began", begin), ("undone", end))
    ]


def test_faults_of_one_link_lie_over_each_other_and_end_in_any_order(run_lab: RunLab) -> None:
    outcome = run_lab(f"""{PLAIN}
faults:
  - {{name: slow, at: 500ms, for: 500ms, link: a--b, delay: 50ms}}
  - {{name: deaf, at: 750ms, for: 500ms, link: a--b, a_to_b: {{loss: 100%}}}}
  - {{name: dark, after: deaf, wait: 750ms, for: 200ms, link: a--b, down: true}}
  - {{name: slower, after: deaf, wait: 700ms, for: 500ms, link: a--b, delay: 80ms}}
""")
    assert outcome.status == 0, outcome.terminal
    arrived = arrivals(outcome, "a")
    delays = [((0.505, 1.0), 0.05), ((1.005, 1.4), 0.002), ((1.75, 1.945), 0.08), ((1.955, 3.0), 0.002)]
    for (begin_s, end_s), delay_s in delays:
        sent = steps(begin_s, end_s)
        assert {each: arrived[each] - each for each in sent} == {
            each: pytest.approx(delay_s, abs=0.0006) for each in sent
        }
    assert set(steps(1.505, 1.7)) <= set(lost(outcome, "a", 0.2, 3.0)) <= set(steps(1.42, 1.705))
    missing = set(lost(outcome, "b", 0.2, 3.0))
    assert set(steps(0.755, 1.25)) | set(steps(1.505, 1.7)) <= missing
    assert missing <= set(steps(0.75, 1.255)) | set(steps(1.42, 1.705))
    without = run_lab(PLAIN)
    for node, process in (("a", "qdiscs"), ("b", "address"), ("b", "neighbours"), ("b", "routes")):
        assert outcome.stdout(node, process) == without.stdout(node, process) != ""


def test_nothing_of_a_fault_is_left(outcome: Outcome, run_lab: RunLab) -> None:
    without = run_lab(PLAIN)
    for node, process in (("a", "qdiscs"), ("b", "address"), ("b", "neighbours"), ("b", "routes")):
        assert outcome.stdout(node, process) == without.stdout(node, process) != ""


def test_runs_with_link_faults_repeat_to_the_byte(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)


def test_two_faults_of_a_link_that_meet_by_what_they_wait_for_fail_the_run(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: meet\ntime: {drive: event}\nnodes: {a: {}, b: {}}\nlinks: [a -- b]\n"
        "run: [{on: a, name: first, exec: sleep 1}, {on: a, name: last, exec: sleep 3}]\n"
        "faults: [{name: x, at: 500ms, for: 2s, link: a--b, down: true},"
        " {name: y, after: first, for: 1s, flap: {link: a--b, down: 1s, up: 1s}}]\n"
    )
    assert outcome.status == 1
    assert "y was skipped: x has a hold of that link already" in outcome.terminal


def test_a_fault_of_a_segment_is_one_of_all_that_its_nodes_send(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: segment\ntime: {drive: event}\nnodes: {a: {}, b: {}, c: {}}\n"
        "links: [{endpoints: [a, b, c], delay: 1ms}]\n"
        "run: [{on: a, name: ping, exec: ping -i 0.2 -c 10 -W 0.1 c}]\n"
        "faults: [{at: 500ms, for: 1s, link: a--b--c, delay: 20ms}]\n"
    )
    times = [
        float(line.partition("time=")[2].split()[0])
        for line in outcome.stdout("a", "ping").splitlines()
        if "time=" in line
    ]
    assert len(times) == 10
    assert [round(time / 20) for time in times] == [0, 0, 0, 2, 2, 2, 2, 2, 0, 0]


def test_a_link_under_faults_is_shown_as_it_is(tmp_path: Path) -> None:
    lab = {
        "name": "shown",
        "time": {"drive": "event"},
        "nodes": {"a": {}, "b": {}},
        "links": [{"endpoints": ["a", "b"], "delay": "1ms"}],
        "stop_after": "9s",
        "faults": [
            {"name": "slow", "at": "1s", "for": "2s", "link": "a--b", "delay": "50ms"},
            {"name": "flaps", "at": "2s", "for": "4s", "flap": {"link": "a--b", "down": "200ms", "up": "800ms"}},
        ],
    }
    seen = {}
    with dilaton.start(lab, out=tmp_path / "run", hold_at="500ms") as run:
        for at in ("600ms", "1500ms", "2100ms", "2500ms", "3100ms", "5100ms", "7s"):
            run.until(at)
            shown = run.link("a--b").show()
            delay = next(one["delay_ns"] for one in shown["ends"][0]["egress"]["qdiscs"] if one["kind"] == "netem")
            seen[at] = (shown["up"], shown["faults"], delay // 10**6)
    assert seen == {
        "600ms": (True, [], 1),
        "1500ms": (True, ["slow"], 50),
        "2100ms": (False, ["slow", "flaps"], 50),
        "2500ms": (True, ["slow"], 50),
        "3100ms": (False, ["flaps"], 1),
        "5100ms": (False, ["flaps"], 1),
        "7s": (True, [], 1),
    }


FLAPPING = """
name: flapping
time: {drive: event}
guests: 2
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 100Mbit, delay: 20ms}]
run: [{on: a, exec: ping -c 400 -i 0.002 -W 1 b}]
faults: [{at: 200ms, for: 500ms, flap: {link: a--b, down: 7ms, up: 5ms}}]
measure: {capture: ["b:eth0"]}
"""
"""The link is down, and up again, more than once while a packet is on the wire."""


def test_what_is_lost_at_a_link_between_guests_that_is_down_does_not_hang_on_the_hosts_pace(run_lab: RunLab) -> None:
    first, *others = [left(run_lab(FLAPPING)) for _ in range(4)]
    assert all(other == first for other in others)
