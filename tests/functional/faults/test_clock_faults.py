"""The date of a node with a kernel of its own jumps at exactly the instant that is asked for, and only that."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import pytest

import dilaton
from dilaton.lab import LabError, loads
from dilaton.plan.compile import compile as planned
from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.time.test_repeatable import left

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

READ_S = 2e-5
"""What comes between two readings of clocks, one after the other, on the event drive, at most."""


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
        assert date - instant == pytest.approx(wanted, abs=READ_S), instant


DRIFT = f"""{LAB.partition("faults:")[0]}
faults:
  - {{name: slow, at: 1s, for: 1s, clock: {{node: a, drift: -500ppm}}}}
  - {{name: fast, at: 3s, clock: {{node: a, drift: 2000ppm}}}}
"""

DRIFT_EVERY_S = 0.01


def test_a_date_that_drifts_does_so_by_exactly_that_every_10_ms_and_alone(run_lab: RunLab) -> None:
    outcome = run_lab(DRIFT)
    assert outcome.status == 0, outcome.terminal
    seen = readings(outcome, "a", "jumps")
    ahead = seen[0][1] - seen[0][0]
    for monotonic, date in seen:
        instant = monotonic + ahead
        begin, each = (1, -5e-6) if 1 <= instant < 2 else (3, 20e-6) if instant >= 3 else (instant, 0.0)
        steps = int((instant - begin) / DRIFT_EVERY_S)
        # Of two clocks that are read one after the other one may be read on the other side of a step.
        assert min(abs(date - instant - each * (steps + more)) for more in (0, 1)) < READ_S, instant
    drifted = seen[-1][1] - seen[-1][0] - ahead
    assert drifted == pytest.approx(2000e-6 * (seen[-1][0] + ahead - 3), abs=20e-6 + READ_S)
    assert all(0.04 <= later[0] - earlier[0] < 0.04 + STEP_S for earlier, later in pairwise(seen))
    faults = [(event["fault"], event["kind"], event["t_ns"]) for event in outcome.events if "fault" in event]
    end_ns = faults[-1][2]
    assert [(name, kind, round(t_ns / 1e6)) for name, kind, t_ns in faults[:-1]] == [
        ("slow", "began", 1000),
        ("slow", "undone", 2000),
        ("fast", "began", 3000),
    ]
    # One without an end lasts until the run is being stopped.
    assert faults[-1][:2] == ("fast", "undone")
    assert end_ns > 1e9 * (seen[-1][0] + ahead)
    assert left(run_lab(DRIFT)) == left(outcome)


def test_a_drift_by_hand_is_undone_to_the_nanosecond(tmp_path: Path) -> None:
    lab = tmp_path / "lab.yaml"
    lab.write_text(LAB.partition("faults:")[0])
    with dilaton.start(lab, out=tmp_path / "run", hold_at=1) as run:
        run.fault({"clock": {"node": "a", "drift": "1000ppm"}, "for": "995ms"})
        run.release()
        outcome = run.wait()
    assert outcome.record.state == "finished"
    rows = [[float(word) for word in line.split()] for line in outcome.output("jumps").splitlines()]
    ahead = rows[0][1] - rows[0][0]
    off = {round(monotonic + ahead, 3): date - monotonic - ahead for monotonic, date in rows}
    assert all(abs(each) < READ_S for instant, each in off.items() if not 1.01 < instant < 1.995)
    assert max(off.values()) == pytest.approx(1000e-6 * 0.99, abs=40e-6 + READ_S)


TELLER = """
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as to:
    for _ in range(100):
        to.sendto(repr(time.time()).encode(), ("a", 9))
        time.sleep(0.04)
"""

HEARER = f"""
import socket, time
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as here:
    here.bind(("", 9))
    while True:
        there = float(here.recv(99))
        print(there - {DATE_S}, time.time() - there, flush=True)
"""


def test_a_drift_goes_on_over_a_boot_and_is_undone_by_the_next_kernel(run_lab: RunLab) -> None:
    lab = f"""
name: drift-and-boot
time: {{drive: event}}
nodes: {{a: {{guest: own}}, b: {{}}}}
links: [{{endpoints: [a, b], delay: 1ms}}]
run:
  - {{on: a, name: hearer, background: true, exec: {json.dumps([str(PYTHON), "-c", HEARER])}}}
  - {{on: b, name: teller, exec: {json.dumps([str(PYTHON), "-c", TELLER])}}}
faults:
  - {{name: fast, at: 1s, for: 2s, clock: {{node: a, drift: 1000ppm}}}}
  - {{at: 1505ms, for: 400ms, crash: a}}
"""
    outcome = run_lab(lab)
    assert outcome.status == 0, outcome.terminal
    heard = readings(outcome, "a", "hearer")
    assert max(later - earlier for (earlier, _), (later, _) in pairwise(heard)) >= 0.4
    # The first is heard as soon as the program is there.
    for instant, ahead in heard[1:]:
        # Steps of 10 us are done up to 10 ms late.
        drifted = 1000e-6 * (instant + 0.001 - 1) if 1 <= instant < 3 - 0.001 else 0.0
        assert -1e-5 - READ_S < ahead - 0.001 - drifted < READ_S, instant


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
