"""Nodes on different sides of a partition do not hear each other, from its instant to its end, and all else goes on."""

from __future__ import annotations

import itertools
import json

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.course.test_pauses import DATE_S
from tests.functional.time.test_repeatable import left

STEP_S = 0.01
"""Between two packets of a node to each other one."""

SENDER = f"""
import socket, sys, time
to = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
own, *others = sys.argv[1:]
for number in range(10, 235):
    time.sleep(max(0, {DATE_S} + number * {STEP_S} - time.time()))
    for other in others:
        to.sendto(f"{{own}} {{number}}".encode(), (other, 9))
"""

RECEIVER = """
import socket
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind(("", 9))
while True: print(here.recv(99).decode(), flush=True)
"""

NODES = ("a", "b", "c", "r")

RUN = "run:\n" + "".join(
    f"  - {{on: {node}, name: {node}-hears, exec: {json.dumps([str(PYTHON), '-c', RECEIVER])}, background: true}}\n"
    f"  - {{on: {node}, name: {node}-sends, exec: "
    f"{json.dumps([str(PYTHON), '-c', SENDER, node, *(other for other in NODES if other != node)])}}}\n"
    for node in NODES
)

LAB = f"""
name: partitions
time: {{drive: event}}
nodes: {{a: {{}}, b: {{}}, c: {{}}, r: {{kind: router}}, sw: {{kind: switch}}}}
links: [a -- sw, b -- sw, sw -- r, {{endpoints: [r, c], delay: 20ms}}]
{RUN}
  - {{on: a, name: filters, exec: [sh, -c, "tc qdisc show dev eth0; tc filter show dev eth0 egress; tc filter show dev eth0 ingress"], start: 2300ms}}
faults:
  - {{name: sides, at: 500ms, for: 250ms, partition: [[a, c], [b]]}}
  - {{name: one-way, at: 1s, for: 250ms, partition: {{from: [a], to: [c]}}}}
  - {{name: alone, after: one-way.end, wait: 250ms, for: 250ms, partition: {{isolate: r}}}}
  - {{name: both, at: 1900ms, for: 200ms, partition: [[a], [b]]}}
  - {{name: together, at: 2s, for: 200ms, partition: [[a], [b, c]]}}
"""

CUT = {
    (0.5, 0.75): {("a", "b"), ("b", "a"), ("c", "b"), ("b", "c")},
    (1.0, 1.25): {("a", "c")},
    (1.5, 1.75): {pair for other in ("a", "b", "c") for pair in (("r", other), (other, "r"))},
    (1.9, 2.2): {("a", "b"), ("b", "a")},
    (2.0, 2.2): {("a", "c"), ("c", "a")},
}
"""Who does not get what from whom, and when."""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def heard(outcome: Outcome, sender: str, receiver: str) -> set[int]:
    """The numbers of those packets that got from one to the other."""
    lines = (line.split() for line in outcome.stdout(receiver, f"{receiver}-hears").splitlines())
    return {int(number) for name, number in lines if name == sender}


@pytest.mark.parametrize(("sender", "receiver"), list(itertools.permutations(NODES, 2)))
def test_exactly_what_is_cut_is_lost_both_what_is_sent_and_what_would_arrive_meanwhile(
    outcome: Outcome, sender: str, receiver: str
) -> None:
    delay = 0.02 if "c" in (sender, receiver) else 0
    cut = [times for times, pairs in CUT.items() if (sender, receiver) in pairs]
    missing = set(range(10, 235)) - heard(outcome, sender, receiver)
    # What leaves or arrives at the very instant may be on either side of it.
    numbers = [range(round((begin_s - delay) / STEP_S) + 1, round(end_s / STEP_S)) for begin_s, end_s in cut]
    edges = {at for one in numbers for at in (one.start - 1, one.stop)}
    # What is on the way when the receiver is stopped never arrives.
    edges |= {number for number in range(10, 235) if number * STEP_S + delay > 2.28}
    assert {number for one in numbers for number in one} - missing == set()
    assert missing - {number for one in numbers for number in one} <= edges


def test_begin_and_end_are_events_at_their_instants_that_say_who_is_apart(outcome: Outcome) -> None:
    seen = [
        (event["kind"], event["what"], round(event["t_ns"] / 1e9, 4)) for event in outcome.events if "fault" in event
    ]
    assert seen[:6] == [
        ("began", "partition a, c | b", 0.5),
        ("undone", "partition a, c | b", 0.75),
        ("began", "partition a to c", 1.0),
        ("undone", "partition a to c", 1.25),
        ("began", "partition r | a, b, c", 1.5),
        ("undone", "partition r | a, b, c", 1.75),
    ]


def test_no_filter_is_left(outcome: Outcome) -> None:
    left_over = outcome.stdout("a", "filters")
    assert "noqueue" in left_over
    assert "bpf" not in left_over


def test_runs_with_partitions_repeat_to_the_byte(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)


def test_a_partition_holds_for_ipv6_too_and_between_guests(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: six\ntime: {drive: event}\nguests: 2\nnodes: {a: {}, b: {}}\n"
        "links: [{endpoints: [a, b], delay: 10ms}]\naddressing: {ipv6: 'fd00::/48'}\n"
        "run:\n"
        "  - {on: a, name: global, exec: ping -6 -i 0.2 -c 10 -W 0.05 b, expect_exit: any}\n"
        "  - {on: a, name: local, exec: ping -6 -i 0.2 -c 10 -W 0.05 'fe80::ff:fe01:0%eth0', expect_exit: any}\n"
        "  - {on: b, name: addresses, exec: ip -6 address show dev eth0}\n"
        "faults: [{at: 500ms, for: 1s, partition: [[a], [b]]}]\n"
    )
    for name in ("global", "local"):
        lines = outcome.stdout("a", name).splitlines()
        answered = [int(line.partition("icmp_seq=")[2].split()[0]) for line in lines if "time=" in line]
        assert answered == [1, 2, 3, 9, 10], (name, outcome.stdout("b", "addresses"))
