"""Which guest holds which node.

Nodes that name a guest are in it. The others are divided as `guests:` says: one guest for all of them (packed), one for
each (per node), or a number of parts. A part should work alone for as long as possible and all should work alike much,
so parts are cut where METIS finds the cheapest cut of a graph: the weight of a node is the work that is expected in it,
that of a link the traffic it may carry and how soon a frame arrives, since a guest may run ahead of its neighbours only
by the delay of the links between them (`crates/virtual-time` explains why).

Hence a link without delay, or with one that may be nothing, keeps its ends in one guest; and no division by number
cuts a link whose delay is below `LOOKAHEAD_NS_MIN`, with which guests would wait for each other more than they work.
Who asks for such a cut in so many words, by a guest for each node or by naming guests, has it as long as there is a
delay.

What a node writes to a volume the others that have it see at once, and between guests nothing may be seen sooner than
by the delay of a wire. So nodes that share a volume stay in one guest as well.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dilaton.lab.errors import field_name
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import Link
from dilaton.lab.pins import pinned
from dilaton.lab.text import units
from dilaton.lab.union import Union
from dilaton.plan.errors import lab_error

LOOKAHEAD_NS_LEAST = 2
"""The least delay of a link between guests: who stands at a horizon a nanosecond ahead never comes to it."""

MTU_MAX = 65_521
"""Of a link between guests: a frame of the guest's device (`vector_kern.c`) has 65,535 bytes, its header included."""

LOOKAHEAD_NS_MIN = 100_000
"""The least delay of a link that is cut to divide a lab by number; with less, guests wait for each other more than they
work."""

PROCESS_WEIGHT = 8
"""The work of a process in a node, that of forwarding on one of its links being 1."""

TRAFFIC_WEIGHT_MAX = 1000
"""The weight of the fastest link of a lab; others weigh in proportion to their rates."""

METIS_SEED = 1


@dataclass(frozen=True)
class Placement:
    """The guests of a lab by name, in their order, the guest of each node, and the machines of guests that have one."""

    guests: tuple[str, ...]
    of_node: Mapping[str, str]
    machines: Mapping[str, int]


def place(lab: Lab, lookaheads_ns: Sequence[int], cores: int) -> Placement:
    """Places the nodes of a lab.

    Args:
        lab: Its links have two ends.
        lookaheads_ns: For each link the least delay that it ever has in either direction.
        cores: Of the host, for `guests: auto`.

    Raises:
        LabError: What is asked for would cut a link without delay, or is more than can be divided.
    """
    parts = _inseparable(lab, lookaheads_ns)
    named = _named(lab, parts)
    rest = [part for part in parts if part[0] not in named]
    names = (name for number in itertools.count() if (name := f"guest{number}") not in named.values())
    if lab.split == "per-node":
        others = {node: node for node in itertools.chain(*rest)}
        taken = set(others) & set(named.values())
        if taken:
            raise lab_error("guests", f"per-node: a guest is already named {min(taken)}; give it another name")
    else:
        wanted = cores if lab.split == "auto" else int(lab.split)
        if rest and wanted > len(rest) and lab.split != "auto":
            raise lab_error("guests", _too_many(wanted, len(rest)))
        numbers = _divide(lab, rest, lookaheads_ns, min(wanted, len(rest)))
        of_number = dict(zip(sorted(set(numbers)), names, strict=False))
        others = {node: of_number[number] for part, number in zip(rest, numbers, strict=True) for node in part}
    of_node = {node: named.get(node) or others[node] for node in lab.nodes}
    return Placement(tuple(dict.fromkeys(of_node.values())), of_node, _machines(lab, of_node))


def _machines(lab: Lab, of_node: Mapping[str, str]) -> dict[str, int]:
    """The machines of guests with a node that has one."""
    first: dict[str, tuple[str, int]] = {}
    for node, machine in pinned(lab).items():
        guest = of_node[node]
        other, there = first.setdefault(guest, (node, machine))
        if there != machine:
            raise lab_error(
                "placement",
                f"{other} on machine {there} and {node} on machine {machine} are both in {guest}, and a guest is on "
                f"one machine; name guests on nodes, as {node}: {{guest: x}}, or write guests: per-node",
            )
    return {guest: machine for guest, (_, machine) in first.items()}


def _too_many(wanted: int, possible: int) -> str:
    shortest = units.format_duration(LOOKAHEAD_NS_MIN)
    what = "1 part" if possible == 1 else f"{possible} parts"
    return (
        f"{wanted}: the lab falls into only {what}, since links with a delay that is, or may become, less than "
        f"{shortest} keep their ends in one guest, and so do volumes the nodes that share them; write a smaller "
        "number, guests: auto, or name guests on nodes"
    )


def _inseparable(lab: Lab, lookaheads_ns: Sequence[int]) -> list[list[str]]:
    """The nodes in groups that have to be in one guest each, in the order of the lab."""
    lookahead_ns_min = LOOKAHEAD_NS_LEAST if lab.split == "per-node" else LOOKAHEAD_NS_MIN
    union = Union()
    for link, lookahead_ns in zip(lab.links, lookaheads_ns, strict=True):
        a, b = (end.node for end in link.endpoints)
        first, second = lab.nodes[a].guest, lab.nodes[b].guest
        by_hand = first is not None and second is not None
        why_not = _why_not_cut(link, lookahead_ns)
        if by_hand and first != second and why_not:
            field = field_name(("nodes", a, "guest"))
            raise lab_error(field, f"link {link.name}: its ends are in the guests {first} and {second}, but {why_not}")
        if not by_hand and (why_not or lookahead_ns < lookahead_ns_min):
            if lab.split == "per-node":
                raise lab_error("guests", f"link {link.name}: its ends are apart, but {why_not}")
            union.join(a, b)
    if lab.split != "per-node":
        for one, other in _sharers(lab):
            union.join(one, other)
    groups: dict[object, list[str]] = {}
    for name in lab.nodes:
        groups.setdefault(union.root(name), []).append(name)
    return list(groups.values())


def _sharers(lab: Lab) -> Iterator[tuple[str, str]]:
    """Pairs of nodes that share a volume, unless each names a guest."""
    first: dict[str, str] = {}
    for name, node in lab.nodes.items():
        for volume in node.volumes.values():
            other = first.setdefault(volume, name)
            if node.guest is None or lab.nodes[other].guest is None:
                yield other, name


def _why_not_cut(link: Link, lookahead_ns: int) -> str | None:
    """Why the ends of a link cannot be in two guests, and what helps; None: they can."""
    if link.mtu > MTU_MAX:
        return f"between guests packets have at most {MTU_MAX} bytes; lower its mtu, or put its ends into one guest"
    if lookahead_ns >= LOOKAHEAD_NS_LEAST:
        return None
    least = units.format_duration(LOOKAHEAD_NS_LEAST)
    return (
        f"guests run ahead of each other by the delay between them, and its own is, or may become, less than {least}; "
        "give it a delay both ways, without reordering or a trace, or put its ends into one guest"
    )


def _named(lab: Lab, parts: Sequence[Sequence[str]]) -> dict[str, str]:
    """The guests of the nodes that name one, and of those that cannot be apart from them."""
    found: dict[str, str] = {}
    for part in parts:
        names = {name: guest for name in part if (guest := lab.nodes[name].guest) is not None}
        first, one = next(iter(names.items()), ("", ""))
        if apart := [(node, guest) for node, guest in names.items() if guest != one]:
            second, other = apart[0]
            message = (
                f"{other}: {second} cannot be apart from {first}, which is in guest {one}: links without delay, or a "
                f"short one and a node that names no guest, or a volume are between them"
            )
            raise lab_error(field_name(("nodes", second, "guest")), message)
        for guest in set(names.values()):
            found |= dict.fromkeys(part, guest)
    return found


def _divide(lab: Lab, parts: Sequence[Sequence[str]], lookaheads_ns: Sequence[int], count: int) -> list[int]:
    """The number of the guest of each part, `count` guests in all."""
    if count <= 1:
        return [0] * len(parts)
    if count == len(parts):
        return list(range(count))
    # METIS takes a moment to import, and most labs do not need it.
    import pymetis

    of_node = {node: number for number, part in enumerate(parts) for node in part}
    weights: list[dict[int, int]] = [{} for _ in parts]
    for a, b, weight in _edges(lab, of_node, lookaheads_ns):
        for here, there in ((a, b), (b, a)):
            weights[here][there] = weights[here].get(there, 0) + weight
    starts = [0, *itertools.accumulate(len(each) for each in weights)]
    _, numbers = pymetis.part_graph(
        count,
        pymetis.CSRAdjacency(starts, [other for each in weights for other in each]),
        vweights=[sum(_work(lab, node) for node in part) for part in parts],
        eweights=[weight for each in weights for weight in each.values()],
        options=pymetis.Options(seed=METIS_SEED),
    )
    order = {number: place for place, number in enumerate(dict.fromkeys(numbers))}
    return [order[number] for number in numbers]


def _edges(lab: Lab, of_node: Mapping[str, int], lookaheads_ns: Sequence[int]) -> Iterator[tuple[int, int, int]]:
    """Pairs of parts with a link between them, and what it costs to cut that."""
    rates = [max(link.direction(way).rate_bit_per_s or 0 for way in ("a_to_b", "b_to_a")) for link in lab.links]
    fastest = max(rates, default=0)
    longest_ns = max(lookaheads_ns, default=0)
    for link, rate, lookahead_ns in zip(lab.links, rates, lookaheads_ns, strict=True):
        a, b = (of_node.get(end.node) for end in link.endpoints)
        if a is None or b is None or a == b:
            continue
        traffic = TRAFFIC_WEIGHT_MAX if not rate else 1 + (TRAFFIC_WEIGHT_MAX - 1) * rate // fastest
        # As many windows as the shorter delay has more of them.
        yield a, b, traffic * max(1, longest_ns // max(lookahead_ns, LOOKAHEAD_NS_MIN))


def _work(lab: Lab, node: str) -> int:
    """The work that is expected in a node."""
    links = sum(end.node == node for link in lab.links for end in link.endpoints)
    return 1 + links + PROCESS_WEIGHT * sum(process.on == node for process in lab.run)
