"""How late timers may be in a lab, from what its links promise. `dilaton.measure.verdict` says why these bounds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dilaton.plan.links import ETHERNET_HEADER_BYTES
from dilaton.plan.model import Node

DELAY_SHARE_MAX = 0.01
"""Of the smallest delay."""

FRAMES_MAX = 1.0
"""What they take on the fastest link."""


@dataclass(frozen=True)
class Network:
    """What the plan asks for that lateness can spoil; None where the lab has no such link.

    Attributes:
        delay_ns_min: The smallest delay of a direction of a link, with `delay_link`, which has it.
        frame_ns_min: What a full frame takes on the fastest link with a rate, with `frame_link`.
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


def network_of(nodes: Iterable[Node], guest: str | None = None) -> Network:
    """What lateness can spoil of the links of these nodes; with the name of a guest, lateness in that one."""
    delays, frames, offloaded = [], [], []
    for node in nodes:
        if guest not in (None, node.guest):
            continue
        for interface in node.interfaces:
            name = f"{node.name}:{interface.name}"
            egress = interface.egress
            if interface.delay_ns:
                delays.append((interface.delay_ns, name))
            if egress.rate_bit_per_s:
                bits = (interface.mtu + ETHERNET_HEADER_BYTES) * 8
                frames.append((bits * 1e9 / egress.rate_bit_per_s, name))
            if interface.offload and (egress.qdiscs or egress.drops):
                offloaded.append((name, interface.mtu))
    delay, frame = min(delays, default=(None, "")), min(frames, default=(None, ""))
    return Network(delay[0], delay[1], frame[0], frame[1], tuple(offloaded))
