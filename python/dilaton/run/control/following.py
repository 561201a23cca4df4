"""A capture that somebody follows while it is made: what is executed in the node for it.

It is the agent's program, process 1 of every node, that captures (`crates/agent/src/measure/following.rs`). So packets,
instants and files are as those of a lab's own captures, and nothing has to be installed in the node.
"""

from __future__ import annotations

import json
from collections.abc import Sequence

from dilaton.lab.parts.measure import SNAPLEN_MAX, SNAPLEN_MIN
from dilaton.lab.text.filters import FilterError, compile_filter
from dilaton.plan.model import Capture, Instruction, Node, Plan

PROGRAM = ("/proc/1/exe", "capture")


class NotCapturedError(ValueError):
    """No such capture can be made; the message says why."""


def place_of(plan: Plan, text: str) -> tuple[Node, str]:
    """The node and the interface of `NODE` or `NODE:INTERFACE`; the interface may be left out where there is one.

    Raises:
        NotCapturedError: there is no such node or interface, or several could be meant.
    """
    name, _, interface = text.partition(":")
    node = next((node for node in plan.nodes if node.name == name), None)
    if node is None:
        raise NotCapturedError(f"{name}: no such node; there are {', '.join(each.name for each in plan.nodes)}")
    names = [each.name for each in node.interfaces] + ["lo"]
    if not interface and len(names) == 2:
        return node, names[0]
    if interface not in names:
        which = ", ".join(f"{name}:{each}" for each in names)
        said = f"{text}: no such interface" if interface else f"{name}: which interface?"
        raise NotCapturedError(f"{said} There are {which}" if said.endswith("?") else f"{said}; there are {which}")
    return node, interface


def capture_command(
    plan: Plan, place: str, date_ns: int, pcap_filter: str | None, snaplen: int, count: int | None
) -> tuple[str, Sequence[str]]:
    """Where, and what is to be executed there.

    Args:
        plan: Of the run.
        place: `NODE` or `NODE:INTERFACE`.
        date_ns: The date at the run's virtual 0.
        pcap_filter: As for tcpdump; None: every packet.
        snaplen: Bytes of a packet that are kept at most, `SNAPLEN_MIN` to `SNAPLEN_MAX`.
        count: After how many packets it ends, above 0; None: never.

    Raises:
        NotCapturedError: something of it cannot be.
    """
    node, interface = place_of(plan, place)
    if not SNAPLEN_MIN <= snaplen <= SNAPLEN_MAX:
        raise NotCapturedError(f"snaplen: {snaplen} is not from {SNAPLEN_MIN} to {SNAPLEN_MAX}")
    if count is not None and count < 1:
        raise NotCapturedError(f"count: {count} is not above 0")
    try:
        program = [Instruction(each) for each in compile_filter(pcap_filter, snaplen)]
    except FilterError as error:
        raise NotCapturedError(str(error)) from error
    capture = Capture(
        node=node.name, interface=interface, filter=pcap_filter, snaplen=snaplen, program=program, file=""
    )
    guest = next(guest for guest in plan.guests if guest.name == node.guest)
    wanted = {
        "capture": capture.model_dump(),
        "count": count,
        "date_ns": date_ns,
        "clock_rate": guest.clock_rate.model_dump(),
    }
    return node.name, (*PROGRAM, json.dumps(wanted))
