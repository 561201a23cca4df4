"""What the wires between the guests of a run have carried: held against what they promise, and kept for the record."""

from __future__ import annotations

from dilaton.host.counters import Wires
from dilaton.plan.model import Plan
from dilaton.run.record.model import WaitRecord


def broken_promise(plan: Plan, wires: Wires, *, is_over: bool) -> str | None:
    """None when every frame of the run has arrived at its instant and in its order, or is still under way.

    Otherwise what has not: the results of the run are then worth nothing. Which frames are lost is known once it is
    over: before, what a guest sends while others are read is not seen to arrive.
    """
    for number, seen in enumerate(wires.ways):
        lost = seen.lost if is_over else 0
        if seen.late or seen.disordered or lost:
            planned = plan.wires[number // 2]
            return (
                f"the wire of {planned.link or 'the agents'} broke its promise: {seen.late} frames were late, "
                f"{seen.disordered} out of order, {lost} lost, of {seen.sent}; this is a fault of Dilaton's, "
                "unless a program took over the kernel of a guest"
            )
    return None


def waits_of(wires: Wires) -> list[WaitRecord]:
    """What it cost each guest to keep to the others' time."""
    return [
        WaitRecord(
            windows=spent.windows,
            waits=spent.waits,
            waited_host_s=spent.waited_host_ns / 1e9,
            agreements=spent.agreements,
            wakes=spent.wakes,
            frames_sent=sum(way.sent for way in wires.ways if way.sender == guest),
            frames_received=sum(way.received for way in wires.ways if way.receiver == guest),
        )
        for guest, spent in enumerate(wires.waits)
    ]
