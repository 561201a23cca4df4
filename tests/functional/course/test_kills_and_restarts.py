"""Processes that a fault kills die at its instant, and those that are to be started again are, at theirs."""

from __future__ import annotations

import itertools

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.course.test_pauses import DATE_S, TICKER
from tests.functional.time.test_repeatable import left

LAB = f"""
name: kills
time: {{drive: event}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], rate: 10Mbit, delay: 1ms}}]
run:
  - {{on: a, name: ticker, exec: [{PYTHON}, -c, "{TICKER}"], background: true}}
  - {{on: a, name: kept, exec: [sh, -c, "date +%s.%N; exec sleep 60"], background: true, restart: always}}
  - {{on: b, name: fails, exec: [sh, -c, "date +%s.%N; test $(wc -l < /tmp/tries) -ge 3 || (echo >> /tmp/tries; exit 3)"], after: made, restart: on-failure}}
  - {{on: b, name: made, exec: [touch, /tmp/tries]}}
  - {{on: b, name: afterwards, exec: "true", after: killed.end}}
  - {{on: b, name: long, exec: sleep 3}}
faults:
  - {{name: killed, at: 500ms, kill: a/ticker, restart: 250ms}}
  - {{at: 2s, kill: a/kept}}
  - {{at: 2500ms, kill: a/ticker}}
"""

STEP_S = 0.001
"""What a few system calls and a wake-up take on the event drive, at most."""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def instants(outcome: Outcome, node: str, process: str) -> list[float]:
    return [float(line) for line in outcome.stdout(node, process).split()]


def test_a_killed_process_is_gone_and_its_outputs_go_on_when_it_is_started_again(outcome: Outcome) -> None:
    ticks = instants(outcome, "a", "ticker")
    before, between, after = ([t for t in ticks if low <= t < high] for low, high in ((0, 0.5), (0.5, 0.75), (0.75, 9)))
    assert len(before) >= 8
    assert between == []
    assert 0.75 + 0.05 < after[0] < 0.75 + 0.1
    assert after[-1] < 2.5
    assert outcome.process("ticker")["restarts"] == 1
    assert outcome.process("ticker")["signal"] == 9


def test_a_process_may_wait_for_its_start(outcome: Outcome) -> None:
    assert 0.75 <= outcome.instant_s("started", "afterwards") < 0.75 + STEP_S


def test_what_is_always_to_run_is_started_again_after_its_delay(outcome: Outcome) -> None:
    first, second = (instant - DATE_S for instant in instants(outcome, "a", "kept"))
    assert first < 0.1
    assert 2.1 <= second < 2.1 + 10 * STEP_S
    assert outcome.process("kept")["restarts"] == 1


def test_what_fails_is_tried_again_later_each_time(outcome: Outcome) -> None:
    tries = instants(outcome, "b", "fails")
    pauses = [later - earlier for earlier, later in itertools.pairwise(tries)]
    assert pauses == [pytest.approx(pause, abs=20 * STEP_S) for pause in (0.1, 0.2, 0.4)]
    assert outcome.process("fails")["exit"] == 0
    assert outcome.process("fails")["restarts"] == 3


def test_kills_repeat_to_the_byte(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)
