"""Addresses and names: every link has its own /31 (RFC 3021), every interface its Ethernet address.

They depend on positions in the lab alone, so that the same lab always has the same addresses, and a link appended to
it changes no others.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from dilaton.plan.errors import lab_error
from dilaton.plan.model import HostsEntry

NETWORK = 10 << 24
"""10.0.0.0/8 holds all addresses of a lab."""

LINKS_MAX = 1 << 23
NODES_MAX = 1 << 24
INTERFACES_MAX = 1 << 16
"""Links and nodes of a lab, and interfaces of a node, that addresses can tell apart."""


@dataclass(frozen=True)
class NamedAddress:
    """An interface's address, and what it is called."""

    node: str
    interface: str
    address: str


def check_counts(links: int, nodes: int, interfaces_of_a_node: int) -> None:
    """Refuses a lab that has more parts than addresses can tell apart.

    Raises:
        LabError: with the count and its limit.
    """
    for field, count, limit, what in (
        ("links", links, LINKS_MAX, "links, for which 10.0.0.0/8 has addresses"),
        ("nodes", nodes, NODES_MAX, "nodes"),
        ("links", interfaces_of_a_node, INTERFACES_MAX, "interfaces of one node"),
    ):
        if count > limit:
            raise lab_error(field, f"{count}: there can be at most {limit} {what}")


def offset(link: int, side: int) -> int:
    """The position in `NETWORK` of the address of one end of a link.

    Args:
        link: Its position in the lab, from 0.
        side: 0 for its end a, 1 for its end b.
    """
    return 2 * link + side


def ipv4(position: int) -> str:
    """The address at a position in `NETWORK`."""
    return ".".join(str(part) for part in (NETWORK + position).to_bytes(4, "big"))


def mac(node: int, interface: int) -> str:
    """A locally administered unicast address: 02, then the node (3 bytes) and the interface (2 bytes).

    Args:
        node: Its position in the lab, from 0.
        interface: Its position in the node, from 0.
    """
    return ":".join(f"{part:02x}" for part in (2, *node.to_bytes(3, "big"), *interface.to_bytes(2, "big")))


def hosts(nodes: Iterable[str], named: Iterable[NamedAddress]) -> list[HostsEntry]:
    """The lines of /etc/hosts: a name for each interface, as `a-eth0`, and the node's own for its first one.

    A name means one address. Names of nodes come first; the name of an interface that is also something else's, be it
    in another case, is left out.

    Args:
        nodes: Every node.
        named: Every address, those of a node in the order of its interfaces.
    """
    taken = {name.lower() for name in nodes}
    reached: set[str] = set()
    entries = []
    for one in named:
        names = [] if one.node in reached else [one.node]
        reached.add(one.node)
        own = f"{one.node}-{one.interface}"
        if own.lower() not in taken:
            taken.add(own.lower())
            names.append(own)
        if names:
            entries.append(HostsEntry(address=one.address, names=names))
    return entries
