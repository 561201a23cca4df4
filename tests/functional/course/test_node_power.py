"""A node that crashes is gone for all others at exactly that instant, and is back as a machine that has booted."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.time.test_repeatable import left

DATE_S = 1767225600
"""At virtual 0 on the event drive: 1 January 2026."""

SERVER = """
import os, socket, time
print(os.path.exists("/var/tmp/kept"), os.path.exists("/var/tmp/lost"), os.path.exists("/run/memory"), flush=True)
os.close(os.open("/run/memory", os.O_CREAT))
kept = os.open("/var/tmp/kept", os.O_CREAT | os.O_WRONLY)
os.write(kept, b"1")
os.fsync(kept)
with open("/var/tmp/lost", "w") as lost:
    lost.write("2")
server = socket.create_server(("", 80))
while True:
    connection, _ = server.accept()
    try:
        while True:
            connection.send(b"tick")
            time.sleep(0.02)
    except OSError:
        pass
"""

CLIENT = f"""
import socket, time
peer = socket.create_connection(("b", 80))
peer.settimeout(1)
try:
    while peer.recv(100):
        last = time.time() - {DATE_S}
    print("closed")
except TimeoutError:
    print("silent since", last)
try:
    while True:
        peer.send(b"x")
        peer.recv(100)
except OSError as error:
    print(error.strerror, time.time() - {DATE_S})
"""

LAB = f"""
name: power
time: {{drive: event}}
nodes:
  a: {{}}
  b: {{disk: {{fixed: {{read_latency: 100us, write_latency: 100us}}, size: 256MB}}}}
links: [{{endpoints: [a, b], rate: 100Mbit, delay: 1ms}}]
run:
  - {{on: a, name: ping, exec: ping -D -i 0.05 -c 40 b, expect_exit: any}}
  - {{on: b, name: server, background: true, ready: {{tcp: 80}}, exec: [{PYTHON}, -c, {json.dumps(SERVER)}]}}
  - {{on: b, name: once, exec: sleep 9}}
  - {{on: b, name: late, start: 900ms, exec: "true"}}
  - {{on: a, name: client, after: server, exec: [{PYTHON}, -c, {json.dumps(CLIENT)}]}}
  - {{on: a, name: afterwards, exec: "true", after: dark.end}}
faults: [{{name: dark, at: 800ms, for: 500ms, crash: b}}]
"""

STEP_S = 0.005
"""What a few system calls and a boot take on the event drive, at most."""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def replies_s(outcome: Outcome) -> list[float]:
    """When ping on node a heard node b."""
    stamps = [line[1:].split("]")[0] for line in outcome.stdout("a", "ping").splitlines() if line.startswith("[")]
    return [float(stamp) - DATE_S for stamp in stamps]


def test_others_hear_it_until_exactly_the_crash_and_again_from_its_boot_on(outcome: Outcome) -> None:
    heard = replies_s(outcome)
    before = max(instant for instant in heard if instant < 1)
    after = min(instant for instant in heard if instant > 1)
    # Pings leave every 50 ms, and are answered 2 ms later.
    assert 0.8 - 0.052 - STEP_S <= before <= 0.8
    assert 1.3 <= after <= 1.3 + 0.052 + STEP_S


def test_connections_are_not_closed_but_unknown_afterwards(outcome: Outcome) -> None:
    silent, unknown = outcome.stdout("a", "client").splitlines()
    assert 0.78 <= float(silent.removeprefix("silent since ")) <= 0.801
    assert unknown.startswith("Connection reset by peer"), unknown
    assert float(unknown.split()[-1]) > 1.78


def test_memory_and_what_was_not_flushed_are_lost(outcome: Outcome) -> None:
    assert outcome.stdout("b", "server").splitlines() == ["False False False", "True False False"]


def test_what_boots_with_the_node_starts_again_and_nothing_else_that_ran(outcome: Outcome) -> None:
    started = [
        (event["process"], round(event["t_ns"] / 1e9, 1))
        for event in outcome.events
        if event["kind"] == "started" and event.get("node") == "b"
    ]
    assert started == [("server", 0.0), ("once", 0.0), ("server", 1.3), ("late", 1.3)]


def test_begin_and_end_are_events_at_their_instants(outcome: Outcome) -> None:
    seen = [(event["kind"], event["what"], round(event["t_ns"] / 1e6)) for event in outcome.events if "fault" in event]
    assert seen == [("began", "crash b", 800), ("undone", "crash b", 1300)]
    assert 1.3 <= outcome.instant_s("started", "afterwards") < 1.3 + STEP_S


def test_runs_with_a_crash_repeat_to_the_byte(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)


def test_a_node_that_is_stopped_ends_in_order_and_boots_when_it_is_started(run_lab: RunLab) -> None:
    polite = "trap 'echo goodbye; exit' TERM; echo hello; while :; do sleep 0.01; done"
    lab = f"""
name: order
time: {{drive: event}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], delay: 1ms}}]
run:
  - {{on: b, name: polite, background: true, exec: [sh, -c, "{polite}"]}}
  - {{on: b, name: stubborn, background: true, boot: false, exec: [sh, -c, "trap '' TERM; while :; do sleep 0.01; done"]}}
  - {{on: a, exec: ping -D -i 0.1 -c 50 b, expect_exit: any}}
faults: [{{at: 1s, stop: b}}, {{at: 3s, start: b}}, {{at: 4s, reboot: b}}]
"""
    outcome = run_lab(lab)
    assert outcome.status == 0, outcome.terminal
    assert outcome.stdout("b", "polite").split() == ["hello", "goodbye"] * 2 + ["hello", "goodbye"]
    ends = [
        (event["process"], round(event["t_ns"] / 1e9, 1))
        for event in outcome.events
        if event["kind"] == "exited" and event["process"] in ("polite", "stubborn")
    ]
    # The stubborn one is killed a second later, and only then the node is off.
    assert ends[:3] == [("polite", 1.0), ("stubborn", 2.0), ("polite", 4.0)]
    heard = replies_s(outcome)
    # Pings leave every 0.1 s or a little later, so a reboot costs one or none.
    assert 2 - 0.115 <= max(instant for instant in heard if instant < 2.5) <= 2 + STEP_S
    assert 3 <= min(instant for instant in heard if instant > 2.5) <= 3.115
    assert all(later - earlier < 0.25 for earlier, later in pairwise(heard) if earlier > 3)


def test_a_node_with_a_kernel_of_its_own_crashes_and_boots_at_the_same_instants(run_lab: RunLab) -> None:
    lab = """
name: own
time: {drive: event}
guests: per-node
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], rate: 100Mbit, delay: 1ms}]
run:
  - {on: a, name: ping, exec: ping -D -i 0.05 -c 30 b, expect_exit: any}
  - {on: b, name: service, background: true, exec: sleep 99}
faults: [{at: 500ms, for: 500ms, crash: b}]
"""
    outcome = run_lab(lab)
    assert outcome.status == 0, outcome.terminal
    heard = replies_s(outcome)
    assert 0.5 - 0.052 - STEP_S <= max(instant for instant in heard if instant < 0.75) <= 0.5
    assert 1.0 <= min(instant for instant in heard if instant > 0.75) <= 1.0 + 0.052 + STEP_S
    assert [event["kind"] for event in outcome.events if event.get("process") == "service"][:3] == [
        "started",
        "exited",
        "started",
    ]
