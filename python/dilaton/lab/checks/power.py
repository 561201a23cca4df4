"""What is wrong with faults because of nodes that are off at their instants, as far as these are known beforehand."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import NamedTuple

from dilaton.lab.errors import Finding
from dilaton.lab.faults.fault import Fault
from dilaton.lab.model import Lab
from dilaton.lab.text import units


class _Off(NamedTuple):
    """A node is off from an instant on, and until another one: its fault's end, or that of an earlier start."""

    fault: int
    begin_ns: int
    end_ns: float
    is_started: bool


def check_power(lab: Lab) -> Iterator[Finding]:
    """Yields faults that want something of a node that is off at that instant, or start one that is on."""
    off = {name: list(_times_off(lab, name)) for name in lab.nodes}
    for number, fault in enumerate(lab.faults):
        if fault.mistake is not None:
            continue
        subject = fault.pause or fault.kill or fault.clock or fault.cpu or fault.memory or fault.load
        node = fault.node or (subject.node if subject is not None else None)
        if node is None or node not in off or fault.at_ns is None:
            continue
        instant = units.format_duration(fault.at_ns)
        by = next((time for time in off[node] if _is_off(time, number, fault)), None)
        if fault.start is None and by is not None:
            other = lab.faults[by.fault]
            yield Finding(
                ("faults", fault.place, fault.action),
                f"{node} is off at {instant}, by {other.name}, faults[{other.place}]; let this begin before that, or "
                f"when {node} is on again",
            )
        elif fault.start is not None and by is None and not _may_be_off(lab, node):
            yield Finding(
                ("faults", fault.place, "start"),
                f"{node} is on at {instant}; a node goes off by crash: or stop: without for:",
            )


def _is_off(time: _Off, number: int, fault: Fault) -> bool:
    """Whether a node is off when a fault of it begins. Of two at one instant the later one in the list finds it off."""
    assert fault.at_ns is not None, "only known instants are looked at"
    is_later = (time.begin_ns, time.fault) < (fault.at_ns, number)
    # What a start ends has not ended before.
    return is_later and (
        fault.at_ns < time.end_ns or (fault.start is not None and time.is_started and fault.at_ns == time.end_ns)
    )


def _times_off(lab: Lab, node: str) -> Iterator[_Off]:
    starts = [fault.at_ns for fault in lab.faults if fault.start == node]
    for number, fault in enumerate(lab.faults):
        # One that a start may end at any time is not known.
        if node not in (fault.crash, fault.stop) or fault.at_ns is None or None in starts:
            continue
        end_ns = math.inf if fault.for_ns is None else fault.at_ns + fault.for_ns
        started_ns = min((start for start in starts if start is not None and start > fault.at_ns), default=math.inf)
        yield _Off(number, fault.at_ns, min(end_ns, started_ns), started_ns < end_ns)


def _may_be_off(lab: Lab, node: str) -> bool:
    """Whether it goes off or on at an instant that is not known."""
    return any(node in (fault.crash, fault.stop, fault.start) and fault.at_ns is None for fault in lab.faults)
