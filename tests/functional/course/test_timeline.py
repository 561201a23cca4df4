"""What programs wrote, in one sequence of virtual instants with what happened."""

from __future__ import annotations

import re

import pytest

from dilaton.run.loading import load
from tests.conftest import PYTHON, Outcome, RunLab, dilaton
from tests.functional.course.test_pauses import DATE_S

TICKER = f"import time\\nfor _ in range(20): time.sleep(0.05); print(time.time() - {DATE_S}, flush=True)"
COMPLAINER = (
    "import sys, time\\ntime.sleep(0.31); print('bad', file=sys.stderr); sys.stdout.write('half'); time.sleep(0.1)"
)

LAB = f"""
name: timeline
time: {{drive: event}}
guests: 2
nodes: {{a: {{}}, b: {{}}}}
links: [{{endpoints: [a, b], rate: 10Mbit, delay: 1ms}}]
run:
  - {{on: a, name: ticks, exec: [{PYTHON}, -c, "{TICKER}"], timeout: 60s}}
  - {{on: b, name: complains, exec: [{PYTHON}, -c, "{COMPLAINER}"], timeout: 60s}}
faults:
  - {{name: rest, at: 500ms, for: 250ms, pause: a/ticks}}
measure: {{outputs: true}}
"""

LINE = re.compile(r" *([0-9.]+) s  (.*)")

STEP_S = 0.001
"""What a few system calls and a wake-up take on the event drive, at most."""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that the tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0
    return outcome


def timeline(outcome: Outcome, *who: str) -> list[tuple[float, str]]:
    shown = dilaton("logs", outcome.path, *who, "--timeline")
    assert shown.returncode == 0, shown.stderr
    found = [LINE.fullmatch(line) for line in shown.stdout.splitlines()]
    return [(float(match[1]), match[2]) for match in found if match]


def test_every_line_has_the_instant_at_which_it_was_written(outcome: Outcome) -> None:
    written = [(at, float(what.removeprefix("a/ticks | "))) for at, what in timeline(outcome) if "a/ticks | " in what]
    assert len(written) == 20
    # What is shown is rounded to a microsecond.
    assert all(-1e-6 < at - said < STEP_S for at, said in written), written


def test_lines_and_what_happened_are_in_order_and_streams_told_apart(outcome: Outcome) -> None:
    shown = timeline(outcome)
    assert [at for at, _ in shown] == sorted(at for at, _ in shown)
    whats = [what for _, what in shown]
    order = [
        next(place for place, what in enumerate(whats) if re.match(pattern, what))
        for pattern in (
            "b/complains started",
            r"b/complains stderr \| bad",
            "rest .*",
            r"a/ticks \| 0\.[78]",
            "a/ticks exited",
        )
    ]
    assert order == sorted(order)
    assert any(what == "b/complains | half" for what in whats)


def test_who_is_asked_for_is_shown_among_what_happened(outcome: Outcome) -> None:
    whats = [what for _, what in timeline(outcome, "b/complains")]
    assert any(what.startswith("rest ") for what in whats)
    assert [what for what in whats if " | " in what] == ["b/complains stderr | bad", "b/complains | half"]


def test_outputs_are_a_table_whose_cost_is_counted(outcome: Outcome) -> None:
    table = load(outcome.path).outputs
    assert list(table.columns) == ["t_ns", "t_s", "node", "process", "stream", "bytes"]
    assert len(table[table.process == "ticks"]) == 20
    for guest in outcome.path.glob("measure/*/sampler.csv"):
        assert ",outputs," in guest.read_text()
