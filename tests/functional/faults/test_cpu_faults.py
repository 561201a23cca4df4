"""The CPU of a node is as slow as it is told for as long as it is told, and others do not notice."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path
from statistics import median

import pytest

import dilaton
from dilaton.run.control.errors import ControlError
from tests.conftest import PYTHON, Outcome, RunLab

WORKER = """
import time
begins, end = [], time.monotonic() + 3.8
while (now := time.monotonic()) < end:
    begins.append(now)
    for _ in range(2000): pass
print(*begins)
"""
"""Does the same piece of work again and again, and says when it began each."""

SERVER = """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
    server.bind(("", 7))
    print("bound", flush=True)
    while True:
        data, client = server.recvfrom(100)
        for _ in range(4000): pass
        server.sendto(data, client)
"""

CLIENT = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
    client.connect(("a", 7))
    zero = time.monotonic()
    for number in range(200):
        time.sleep(max(0, zero + number * 0.02 - time.monotonic()))
        sent = time.monotonic()
        client.send(b"x")
        client.recv(100)
        print(sent, time.monotonic() - sent, flush=True)
"""
"""A question every 20 ms, and how long its answer took."""

USUAL, SLOW = 0.5, 0.05
"""Cores of the host."""

PIECE_S = 0.01
"""What a piece of work takes on the slow CPU, at most: about 2 ms on a host of 2023."""


def python(program: str) -> str:
    return json.dumps([str(PYTHON), "-I", "-S", "-c", program])


LAB = f"""
name: slow-cpu
time: {{tdf: 4}}
nodes: {{a: {{cpu: {USUAL}}}, b: {{cpu: {USUAL}}}}}
links: [{{endpoints: [a, b], delay: 1ms}}]
run:
  - {{on: a, name: slowed, exec: {python(WORKER)}}}
  - {{on: b, name: other, exec: {python(WORKER)}}}
faults: [{{name: slow, at: 1s, for: 2s, cpu: {{node: a, to: {SLOW}}}}}]
"""

ANSWERS = f"""
name: slow-answers
time: {{tdf: 4}}
nodes: {{a: {{cpu: {USUAL}}}, b: {{}}}}
links: [{{endpoints: [a, b], delay: 1ms}}]
run:
  - {{on: a, name: server, background: true, ready: {{output: bound}}, exec: {python(SERVER)}}}
  - {{on: b, name: client, after: server, exec: {python(CLIENT)}}}
faults: [{{name: slow, after: client.begin, wait: 1s, for: 2s, cpu: {{node: a, to: {SLOW}}}}}]
"""


def slow_s(shares: dict[str, float]) -> float:
    """For how long a CPU was slow of those that were busy: what they have done in that time is missing."""
    return (USUAL * shares["busy_s"] - shares["charged_s"]) / (USUAL - SLOW)


def pieces(outcome: Outcome, node: str, process: str) -> list[float]:
    return [float(word) for word in outcome.stdout(node, process).split()]


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """Two nodes that compute all the time, of which one has a slow CPU for two seconds."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def test_a_node_gets_the_speed_that_is_told_for_as_long_as_is_told(outcome: Outcome) -> None:
    """A program that only computes keeps its CPU busy all its life, so what it was charged for says how fast that was."""
    shares = outcome.record["fidelity"]["shares"]
    lives_s = sum(
        outcome.instant_s("exited", name) - outcome.instant_s("started", name) for name in ("slowed", "other")
    )
    assert lives_s == pytest.approx(shares["busy_s"], rel=0.03)
    assert slow_s(shares) == pytest.approx(2, abs=2 * PIECE_S)


def test_its_programs_see_that_from_the_begin_to_the_end_and_others_do_not(outcome: Outcome) -> None:
    begins, others = pieces(outcome, "a", "slowed"), pieces(outcome, "b", "other")
    took = [later - earlier for earlier, later in pairwise(begins)]
    # Nine in a row: a busy host makes a single one slow at times.
    slow = [n for n in range(4, len(took) - 4) if median(took[n - 4 : n + 5]) > 3 * median(took[:1000])]
    begin, end = begins[slow[0]], begins[slow[-1] + 1]
    assert end - begin == pytest.approx(2, abs=2 * PIECE_S)

    def done(which: list[float], first: float, last: float) -> int:
        return sum(first <= instant < last for instant in which)

    # What the other one does meanwhile costs it the contents of caches: on the slow CPU a piece is up to an eighth more work.
    assert done(begins, begin, end) / done(others, begin, end) == pytest.approx(SLOW / USUAL, rel=0.25)
    for first, last in ((begin - 0.6, begin), (end, begins[-1])):
        assert done(begins, first, last) / done(others, first, last) == pytest.approx(1, rel=0.1)


def test_begin_and_end_are_events_as_late_as_timers_were_at_most(outcome: Outcome) -> None:
    seen = [(event["kind"], event["what"], event["t_ns"]) for event in outcome.events if "fault" in event]
    assert [(kind, what) for kind, what, _ in seen] == [("began", "cpu a to 0.05"), ("undone", "cpu a to 0.05")]
    late_ns = outcome.record["fidelity"]["lateness_us"]["max"] * 1e3 + 1e6
    assert all(0 <= t_ns - due_ns < late_ns for (_, _, t_ns), due_ns in zip(seen, (1e9, 3e9), strict=True))


def test_another_node_sees_that_in_the_answers_it_gets(run_lab: RunLab) -> None:
    outcome = run_lab(ANSWERS)
    assert outcome.status == 0, outcome.terminal
    rows = [tuple(map(float, line.split())) for line in outcome.stdout("b", "client").splitlines()]
    usual = median(took for _, took in rows[:40])
    slow = [
        sent
        for number, (sent, took) in enumerate(rows)
        if median(one for _, one in rows[max(0, number - 2) : number + 3]) > 1.5 * usual
    ]
    assert slow[-1] - slow[0] == pytest.approx(2, abs=0.1)
    both_ways = 0.002
    during = median(took for sent, took in rows if slow[0] < sent < slow[-1])
    assert (during - both_ways) / (usual - both_ways) == pytest.approx(USUAL / SLOW, rel=0.35)


def test_programs_that_come_later_are_on_the_slow_cpu_and_it_stays_so_without_an_end(run_lab: RunLab) -> None:
    program = "for _ in range(300_000): pass"
    lab = f"""
name: slow-from-the-start
time: {{tdf: 4}}
nodes: {{a: {{cpu: {USUAL}}}, b: {{}}}}
run: [{{on: a, name: late, start: 500ms, exec: {python(program)}}}]
faults: [{{name: slow, at: 0s, cpu: {{node: a, to: {SLOW}}}}}]
"""
    outcome = run_lab(lab)
    assert outcome.status == 0, outcome.terminal
    shares = outcome.record["fidelity"]["shares"]
    assert shares["charged_s"] == pytest.approx(SLOW * shares["busy_s"], rel=1e-6)
    lives_s = outcome.instant_s("exited", "late") - outcome.instant_s("started", "late")
    assert lives_s == pytest.approx(shares["busy_s"], rel=0.03)
    assert outcome.events[-1]["kind"] == "undone"


def test_a_slow_cpu_by_hand(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(LAB.partition("faults:")[0])
    with dilaton.start(lab, out=tmp_path / "run", hold_at=1) as run:
        run.fault({"cpu": {"node": "a", "to": SLOW}, "for": "1s"})
        with pytest.raises(ControlError, match="cpu: the CPU of a is slow already by hand1"):
            run.fault({"cpu": {"node": "a", "to": 0.1}})
        run.release()
        outcome = run.wait()
    shares = outcome.record.fidelity.shares
    assert slow_s({"busy_s": shares.busy_s, "charged_s": shares.charged_s}) == pytest.approx(1, abs=2 * PIECE_S)
