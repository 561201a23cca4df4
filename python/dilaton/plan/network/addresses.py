"""Addresses and names: every segment has a prefix, every interface an address in it and an Ethernet address.

Prefixes are taken from the pools of the lab in the order of its links. They depend on positions in the lab alone, so
that the same lab always has the same addresses, and a link appended to it changes no others. What is given is kept, and
prefixes that overlap a given one are left out.

IPv4: a point-to-point link has a /31 (RFC 3021) or /30 of the pool `p2p`, a segment with switches a /24, or more if it
needs more, of `lan`. IPv6 has one pool, divided by 64-bit subnets: the first one holds the /127 of point-to-point links
(RFC 6164), the last one the loopbacks, and each segment has one of those between.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Literal

from dilaton.lab.model import Lab
from dilaton.lab.parts.addressing import LOOPBACKS, Addressing
from dilaton.lab.segments import Port, Segment
from dilaton.plan.errors import lab_error
from dilaton.plan.model import HostsEntry

Version = Literal[4, 6]

NODES_MAX = 1 << 24
INTERFACES_MAX = 1 << 16
"""Nodes of a lab, and interfaces of a node, that Ethernet addresses can tell apart."""

BITS: dict[int, int] = {4: 32, 6: 128}
"""The length of an address, by version."""

SUBNET_BITS = 64
"""The length of the prefix of an IPv6 subnet."""


@dataclass(frozen=True)
class Prefix:
    """A network: its first address as a number, and its prefix length."""

    version: Version
    start: int
    length: int

    @property
    def size(self) -> int:
        """How many addresses it has."""
        return 1 << (BITS[self.version] - self.length)

    def __str__(self) -> str:
        return f"{ip(self.version, self.start)}/{self.length}"


@dataclass
class AddressPlan:
    """The addresses of a lab.

    Attributes:
        prefixes: For each segment, by its position, its networks: one of each version in use.
        addresses: For each interface, its addresses as numbers by version.
        loopbacks: For each node that has them, its own addresses by version.
    """

    prefixes: list[dict[Version, Prefix]] = field(default_factory=list)
    addresses: dict[Port, dict[Version, int]] = field(default_factory=dict)
    loopbacks: dict[str, dict[Version, int]] = field(default_factory=dict)


def ip(version: Version, value: int) -> str:
    """An address as text."""
    return str(IPv4Address(value) if version == 4 else IPv6Address(value))


def plan_addresses(lab: Lab, segments: Sequence[Segment], routers: Collection[str]) -> AddressPlan:
    """The addresses of a lab whose links have two ends.

    Args:
        lab: The lab.
        segments: Its segments.
        routers: Nodes that get a loopback address.

    Raises:
        LabError: a pool is too small; the message says how many addresses are needed.
    """
    plan = AddressPlan(prefixes=[{} for _ in segments])
    planned: tuple[Version, ...] = (4, 6) if lab.addressing.ipv6 else (4,)
    versions: tuple[Version, ...] = (4, 6)
    given = [_given(lab, segment) for segment in segments]
    for version in versions:
        taken = sorted(
            (prefix.start, prefix.start + prefix.size)
            for networks in given
            for prefix in networks.values()
            if prefix.version == version
        )
        pools = _pools(lab.addressing, version, taken) if version in planned else {}
        for number, segment in enumerate(segments):
            if not segment.ports or (version not in given[number] and version not in planned):
                continue
            kind = "lan" if segment.switches or len(segment.ports) != 2 else "p2p"
            prefix = given[number].get(version) or pools[kind].take(len(segment.ports))
            plan.prefixes[number][version] = prefix
            _assign(lab, segment, prefix, plan)
        if version in planned:
            pools["loopback"] = _loopbacks(lab.addressing, version, taken)
            for node in routers:
                plan.loopbacks.setdefault(node, {})[version] = pools["loopback"].take(1).start
        for pool in pools.values():
            pool.check()
    return plan


class _Pool:
    """Hands out prefixes in order, but for the first `skip` addresses."""

    def __init__(
        self,
        name: str,
        version: Version,
        start: int,
        end: int,
        length: int,
        taken: Sequence[tuple[int, int]] = (),
        skip: int = 0,
    ) -> None:
        self._name, self._version, self._length = name, version, length
        self._start, self._next, self._end = start, start + skip, end
        self._taken = list(reversed(taken))

    def take(self, ports: int) -> Prefix:
        """The next prefix with room for so many interfaces, be it beyond the end of the pool (see `check`)."""
        bits = BITS[self._version]
        length = self._length
        if length < bits - 1:
            # The first and the last address of a network are not for interfaces.
            length = min(length, bits - (ports + 1).bit_length())
        size = 1 << (bits - length)
        start = -(-self._next // size) * size
        while self._taken and self._taken[-1][0] < start + size:
            _, end = self._taken.pop()
            start = max(start, -(-end // size) * size)
        self._next = start + size
        return Prefix(self._version, start, length)

    def check(self) -> None:
        """Refuses what was taken if that is more than there is.

        Raises:
            LabError: with the number of addresses that are needed.
        """
        if self._next <= self._end:
            return
        bits = BITS[self._version]
        needed = self._next - self._start
        pool = f"{ip(self._version, self._start)}/{bits + 1 - (self._end - self._start).bit_length()}"
        fits = bits - (needed - 1).bit_length()
        raise lab_error(
            f"addressing.{self._name}",
            f"{pool}: too small: the lab needs {needed} of its addresses; write a prefix length of {fits} or less",
        )


def _pools(addressing: Addressing, version: Version, taken: Sequence[tuple[int, int]]) -> dict[str, _Pool]:
    if version == 4:
        return {
            name: _Pool(name, 4, *_bounds(pool.ipv4), pool.prefix, taken)
            for name, pool in (("p2p", addressing.p2p), ("lan", addressing.lan))
        }
    assert addressing.ipv6 is not None
    start, end = _bounds(addressing.ipv6)
    subnet = 1 << SUBNET_BITS
    return {
        "p2p": _Pool("ipv6", 6, start, start + subnet, 127, taken),
        "lan": _Pool("ipv6", 6, start + subnet, end - subnet, BITS[6] - SUBNET_BITS, taken),
    }


def _loopbacks(addressing: Addressing, version: Version, taken: Sequence[tuple[int, int]]) -> _Pool:
    if version == 4:
        start, end = _bounds(addressing.loopback or LOOPBACKS)
        return _Pool("loopback", 4, start, end, 32, taken, skip=1)
    assert addressing.ipv6 is not None
    end = _bounds(addressing.ipv6)[1]
    return _Pool("ipv6", 6, end - (1 << SUBNET_BITS), end, 128, taken, skip=1)


def _bounds(network: IPv4Network | IPv6Network) -> tuple[int, int]:
    start = int(network.network_address)
    return start, start + network.num_addresses


def _given(lab: Lab, segment: Segment) -> dict[Version, Prefix]:
    """The networks that addresses given for a segment are in."""
    found: dict[Version, Prefix] = {}
    for port in segment.ports:
        for address in lab.links[port.link].endpoints[port.side].addresses:
            version: Version = 4 if address.version == 4 else 6
            found[version] = Prefix(version, int(address.network.network_address), address.network.prefixlen)
    return found


def _keep_given(lab: Lab, segment: Segment, version: Version, plan: AddressPlan) -> set[int]:
    """Gives interfaces the addresses that the lab gives them; returns those."""
    kept = set()
    for port in segment.ports:
        for address in lab.links[port.link].endpoints[port.side].addresses:
            if address.version == version:
                plan.addresses.setdefault(port, {})[version] = int(address.ip)
                kept.add(int(address.ip))
    return kept


def _assign(lab: Lab, segment: Segment, prefix: Prefix, plan: AddressPlan) -> None:
    """Gives each interface of a segment its address: the given one, or the next that is free."""
    kept = _keep_given(lab, segment, prefix.version, plan)
    free = (address for address in _usable(prefix) if address not in kept)
    for port in segment.ports:
        own = plan.addresses.setdefault(port, {})
        if prefix.version not in own:
            address = next(free, None)
            if address is None:
                name = lab.links[port.link].endpoints[port.side].interface
                message = f"{prefix}: no address is left for {port.node}:{name}; {len(segment.ports)} are needed"
                raise lab_error(f"links[{port.link}]", message)
            own[prefix.version] = address


def _usable(prefix: Prefix) -> Iterator[int]:
    """The addresses of a network that interfaces may have."""
    is_pair = prefix.length == BITS[prefix.version] - 1
    start, end = prefix.start, prefix.start + prefix.size
    return iter(range(start, end) if is_pair else range(start + 1, end - 1))


@dataclass(frozen=True)
class NamedAddress:
    """An address of a node and the interface that has it; no interface: it is the node's own."""

    node: str
    interface: str
    version: Version
    address: str


def check_counts(nodes: int, interfaces_of_a_node: int) -> None:
    """Refuses a lab that has more parts than Ethernet addresses can tell apart.

    Raises:
        LabError: with the count and its limit.
    """
    for name, count, limit, what in (
        ("nodes", nodes, NODES_MAX, "nodes"),
        ("links", interfaces_of_a_node, INTERFACES_MAX, "interfaces of one node"),
    ):
        if count > limit:
            raise lab_error(name, f"{count}: there can be at most {limit} {what}")


def mac(node: int, interface: int) -> str:
    """A locally administered unicast address: 02, then the node (3 bytes) and the interface (2 bytes).

    Args:
        node: Its position in the lab, from 0.
        interface: Its position in the node, from 0.
    """
    return ":".join(f"{part:02x}" for part in (2, *node.to_bytes(3, "big"), *interface.to_bytes(2, "big")))


def hosts(nodes: Iterable[str], named: Iterable[NamedAddress]) -> list[HostsEntry]:
    """The lines of /etc/hosts: a name for each interface, as `a-eth0`, and the node's own for its first address.

    A name means one address of each version. Names of nodes come first; the name of an interface that is also something
    else's, be it in another case, is left out.

    Args:
        nodes: Every node.
        named: Every address, those of a node in the order of preference.
    """
    owners: dict[str, tuple[str, str]] = {name.lower(): (name, "") for name in nodes}
    reached: set[tuple[str, int]] = set()
    entries = []
    for one in named:
        names = [] if (one.node, one.version) in reached else [one.node]
        reached.add((one.node, one.version))
        if one.interface:
            name = f"{one.node}-{one.interface}"
            own = (one.node, one.interface)
            if owners.setdefault(name.lower(), own) == own:
                names.append(name)
        if names:
            entries.append(HostsEntry(address=one.address, names=names))
    return entries
