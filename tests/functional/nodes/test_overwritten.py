"""Memory that guests share with each other and with this machine, written over by a guest whose root took over its kernel."""

from __future__ import annotations

import os
import random
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Literal

import pytest

from dilaton.host.here.memory import clock_page, wire
from dilaton.host.here.memory.layout import WORD
from dilaton.run.control.answers import CLOCK_RELEASE
from dilaton.run.control.requests import Client
from tests.conftest import Outcome, held_run, outcome_of

LAB = """
name: overwritten
time: {tdf: 2}
guests: per-node
nodes: {a: {}, b: {}}
links: [{endpoints: [a, b], delay: 1ms}]
run: [{on: a, name: ping, exec: ping -i .01 -c 100000000 b}]
"""

END_HOST_S = 60.0
"""In which such a run has to end, on a machine that does much else; it takes up to seven seconds by itself."""

HEADER = wire.layout().sections["header"]

Overwrite = Callable[[int], None]
"""Writes over the memory that a descriptor is of."""


def put(fd: int, word: int, value: int) -> None:
    os.pwrite(fd, WORD.pack(value), word * WORD.size)


def get(fd: int, word: int) -> int:
    value: int = WORD.unpack(os.pread(fd, WORD.size, word * WORD.size))[0]
    return value


def take_the_lock(fd: int) -> None:
    put(fd, HEADER.offsets["lock"], 1)


def write_over_all(fd: int) -> None:
    size = os.fstat(fd).st_size
    for begin in range(0, size, 1 << 20):
        os.pwrite(fd, random.Random(begin).randbytes(min(1 << 20, size - begin)), begin)


def ways() -> Iterator[tuple[int, dict[str, int]]]:
    """Where the four ways are in the memory, the agents' among them, in words, and their fields."""
    sections = wire.layout().sections
    line = wire.CACHE_LINE_BYTES // WORD.size
    guests, header = 2, -(-HEADER.words // line) * line
    first = header + guests * sections["member"].words + -(-(guests**2) // line) * line
    for number in range(4):
        yield first + number * sections["way"].words, sections["way"].offsets


def leave_impossible_positions(fd: int) -> None:
    for way, fields in ways():
        put(fd, way + fields["tail"], 3)


def send_short_frames(fd: int) -> None:
    """Frames that are shorter than any header, in good order otherwise."""
    for way, fields in ways():
        head, ring, size, sent = (
            get(fd, way + fields[name]) for name in ("head", "ring_offset", "ring_bytes", "frames_sent")
        )
        place = (ring + head % size) // WORD.size
        put(fd, place, 0)
        put(fd, place + 1, 3 | sent << 32)
        put(fd, way + fields["frames_sent"], sent + 1)
        put(fd, way + fields["head"], head + 32)


def leave_no_line(fd: int) -> None:
    put(fd, clock_page.layout().sections[""].offsets["timeline_drive"], 1 << 60)


@pytest.fixture
def going(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A run of two guests, held at 1 s, and its directory."""
    with held_run(tmp_path, LAB, "1s") as held:
        yield held


def end_of(process: subprocess.Popen[str], out: Path, memory: str, *steps: Overwrite | Literal["release"]) -> Outcome:
    """The end of a run that is let go on, and of which the memory that it shares is written over, one after the other."""
    begin = time.monotonic()
    descriptors = Path(f"/proc/{process.pid}/fd")
    path = next(path for path in descriptors.iterdir() if os.readlink(path).startswith(f"/memfd:{memory}"))
    fd = os.open(path, os.O_RDWR)
    try:
        with Client(out) as client:
            for step in steps:
                if step == "release":
                    client.request(CLOCK_RELEASE)
                else:
                    step(fd)
    finally:
        os.close(fd)
    process.wait(END_HOST_S)
    print(f"ended after {time.monotonic() - begin:.1f} host seconds")
    return outcome_of(process, out)


@pytest.mark.parametrize(
    "overwrite",
    [take_the_lock, write_over_all, leave_impossible_positions],
    ids=["the lock", "everything", "positions"],
)
def test_a_run_whose_wires_are_written_over_ends_as_failed_and_says_why(
    going: tuple[subprocess.Popen[str], Path], overwrite: Overwrite
) -> None:
    outcome = end_of(*going, "dilaton-wire", "release", overwrite)
    assert outcome.status == 1 and "Traceback" not in outcome.terminal
    assert outcome.record["state"] == "failed"
    reasons = ("took over the kernel", "ended by itself", "is full")
    assert any(words in outcome.record["reason"] for words in reasons)


def test_frames_too_short_for_a_driver_reach_none_and_end_the_run(going: tuple[subprocess.Popen[str], Path]) -> None:
    outcome = end_of(*going, "dilaton-wire", send_short_frames, "release")
    assert outcome.status == 1
    assert "out of order" in outcome.record["reason"]
    assert "Call Trace" not in "".join(log.read_text() for log in (outcome.path / "guest").glob("*.log"))


def test_a_run_with_garbage_on_a_clock_page_ends_as_failed_and_says_why(
    going: tuple[subprocess.Popen[str], Path],
) -> None:
    # A clock that runs writes its line anew all the time.
    outcome = end_of(*going, "dilaton-clock", leave_no_line)
    assert outcome.status == 1 and "Traceback" not in outcome.terminal
    assert outcome.record["state"] == "failed" and "the clock page" in outcome.record["reason"]
