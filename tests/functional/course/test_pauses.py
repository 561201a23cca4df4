"""Programs that are paused stand still from exactly the instant that is asked for to exactly its end, and no others do."""

from __future__ import annotations

from itertools import pairwise

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.time.test_repeatable import left

DATE_S = 1767225600
"""At virtual 0 on the event drive: 1 January 2026."""

TICKER = f"import time\\nfor _ in range(60): time.sleep(0.05); print(time.time() - {DATE_S}, flush=True)"

LAB = f"""
name: pauses
time: {{drive: event}}
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], rate: 10Mbit, delay: 1ms}}]
run:
  - {{on: a, name: first, exec: [{PYTHON}, -c, "{TICKER}"], timeout: 60s}}
  - {{on: a, name: second, exec: [{PYTHON}, -c, "{TICKER}"], timeout: 60s}}
  - {{on: b, name: other, exec: [{PYTHON}, -c, "{TICKER}"], timeout: 60s}}
  - {{on: a, name: late, exec: "true", start: 1200ms}}
  - {{on: b, name: afterwards, exec: "true", after: whole.end}}
faults:
  - {{name: one, at: 500ms, for: 250ms, pause: a/first}}
  - {{name: whole, after: one.end, wait: 250ms, for: 500ms, pause: a}}
"""
"""Process `first` is paused from 0.5 to 0.75 s, node a from 1 to 1.5 s."""

STEP_S = 0.001
"""What a few system calls and a wake-up take on the event drive, at most."""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0
    return outcome


def ticks(outcome: Outcome, node: str, process: str) -> list[float]:
    return [float(line) for line in outcome.stdout(node, process).split()]


@pytest.mark.parametrize(
    ("process", "begin_s", "end_s"), [("first", 0.5, 0.75), ("first", 1.0, 1.5), ("second", 1.0, 1.5)]
)
def test_what_is_paused_does_nothing_until_exactly_the_end(
    outcome: Outcome, process: str, begin_s: float, end_s: float
) -> None:
    after = [instant for instant in ticks(outcome, "a", process) if instant > begin_s]
    assert end_s <= after[0] < end_s + STEP_S


def test_others_go_on(outcome: Outcome) -> None:
    assert all(
        later - earlier < 0.05 + STEP_S
        for instants in (ticks(outcome, "b", "other"), [t for t in ticks(outcome, "a", "second") if t < 1.0])
        for earlier, later in pairwise(instants)
    )


def test_a_process_that_starts_in_a_paused_node_waits_for_its_end(outcome: Outcome) -> None:
    assert 1.2 <= outcome.instant_s("started", "late") < 1.2 + STEP_S
    assert outcome.instant_s("exited", "late") >= 1.5


def test_a_process_may_wait_for_the_end_of_a_fault(outcome: Outcome) -> None:
    assert 1.5 <= outcome.instant_s("started", "afterwards") < 1.5 + STEP_S


def test_begin_and_end_are_events_at_their_instants(outcome: Outcome) -> None:
    seen = [
        (event["kind"], event["fault"], event["what"], round(event["t_ns"] / 1e9, 3))
        for event in outcome.events
        if "fault" in event
    ]
    assert seen == [
        ("began", "one", "pause a/first", 0.5),
        ("undone", "one", "pause a/first", 0.75),
        ("began", "whole", "pause a", 1.0),
        ("undone", "whole", "pause a", 1.5),
    ]


def test_paused_runs_repeat_to_the_byte(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)


def test_a_run_that_ends_during_a_pause_lets_programs_end_as_they_do(run_lab: RunLab) -> None:
    lab = """
name: end
time: {drive: event}
nodes: {a: {}}
stop_after: 2s
run:
  - on: a
    name: polite
    background: true
    exec: [sh, -c, "trap 'echo goodbye; exit 5' TERM; while :; do sleep 0.01; done"]
faults: [{at: 1s, pause: a/polite}]
"""
    outcome = run_lab(lab)
    assert outcome.stdout("a", "polite") == "goodbye\n"


def test_a_pause_of_what_does_not_run_fails_the_run_and_says_so(run_lab: RunLab) -> None:
    outcome = run_lab(
        "name: gone\ntime: {drive: event}\nnodes: {a: {}}\n"
        "run: [{on: a, exec: 'true'}, {on: a, exec: sleep 2}]\nfaults: [{name: x, at: 1s, for: 1s, pause: a/true}]\n"
    )
    assert outcome.status == 1
    assert "x was skipped: process true on a is not running" in outcome.terminal
