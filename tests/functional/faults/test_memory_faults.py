"""A node has less memory for a while: who has or takes more is ended, from the begin of the fault to its end."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dilaton
from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.time.test_repeatable import left

DATE_S = 1767225600
"""At virtual 0 on the event drive: 1 January 2026."""

LATE_S = 0.0005
"""What ending a program takes on the event drive, at most."""

LOCK = "import ctypes; ctypes.CDLL(None).mlockall(3)"
"""What a program has is locked: else a kernel may do nothing but drop and read again the pages of Python itself."""

PROBE = f"""
import os, time
{LOCK}
while True:
    child = os.fork()
    if child == 0:
        {LOCK}
        hoard = bytearray(20_000_000)
        os._exit(0)
    begin = time.time()
    _, status = os.waitpid(child, 0)
    print(begin - {DATE_S}, time.time() - {DATE_S}, os.waitstatus_to_exitcode(status), flush=True)
    time.sleep(0.1)
"""
"""Has a child take 20 MB every 100 ms, and says when that was and how it ended."""


def hoard(megabytes: int, seconds: int = 60) -> str:
    return python(f"import time; hoard = bytearray({megabytes}_000_000); time.sleep({seconds})")


def python(program: str) -> str:
    return json.dumps([str(PYTHON), "-I", "-S", "-c", program])


LAB = f"""
name: less-memory
time: {{drive: event}}
nodes: {{a: {{memory: 256MiB}}, b: {{memory: 128MiB}}, c: {{}}}}
links: [{{endpoints: [a, b, c], delay: 1ms}}]
run:
  - {{on: a, name: taken, background: true, exec: {python(PROBE)}}}
  - {{on: c, name: other, background: true, exec: {python(PROBE)}}}
  - {{on: b, name: large, expect_exit: any, exec: {hoard(60)}}}
  - {{on: b, name: smaller, expect_exit: any, exec: {hoard(30)}}}
  - {{on: b, name: small, background: true, exec: sleep 60}}
  - {{on: b, name: after, start: 3100ms, exec: {hoard(60, 0)}}}
  - {{on: c, name: ping, exec: ping -D -i 0.02 -c 150 b}}
stop_after: 4s
faults:
  - {{name: less, at: 1s, for: 1s, memory: {{node: a, leave: 24MiB}}}}
  - {{name: short, at: 2s, for: 1s, memory: {{node: b, leave: 56MiB}}}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    return outcome


def probed(outcome: Outcome, node: str, process: str) -> list[tuple[float, float, int]]:
    """From when to when a program took 20 MB, and how it ended."""
    lines = map(str.split, outcome.stdout(node, process).splitlines())
    return [(float(begin), float(end), int(status)) for begin, end, status in lines]


def test_who_takes_more_than_is_left_is_ended_from_the_begin_to_the_end(outcome: Outcome) -> None:
    seen = probed(outcome, "a", "taken")
    wrong = [one for one in seen if (one[2] == -9) != (1 <= one[0] < 2) and not (one[0] < 1 <= one[1])]
    assert (len(seen) > 30, wrong) == (True, [])
    assert sum(status == -9 for _, _, status in seen) >= 8
    assert {status for _, _, status in probed(outcome, "c", "other")} == {0}


def test_the_largest_program_of_those_that_have_more_is_ended_at_that_instant(outcome: Outcome) -> None:
    assert outcome.process("large")["signal"] == 9
    assert 2 <= outcome.instant_s("exited", "large") < 2 + LATE_S
    # What is left is enough for these.
    assert all(outcome.instant_s("exited", name) == pytest.approx(4, abs=LATE_S) for name in ("smaller", "small"))


def test_the_node_has_its_own_limit_afterwards_and_its_kernel_answered_all_the_time(outcome: Outcome) -> None:
    assert outcome.process("after")["exit"] == 0
    assert outcome.process("ping")["result"]["loss"] == 0


def test_begin_and_end_are_events_at_their_instants_and_no_short_memory_is_told(outcome: Outcome) -> None:
    seen = [(one["kind"], one["what"], one["t_ns"]) for one in outcome.events if "fault" in one]
    assert [(kind, what, round(t_ns / 1e6, 2)) for kind, what, t_ns in seen] == [
        ("began", "memory a leave 24MiB", 1000),
        ("undone", "memory a leave 24MiB", 2000),
        ("began", "memory b leave 56MiB", 2000),
        ("undone", "memory b leave 56MiB", 3000),
    ]
    assert [event for event in outcome.events if event["kind"] == "memory-short"] == []


def test_what_is_ended_follows_from_the_seed(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)


def test_less_memory_by_hand_where_there_is_too_little_to_begin_with_and_files_stay(tmp_path: Path) -> None:
    """Files in memory are nobody's whom a kernel could end: all programs end, and the node is full."""
    lab = tmp_path / "lab.yaml"
    write = python("open('/tmp/file', 'wb').write(bytes(20_000_000)); import time; time.sleep(60)")
    again = python("open('/tmp/other', 'wb').write(bytes(1_000_000))")
    lab.write_text(
        f"name: files\ntime: {{drive: event}}\nnodes: {{a: {{}}}}\nstop_after: 4s\n"
        f"run: [{{on: a, name: writer, restart: on-failure, background: true, exec: {write}}}, "
        f"{{on: a, name: late, start: 3500ms, exec: {again}}}]\n"
    )
    with dilaton.start(lab, out=tmp_path / "run", hold_at=1) as run:
        less = run.fault({"memory": {"node": "a", "leave": "8MiB"}})
        run.until(3)
        less.undo()
        run.release()
        outcome = run.wait()
    events = outcome.events
    ended = events[(events.kind == "exited") & (events.process == "writer")]
    assert ended.iloc[0].signal == 9
    assert ended.iloc[0].t_s == pytest.approx(1, abs=LATE_S)
    assert events[(events.kind == "exited") & (events.process == "late")].iloc[0].status == 0
