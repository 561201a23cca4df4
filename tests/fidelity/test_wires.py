"""Frames between guests come when they are due, whatever else their kernels do."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from dilaton.measure.lateness import share_later
from tests.conftest import ROOT, Outcome, RunLab

COUNT, BYTES = 3000, 1400
FRAME_NS = (BYTES + 42) * 8 * 4
"""On the link; the sender is ahead of it throughout, so that frames come one after the other."""
LATE_NS = 50_000
NEAR = 100
"""Datagrams among which one at least is taken to be on time."""

LAB = """
name: wires
time: TIME
guests: GUESTS
nodes: {a: {guest: a}, b: {guest: b}}
links: [{endpoints: [a, b], rate: 250Mbit, delay: 5ms, queue: {limit: 20000}}]
MEASURE
run:
  - {on: b, name: sink, exec: FLOOD receive COUNT, ready: {output: ready}}
  - {on: a, name: source, exec: FLOOD send b COUNT BYTES, after: sink}
"""


@pytest.fixture(scope="module")
def flood() -> Path:
    """The program that sends and receives; in Python it would be slower than the link. Nodes do not see /tmp."""
    made = ROOT / "target" / "flood"
    subprocess.run(["cc", "-O2", "-o", made, Path(__file__).parent / "flood.c"], check=True)
    return made


def lab(time: str, guests: str, capture: bool, flood: Path) -> str:
    measure = 'measure: {capture: ["b:eth0"]}' if capture else ""
    words = {
        "TIME": time,
        "GUESTS": guests,
        "MEASURE": measure,
        "FLOOD": str(flood),
        "COUNT": str(COUNT),
        "BYTES": str(BYTES),
    }
    text = LAB
    for word, value in words.items():
        text = text.replace(word, value)
    return text


def lateness_ns(outcome: Outcome) -> list[int]:
    """By how much each datagram came later than that of those around it which came soonest, at the pace of the link."""
    instants = [int(line) for line in outcome.stdout("b", "sink").splitlines()[1:]]
    ahead: Sequence[int] = [instant - number * FRAME_NS for number, instant in enumerate(instants)]
    return [at - min(ahead[max(0, number - NEAR) : number + NEAR]) for number, at in enumerate(ahead)]


@pytest.mark.parametrize("capture", [False, True], ids=["alone", "captured"])
@pytest.mark.parametrize(("tdf", "share"), [(3, 0.03), (5, 0.01), (33, 0.001)])
def test_frames_are_not_late_where_guests_wait_for_each_other_nor_where_packets_are_captured(
    run_lab: RunLab, flood: Path, tdf: int, share: float, capture: bool
) -> None:
    # However slow the host is, the sender is fast enough.
    outcome = run_lab(lab(f"{{tdf: {tdf}}}", "{a: {tdf: 100}, b: {}}", capture, flood))
    late = lateness_ns(outcome)
    assert len(late) == COUNT
    assert sum(ns > LATE_NS for ns in late) <= share * COUNT
    frames = outcome.record["fidelity"]["frames"]
    assert frames["received"] >= COUNT
    assert share_later(frames["lateness_ns_counts"], LATE_NS) <= share


def test_frames_come_at_their_instants_on_the_event_drive(run_lab: RunLab, flood: Path) -> None:
    outcome = run_lab(lab("{drive: event}", "{a: {}, b: {}}", True, flood))
    late = lateness_ns(outcome)
    assert len(late) == COUNT and max(late) < 5_000
    frames = outcome.record["fidelity"]["frames"]
    assert frames["lateness_us"]["max"] < 5
    assert frames["received"] == COUNT, "what the agents tell each other is not counted"
