"""A disk whose cache is volatile loses at a crash what was written and not flushed, and nothing else."""

from __future__ import annotations

import json

import pytest

from tests.conftest import PYTHON, Outcome, RunLab
from tests.functional.time.test_repeatable import left

PAGES, PAGE_BYTES = 64, 4096

WRITER = f"""
import mmap, os, sys, time
disk = os.open("/dev/vda", os.O_RDWR | os.O_DIRECT)
block = mmap.mmap(-1, {PAGES * PAGE_BYTES})
def show():
    os.preadv(disk, [block], 0)
    print(chr(block[0]), flush=True)
    os.preadv(disk, [block], 1 << 20)
    print(bytes(block[::{PAGE_BYTES}]).replace(b"\\0", b".").decode(), flush=True)
def write(offset, letter):
    block[:] = letter * len(block)
    os.pwritev(disk, [block], offset)
show()
letter = bytes([ord("a") + int(time.time() - 1767225600)])
write(0, letter)
os.fsync(disk)
write(1 << 20, letter.upper())
print("wrote", letter.decode(), flush=True)
time.sleep(99)
"""

DISK = "fixed: {read_latency: 100us, write_latency: 100us}, size: 16MB, mount: none"

LAB = f"""
name: caches
time: {{drive: event}}
nodes:
  kept: {{disk: {{{DISK}}}}}
  volatile: {{disk: {{{DISK}, cache: volatile}}}}
  torn: {{disk: {{{DISK}, cache: torn}}}}
links: [{{endpoints: [kept, volatile, torn], delay: 1ms}}]
run:
  - {{on: kept, name: kept, background: true, exec: [{PYTHON}, -c, {json.dumps(WRITER)}]}}
  - {{on: volatile, name: volatile, background: true, exec: [{PYTHON}, -c, {json.dumps(WRITER)}]}}
  - {{on: torn, name: torn, background: true, exec: [{PYTHON}, -c, {json.dumps(WRITER)}]}}
stop_after: 5s
faults:
  - {{at: 1s, for: 1s, crash: "*"}}
  - {{at: 3s, for: 1s, stop: "*"}}
"""


@pytest.fixture(scope="module")
def outcome(run_lab_once: RunLab) -> Outcome:
    """A crash after the first writes (a), a shutdown after the second (c)."""
    outcome = run_lab_once(LAB)
    assert outcome.status == 0, outcome.terminal
    assert outcome.record["verdict"]["level"] == "valid", outcome.terminal
    return outcome


def seen(outcome: Outcome, node: str) -> list[tuple[str, str]]:
    """What was found on a disk at each start of its program: where all was flushed, and where nothing was."""
    lines = [line for line in outcome.stdout(node, node).splitlines() if not line.startswith("wrote")]
    assert len(lines) == 6, lines
    return list(zip(lines[::2], lines[1::2], strict=True))


def test_a_disk_keeps_what_it_has_taken_unless_its_cache_is_volatile(outcome: Outcome) -> None:
    assert seen(outcome, "kept")[1:] == [("a", "A" * PAGES), ("c", "C" * PAGES)]


def test_a_crash_takes_what_was_not_flushed_and_a_shutdown_does_not(outcome: Outcome) -> None:
    assert seen(outcome, "volatile")[1:] == [("a", "." * PAGES), ("c", "C" * PAGES)]


def test_a_torn_cache_loses_some_pages(outcome: Outcome) -> None:
    (_, torn), after = seen(outcome, "torn")[1:]
    assert set(torn) == {"A", "."}
    assert PAGES / 4 < torn.count("A") < PAGES * 3 / 4
    assert after == ("c", "C" * PAGES)


def test_what_is_torn_follows_from_the_seed(outcome: Outcome, run_lab: RunLab) -> None:
    assert left(run_lab(LAB)) == left(outcome)
    other = run_lab(LAB.replace("name: caches", "name: caches\nseed: 7"))
    assert seen(other, "torn")[1][1] != seen(outcome, "torn")[1][1]
