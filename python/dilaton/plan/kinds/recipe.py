"""What the recipes of all kinds have in common."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from dilaton.lab.parts.nodes import Node
from dilaton.plan.model import Bridge, OwnFile, Process
from dilaton.plan.network.addresses import Version


@dataclass(frozen=True)
class Peer:
    """A router on the other side of a link, to which this one speaks BGP over one version of IP."""

    version: Version
    address: str
    as_number: int


@dataclass(frozen=True)
class Adjacency:
    """An interface of a router.

    Attributes:
        interface: Its name.
        cost: What it costs to leave by it.
        is_stub: Whether there is no other router behind it.
        is_point_to_point: Whether it is an end of a link between two nodes.
        versions: Of its IP addresses.
        peers: With BGP, the routers behind it.
    """

    interface: str
    cost: int
    is_stub: bool
    is_point_to_point: bool
    versions: frozenset[Version]
    peers: tuple[Peer, ...] = ()


@dataclass(frozen=True)
class Site:
    """Where a recipe is applied.

    Attributes:
        name: The node's name.
        node: The node as the lab has it, with all that it inherits.
        interfaces: The names of its interfaces, in the order of links.
        has_ipv6: Whether it has IPv6 addresses.
        adjacencies: Its interfaces with addresses, as a routing daemon sees them.
        loopbacks: Its own addresses, if it has any, by version and with prefix lengths.
        controller: Where its OpenFlow controller listens, as ovs-vsctl wants it, if it has one.
        daemon: The routing daemon that the lab wants on routers, if any.
        as_number: The autonomous system that it is, if routers speak BGP.
        hash_policy: What a flow is to a router with several equal paths: net.ipv4.fib_multipath_hash_policy.
    """

    name: str
    node: Node
    interfaces: list[str]
    has_ipv6: bool
    hash_policy: int
    adjacencies: list[Adjacency] = field(default_factory=list)
    loopbacks: dict[Version, str] = field(default_factory=dict)
    daemon: str | None = None
    as_number: int | None = None
    controller: str | None = None

    @property
    def peers(self) -> list[Peer]:
        """All routers to which it speaks BGP."""
        return [peer for adjacency in self.adjacencies for peer in adjacency.peers]

    @property
    def router_id(self) -> str:
        """What routing daemons call a node that has a loopback address."""
        return self.loopbacks[4].partition("/")[0]


@dataclass(frozen=True)
class Parts:
    """What a recipe gives its node."""

    sysctls: dict[str, str] = field(default_factory=dict)
    bridge: Bridge | None = None
    files: list[OwnFile] = field(default_factory=list)
    processes: list[Process] = field(default_factory=list)


@dataclass(frozen=True)
class Recipe:
    """A kind of node.

    Attributes:
        forwards: Whether it forwards packets by IP addresses, given the number of its interfaces.
        modules: Kernel modules that it needs.
        make: What it gives its node.
    """

    forwards: Callable[[int], bool]
    make: Callable[[Site], Parts]
    modules: tuple[str, ...] = ()


FORWARDING = {"net/ipv4/ip_forward": "1"}
FORWARDING_IPV6 = {"net/ipv6/conf/all/forwarding": "1"}
