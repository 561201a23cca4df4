"""What the wires between the guests of a run have carried: held against what they promise, and kept for the record."""

from __future__ import annotations

from dilaton.host.wire import Wire
from dilaton.plan.model import Plan
from dilaton.run.model import WaitRecord


def broken_promise(plan: Plan, wire: Wire) -> str | None:
    """None when every frame of the run has arrived at its instant and in its order, or is still under way.

    Otherwise what has not: the results of the run are then worth nothing.
    """
    for number in range(len(wire.ways)):
        seen = wire.traffic(number)
        if seen.late or seen.disordered or seen.lost:
            planned = plan.wires[number // 2]
            return (
                f"the wire of {planned.link or 'the agents'} broke its promise: {seen.late} frames were late, "
                f"{seen.disordered} out of order, {seen.lost} lost, of {seen.sent}; this is a fault of Dilaton's"
            )
    return None


def waits_of(wire: Wire) -> list[WaitRecord]:
    """What it cost each guest to keep to the others' time."""
    return [_waits(wire, guest) for guest in range(wire.guests)]


def _waits(wire: Wire, guest: int) -> WaitRecord:
    counted = wire.counters(guest)
    traffic = [(way, wire.traffic(number)) for number, way in enumerate(wire.ways)]
    return WaitRecord(
        windows=counted["windows"],
        waits=counted["waits"],
        waited_host_s=counted["waited_host_ns"] / 1e9,
        agreements=counted["agreements"],
        wakes=counted["wakes"],
        frames_sent=sum(seen.sent for way, seen in traffic if way.sender == guest),
        frames_received=sum(seen.received for way, seen in traffic if way.receiver == guest),
    )
