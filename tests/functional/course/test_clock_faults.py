"""The date of a node with a kernel of its own jumps at exactly the instant that is asked for, and only that."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from dilaton.lab import LabError, loads
from dilaton.plan.compile import compile as planned
from tests.conftest import PYTHON, Outcome, RunLab

DATE_S = 1767225600
"""At virtual 0 on the event drive: 1 January 2026."""

READER = (
    "import time\\nbegin = time.monotonic()\\n"
    f"for _ in range(100): time.sleep(0.04); print(time.monotonic() - begin, time.time() - {DATE_S}, flush=True)"
)

LAB = f"""
name: clocks
time: {{drive: event}}
nodes: {{a: {{guest: own}}, b: {{}}, c: {{}}}}
links: [{{endpoints: [a, b], rate: 10Mbit, delay: 1ms}}, {{endpoints: [b, c], delay: 1ms}}]
run:
  - {{on: a, name: jumps, exec: [{PYTHON}, -c, "{READER}"]}}
  - {{on: b, name: other, exec: [{PYTHON}, -c, "{READER}"]}}
faults:
  - {{name: ahead, at: 1s, for: 1s, clock: {{node: a, jump: +1500ms}}}}
  - {{name: behind, at: 3s, clock: {{node: a, back: 1s}}}}
"""

STEP_S = 0.001
"""What a few system calls and a wake-up take on the event drive, at most."""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that the tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0
    return outcome


def readings(outcome: Outcome, node: str, process: str) -> list[tuple[float, float]]:
    """What the monotonic clock of a program said, and the date at that moment."""
    lines = outcome.stdout(node, process).splitlines()
    return [(float(monotonic), float(date)) for monotonic, date in map(str.split, lines)]


def test_the_date_jumps_at_its_instants_and_is_what_it_would_be_at_the_end(outcome: Outcome) -> None:
    seen = readings(outcome, "a", "jumps")
    ahead = seen[0][1] - seen[0][0]
    for monotonic, date in seen:
        instant = monotonic + ahead
        wanted = 1.5 if 1 <= instant < 2 else -1.0 if instant >= 3 else 0.0
        assert date - instant == pytest.approx(wanted, abs=2e-5), instant


def test_nothing_else_hears_of_it(outcome: Outcome) -> None:
    for node, process in (("a", "jumps"), ("b", "other")):
        steps = [later - earlier for (earlier, _), (later, _) in pairwise(readings(outcome, node, process))]
        assert all(0.04 <= step < 0.04 + STEP_S for step in steps)
    dates = [date for _, date in readings(outcome, "b", "other")]
    assert all(later - earlier < 0.04 + STEP_S for earlier, later in pairwise(dates))


def test_one_that_shares_its_kernel_is_refused_with_the_way_out(tmp_path: Path) -> None:
    lab = loads(LAB.replace("node: a, back: 1s", "node: b, back: 1s"), str(tmp_path / "lab.yaml"))
    with pytest.raises(LabError, match=r"clock.node: b shares its kernel, and so its date, with c; .* b: \{guest: b\}"):
        planned(lab)
