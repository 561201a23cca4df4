"""A disk that is broken for a while is so from the begin of the fault to its end, and as before afterwards."""

from __future__ import annotations

import json
from typing import NamedTuple

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.time.test_repeatable import left

PROBE = """
import errno, mmap, os, time
disk = os.open("/dev/vda", os.O_RDWR | os.O_DIRECT)
block = mmap.mmap(-1, 4096)
block[:] = b"x" * 4096
os.pwritev(disk, [block], 0)
while True:
    for operation in ("read", "write"):
        begin = time.time()
        try:
            if operation == "read":
                os.preadv(disk, [block], 0)
                wrong = sum(byte ^ 120 for byte in set(block[:])).bit_count()
                result = "done" if not wrong else f"wrong{wrong}"
            else:
                os.pwritev(disk, [block], 1 << 20)
                result = "done"
        except OSError as error:
            result = errno.errorcode[error.errno]
        print(begin - 1767225600, time.time() - 1767225600, operation, result, flush=True)
    time.sleep(0.02)
"""

LAB = f"""
name: broken-disk
time: {{drive: event}}
nodes:
  a: {{disk: {{fixed: {{read_latency: 1ms, write_latency: 1ms}}, size: 16MB, mount: none}}}}
  b: {{disk: {{fixed: {{read_latency: 1ms, write_latency: 1ms}}, size: 16MB, mount: none}}}}
links: [{{endpoints: [a, b], delay: 1ms}}]
run:
  - {{on: a, name: probe, background: true, exec: [{PYTHON}, -c, {json.dumps(PROBE)}]}}
  - {{on: b, name: healthy, background: true, exec: [{PYTHON}, -c, {json.dumps(PROBE)}]}}
stop_after: 7s
faults:
  - {{at: 500ms, for: 500ms, disk: {{node: a, errors: 50%}}}}
  - {{at: 1500ms, for: 500ms, disk: {{node: a, delay: 5ms}}}}
  - {{at: 2500ms, for: 1s, disk: {{node: a, stall: 500ms}}}}
  - {{at: 4s, for: 500ms, disk: {{node: a, read_only: true}}}}
  - {{at: 5s, for: 500ms, disk: {{node: a, full: true}}}}
  - {{at: 6s, for: 500ms, disk: {{node: a, corrupt: 100%}}}}
"""

TOOK_S = 0.0015
"""What a request takes at most where nothing is wrong: a millisecond of the disk, and a few system calls."""


class Asked(NamedTuple):
    """A request of the probe."""

    begin_s: float
    end_s: float
    operation: str
    result: str


def asked(outcome: Outcome, node: str, process: str) -> list[Asked]:
    lines = [line.split() for line in outcome.stdout(node, process).splitlines()]
    return [Asked(float(begin), float(end), operation, result) for begin, end, operation, result in lines]


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """The one run that most tests look at."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    assert outcome.record["verdict"]["level"] == "valid", outcome.terminal
    return outcome


@pytest.fixture(scope="module")
def probed(outcome: Outcome) -> list[Asked]:
    """All requests to the broken disk."""
    return asked(outcome, "a", "probe")


def during(probed: list[Asked], begin_s: float, end_s: float) -> list[Asked]:
    found = [one for one in probed if begin_s <= one.begin_s < end_s]
    assert len(found) > 20
    return found


def test_so_many_requests_fail_and_no_other(probed: list[Asked]) -> None:
    found = during(probed, 0.5, 1)
    assert 0.25 < sum(one.result == "EIO" for one in found) / len(found) < 0.75
    assert {one.operation for one in found if one.result == "EIO"} == {"read", "write"}


def test_each_request_is_delayed(probed: list[Asked]) -> None:
    assert all(0.006 <= one.end_s - one.begin_s < 0.005 + TOOK_S for one in during(probed, 1.5, 2))


def test_a_stalled_disk_answers_when_the_stall_is_over(probed: list[Asked]) -> None:
    last = max((one for one in probed if one.begin_s < 2.53), key=lambda one: one.begin_s)
    assert last.end_s == pytest.approx(3, abs=0.0005)
    assert all(one.end_s - one.begin_s < TOOK_S for one in during(probed, 3.0001, 3.5))


@pytest.mark.parametrize(("begin_s", "error"), [(4, "EIO"), (5, "ENOSPC")])
def test_what_is_written_is_refused_and_what_is_read_is_not(probed: list[Asked], begin_s: float, error: str) -> None:
    found = during(probed, begin_s, begin_s + 0.5)
    assert {(one.operation, one.result) for one in found} == {("read", "done"), ("write", error)}


def test_one_bit_of_each_read_is_wrong(probed: list[Asked]) -> None:
    found = during(probed, 6, 6.5)
    assert {(one.operation, one.result) for one in found} == {("read", "wrong1"), ("write", "done")}


def test_before_and_afterwards_and_on_other_disks_nothing_is_wrong(outcome: Outcome, probed: list[Asked]) -> None:
    broken = [(0.5, 1.0), (1.5, 2.0), (2.5, 3.0), (4.0, 4.5), (5.0, 5.5), (6.0, 6.5)]
    well = [one for one in probed if not any(begin - TOOK_S <= one.begin_s < end for begin, end in broken)]
    assert len(well) > 100
    for one in (*well, *asked(outcome, "b", "healthy")):
        assert one.result == "done" and one.end_s - one.begin_s < TOOK_S, one


def test_begin_and_end_are_events_at_their_instants(outcome: Outcome) -> None:
    seen = [(event["kind"], event["what"], round(event["t_ns"] / 1e6)) for event in outcome.events if "fault" in event]
    assert seen[:4] == [
        ("began", "disk a errors 50%", 500),
        ("undone", "disk a errors 50%", 1000),
        ("began", "disk a delay 5ms", 1500),
        ("undone", "disk a delay 5ms", 2000),
    ]
    assert len(seen) == 12


def test_what_fails_follows_from_the_seed(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)
