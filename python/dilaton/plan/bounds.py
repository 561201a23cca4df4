"""How late timers may be in a lab, from what its links promise. `dilaton.measure.verdict` says why these bounds."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from dilaton.plan.links import ETHERNET_HEADER_BYTES
from dilaton.plan.model import LinkChange, Node, Plan
from dilaton.plan.queues import Egress

DELAY_SHARE_MAX = 0.01
"""Of the smallest delay."""

FRAMES_MAX = 1.0
"""What they take on the fastest link."""


@dataclass(frozen=True)
class Network:
    """What the plan asks for that lateness can spoil; None where the lab has no such link.

    Attributes:
        delay_ns_min: The smallest delay that a direction of a link ever has, with `delay_link`, which has it.
        frame_ns_min: What a full frame takes at the highest rate that a link ever has, with `frame_link`.
        offloaded: Interfaces with segmentation offload that do something to packets, each with its MTU.
    """

    delay_ns_min: int | None = None
    delay_link: str = ""
    frame_ns_min: float | None = None
    frame_link: str = ""
    offloaded: tuple[tuple[str, int], ...] = ()

    @property
    def late_ns_max(self) -> float | None:
        """What one timer in a hundred may be later than; None when lateness spoils nothing."""
        delay = None if self.delay_ns_min is None else self.delay_ns_min * DELAY_SHARE_MAX
        frame = None if self.frame_ns_min is None else self.frame_ns_min * FRAMES_MAX
        return min((bound for bound in (delay, frame) if bound is not None), default=None)


def network_of(plan: Plan, guest: str | None = None) -> Network:
    """What lateness can spoil of the links of a plan; with the name of a guest, lateness in that one."""
    return promised(plan.nodes, plan.changes, guest)


def promised(nodes: Iterable[Node], changes: Iterable[LinkChange], guest: str | None = None) -> Network:
    """As `network_of`, of links between these nodes that become what these changes say."""
    later: dict[tuple[str, str], list[Egress]] = defaultdict(list)
    for end in (end for change in changes for end in change.ends):
        later[end.node, end.interface].append(end.egress)
    delays: list[tuple[int, str]] = []
    frames: list[tuple[float, str]] = []
    offloaded: list[tuple[str, int]] = []
    for node in nodes:
        if guest not in (None, node.guest):
            continue
        for interface in node.interfaces:
            name = f"{node.name}:{interface.name}"
            states = [interface.egress, *later[node.name, interface.name]]
            delays += [(delay_ns, name) for one in states if (delay_ns := one.delay_ns + interface.wire_delay_ns)]
            bits = (interface.mtu + ETHERNET_HEADER_BYTES) * 8
            frames += [(bits * 1e9 / rate, name) for one in states if (rate := one.rate_bit_per_s)]
            if interface.offload and any(one.qdiscs or one.drops for one in states):
                offloaded.append((name, interface.mtu))
    delay, frame = min(delays, default=(None, "")), min(frames, default=(None, ""))
    return Network(delay[0], delay[1], frame[0], frame[1], tuple(offloaded))
