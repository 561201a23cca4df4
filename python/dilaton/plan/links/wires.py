"""Links between guests: what of them the wire does, and what stays with the interface that sends.

A wire delays every frame by the same time, exactly. So it takes over the part of a direction's delay that every packet
has in every state of the link; whatever varies, and rate, loss and queue, stay where they are for links within a guest.
The order of the two, first the queue and then the wire, is the other way round than there (`disciplines.py`), and
makes no difference for the same reason. What is left of the delay is in front of the queue, as before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from dilaton.lab.parts.links import Link
from dilaton.plan.guests.devices import MTU_DEFAULT
from dilaton.plan.links.changes import State
from dilaton.plan.links.queues import ORPHANING_RATE_BIT_PER_S, Egress, Netem
from dilaton.plan.model import Wire, WireEnd

TABLE_REACH = 4
"""The furthest that a distribution table goes, in jitters: 32768/8192 (net/sched/sch_netem.c)."""

RING_BYTES_SPARE = 4 << 20
"""Room beside what a direction can have under way as planned; a change while the run goes on may use some of it."""
RING_BYTES_LEFT = 1 << 20
"""So much of that it leaves."""
RING_BYTES_FAST = 64 << 20
"""Room for a direction without a rate, as for a burst of any sender."""

RING_SHARE = 1.25
"""A ring is so much larger than what the link holds, for the headers of records and for frames of less than the largest
size."""

CONTROL_DELAY_NS = 10_000_000
"""The delay of the wires between agents. As long as that takes, guests without links to each other may run apart."""

CONTROL_RING_BYTES = 1 << 20


def lookahead_ns(link: Link, states: Sequence[State], side: int) -> int:
    """The delay that every packet has that leaves a link's end `side`, in every state, or what the lab says of it."""
    least_ns = min(constant_ns(state.egress[side]) for state in states)
    return least_ns if link.lookahead_ns is None else min(least_ns, link.lookahead_ns)


def constant_ns(egress: Egress) -> int:
    """The delay that every packet of a direction has; 0 for none."""
    # What follows a trace leaves at instants of its own; what is reordered is not delayed at all.
    netem = egress.qdiscs[0] if egress.qdiscs and egress.delivery is None else None
    if not isinstance(netem, Netem) or netem.reorder:
        return 0
    reach = TABLE_REACH if netem.table else 1
    return max(0, netem.delay_ns - reach * netem.jitter_ns)


def beside_wire(state: State, delays_ns: tuple[int, int]) -> State:
    """What is left of a link's state when a wire does these delays."""
    a, b = (_without(egress, delay_ns) for egress, delay_ns in zip(state.egress, delays_ns, strict=True))
    return replace(state, egress=(a, b))


def _without(egress: Egress, delay_ns: int) -> Egress:
    if not delay_ns:
        return egress
    netem, *others = egress.qdiscs
    assert isinstance(netem, Netem), "a direction with a constant delay begins with a netem"
    left_ns = netem.delay_ns - delay_ns
    hides = bool(others) and not left_ns and not netem.jitter_ns
    rate = ORPHANING_RATE_BIT_PER_S if hides else netem.rate_bit_per_s
    first = netem.model_copy(update={"delay_ns": left_ns, "rate_bit_per_s": rate})
    return egress.model_copy(update={"qdiscs": [first, *others]})


def wires(
    guests: Sequence[str],
    of_node: Mapping[str, str],
    links: Sequence[Link],
    before: Sequence[Sequence[State]],
    delays_ns: Mapping[int, tuple[int, int]],
    spare_bytes: int,
) -> list[Wire]:
    """The wires of a lab: those of links between guests, then those of the agents, a star around the first guest.

    Args:
        guests: In their order.
        of_node: The guest of each node.
        links: All links.
        before: What each of them is, before its wire took over its part.
        delays_ns: Of the wires, by the positions of their links.
        spare_bytes: Room in their rings beside what they can have under way.
    """
    counts = dict.fromkeys(guests, 0)

    def end(guest: str) -> WireEnd:
        counts[guest] += 1
        return WireEnd(guest=guest, device=f"vec{counts[guest] - 1}")

    found = []
    for number, delays in delays_ns.items():
        link = links[number]
        a, b = (end(of_node[each.node]) for each in link.endpoints)
        a_to_b, b_to_a = (under_way_bytes(before[number], side, delays) + spare_bytes for side in (0, 1))
        found.append(Wire(link=link.name, ends=(a, b), delays_ns=delays, mtu=link.mtu, ring_bytes=(a_to_b, b_to_a)))
    hub, *spokes = guests
    for spoke in spokes:
        delays = (CONTROL_DELAY_NS, CONTROL_DELAY_NS)
        sizes = (CONTROL_RING_BYTES, CONTROL_RING_BYTES)
        ends = (end(hub), end(spoke))
        found.append(Wire(link=None, ends=ends, delays_ns=delays, mtu=MTU_DEFAULT, ring_bytes=sizes))
    return found


def under_way_bytes(states: Sequence[State], side: int, delays_ns: tuple[int, int]) -> int:
    """What can be on the wire, as the receiver may be behind the sender by the delay of the way back."""
    rates = [state.egress[side].rate_bit_per_s for state in states]
    if None in rates:
        return RING_BYTES_FAST
    fastest = max(rate for rate in rates if rate is not None)
    return int(fastest * sum(delays_ns) / 8e9 * RING_SHARE)
