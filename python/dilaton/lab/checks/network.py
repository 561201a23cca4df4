"""What takes the whole network to see: kinds and groups that must exist, loops, addresses and pools."""

from __future__ import annotations

from collections.abc import Iterator
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from itertools import combinations, pairwise

from dilaton.lab.errors import Finding, Path
from dilaton.lab.kinds import CONTROLLER, KINDS, MANAGEMENT, NAT, OPENFLOW_PORT, OVS, SWITCH
from dilaton.lab.model import Lab
from dilaton.lab.parts.addressing import LOOPBACKS
from dilaton.lab.parts.links import MTU_OF_IPV6
from dilaton.lab.parts.nodes import Node
from dilaton.lab.segments import is_port_of_switch, is_switch, segments, without_lans
from dilaton.lab.text import syntax
from dilaton.lab.union import Union

NAMES_SHOWN = 5
"""How many nodes of a list a message names."""


def check_network(lab: Lab) -> Iterator[Finding]:
    """Yields what is wrong with the kinds of nodes, with segments and with pools."""
    yield from _check_inheritance(lab)
    yield from _check_pools(lab)
    names_are_right = all(end.node in lab.nodes for link in lab.links for end in link.endpoints)
    if names_are_right:
        yield from _check_loops(lab)
        yield from _check_connected(lab)
        yield from _check_given_addresses(lab)
        yield from _check_mtus(lab)
        yield from _check_controllers(lab)
        yield from _check_nats(lab)


def _check_inheritance(lab: Lab) -> Iterator[Finding]:
    known = [*KINDS, *(name for name in lab.kinds if name not in KINDS)]
    for name, kind in lab.kinds.items():
        base = kind.kind
        if name in KINDS and base is not None:
            yield Finding(("kinds", name, "kind"), f"{name} is a kind by itself; remove this, or choose another name")
        elif base is not None and base not in KINDS:
            yield Finding(("kinds", name, "kind"), _unknown("kind", base, KINDS))
    layers: list[tuple[Path, Node]] = [
        (("defaults",), lab.defaults),
        *((("groups", name), group) for name, group in lab.groups.items()),
    ]
    for path, layer in layers:
        if layer.kind is not None and layer.kind not in known:
            yield Finding((*path, "kind"), _unknown("kind", layer.kind, known))
    said = {layer.kind for _, layer in layers}
    made = lab.topology.nodes if lab.topology else {}
    for name, node in lab.nodes.items():
        if node.kind is not None and node.kind not in KINDS and node.kind not in said and node.kind not in lab.kinds:
            yield Finding(("nodes", name, "kind"), _unknown("kind", node.kind, known))
        is_of_topology = name in made and made[name].group == node.group
        if node.group is not None and node.group not in lab.groups and not is_of_topology:
            yield Finding(("nodes", name, "group"), _unknown("group", node.group, list(lab.groups)))
        if node.as_number is not None and lab.routing.policy != "bgp":
            yield Finding(("nodes", name, "as"), "only routers with BGP are autonomous systems; write routing: bgp")
        if node.stp and not is_switch(node):
            yield Finding(
                ("nodes", name, "stp"), f"{name} is no switch; only the kinds {SWITCH} and {OVS} have a spanning tree"
            )


def _check_pools(lab: Lab) -> Iterator[Finding]:
    addressing = lab.addressing
    pools = {"p2p": addressing.p2p.ipv4, "lan": addressing.lan.ipv4}
    if addressing.loopback is not None or lab.routing.has_daemon:
        pools["loopback"] = addressing.loopback or LOOPBACKS
    for (one, its), (other, others) in combinations(pools.items(), 2):
        if its.overlaps(others):
            at = other if other in addressing.model_fields_set else one
            yield Finding(("addressing", at), f"the pools {one} ({its}) and {other} ({others}) overlap")


def _check_loops(lab: Lab) -> Iterator[Finding]:
    """A frame goes round in a loop of switches for ever, unless the spanning tree protocol opens the loop."""
    joined = Union()
    for number, link in enumerate(lab.links):
        ends = [end.node for end in link.endpoints if is_port_of_switch(lab, end)]
        for one, other in pairwise(ends):
            if not joined.join(one, other) and not (lab.nodes[one].stp or lab.nodes[other].stp):
                message = f"closes a loop of switches by joining {one} and {other}; give them stp: true"
                yield Finding(("links", number), message)


def _check_connected(lab: Lab) -> Iterator[Finding]:
    """Where a policy is asked for, it must be able to lead from every node to every other."""
    if "routing" not in lab.model_fields_set or lab.routing.policy == "none" or not lab.nodes:
        return
    joined = Union()
    for link in lab.links:
        for end in link.endpoints:
            joined.join(link.endpoints[0].node, end.node)
    start = next(iter(lab.nodes))
    apart = [name for name in lab.nodes if joined.root(name) != joined.root(start)]
    if apart:
        listed = ", ".join(apart[:NAMES_SHOWN])
        if len(apart) > NAMES_SHOWN:
            listed += f" and {len(apart) - NAMES_SHOWN} more"
        message = f"{lab.routing.policy}: no path leads from {start} to {listed}; link them, or write none"
        yield Finding(("routing",), message)


def _check_given_addresses(lab: Lab) -> Iterator[Finding]:
    """Given addresses: each once, and one network for a segment that no other segment has a part of."""
    paths: dict[tuple[str, str], Path] = {
        (end.node, end.interface): ("links", number, "endpoints", side)
        for number, link in enumerate(lab.links)
        for side, end in enumerate(link.endpoints)
    }
    flat = without_lans(lab)
    owners: dict[IPv4Address | IPv6Address, str] = {}
    networks: dict[tuple[int, int], IPv4Network | IPv6Network] = {}
    """The networks in use, by version and segment."""
    for place, segment in enumerate(segments(flat)):
        ends = [flat.links[port.link].endpoints[port.side] for port in segment.ports]
        for end, address in [(port, given) for port in ends for given in port.addresses]:
            path, name = paths[end.node, end.interface], f"{end.node}:{end.interface}"
            other = owners.setdefault(address.ip, name)
            if other != name:
                yield Finding(path, f"{address.ip} is already the address of {other}")
                continue
            if (address.version, place) not in networks:
                for (version, _), taken in networks.items():
                    if version == address.version and _overlap(taken, address.network):
                        yield Finding(path, f"{address.network} overlaps {taken}, the network of another segment")
                networks[address.version, place] = address.network
            elif address.network != networks[address.version, place]:
                network = networks[address.version, place]
                yield Finding(path, f"{address} is not in {network}, the network of this segment")


def _check_mtus(lab: Lab) -> Iterator[Finding]:
    """Packets have to be large enough for the addresses of a link."""
    for number, link in enumerate(lab.links):
        given = {address.version for end in link.endpoints for address in end.addresses}
        if link.mtu < MTU_OF_IPV6 and (lab.addressing.ipv6 is not None or 6 in given):
            yield Finding(("links", number, "mtu"), f"{link.mtu}: IPv6 needs packets of {MTU_OF_IPV6} bytes at least")


def _check_controllers(lab: Lab) -> Iterator[Finding]:
    """A switch reaches its controller by an interface of its own."""
    flat = without_lans(lab)
    shared = [{port.node for port in segment.ports} for segment in segments(flat)]
    for name, node in lab.nodes.items():
        if node.controller is None:
            continue
        path: Path = ("nodes", name, "controller")
        host = node.controller.node
        if node.kind != OVS:
            yield Finding(path, f"{name} is no Open vSwitch; only the kind {OVS} has a controller")
        elif host not in lab.nodes:
            yield Finding(path, _unknown("node", host, list(lab.nodes)))
        elif lab.nodes[host].kind == CONTROLLER and node.controller.port != OPENFLOW_PORT:
            yield Finding(
                path, f"{host} is of kind {CONTROLLER}, which listens on port {OPENFLOW_PORT}; write tcp:{host}"
            )
        elif not any({name, host} <= nodes for nodes in shared):
            message = f"no link leads from {name} to {host}; write one, such as {host} -- {name}:{MANAGEMENT}0"
            yield Finding(path, message)


def _check_nats(lab: Lab) -> Iterator[Finding]:
    """A NAT has an outside, and only a NAT."""
    interfaces: dict[str, list[str]] = {name: [] for name in lab.nodes}
    for link in lab.links:
        for end in link.endpoints:
            interfaces[end.node].append(end.interface)
    for name, node in lab.nodes.items():
        path: Path = ("nodes", name, "outside")
        if node.kind != NAT:
            if node.outside is not None:
                yield Finding(path, f"{name} is no NAT; only the kind {NAT} has an outside")
        elif node.outside is None:
            message = f"a NAT needs to know which interface is outside; write one of {', '.join(interfaces[name])}"
            yield Finding(("nodes", name), message)
        elif node.outside not in interfaces[name]:
            yield Finding(path, _unknown("interface", node.outside, interfaces[name]))


def _overlap(one: IPv4Network | IPv6Network, other: IPv4Network | IPv6Network) -> bool:
    if isinstance(one, IPv4Network) and isinstance(other, IPv4Network):
        return one.overlaps(other)
    return isinstance(one, IPv6Network) and isinstance(other, IPv6Network) and one.overlaps(other)


def _unknown(what: str, name: str, known: list[str] | tuple[str, ...]) -> str:
    hint = syntax.did_you_mean(name, known)
    listed = f"; known: {', '.join(known)}" if known else f"; the lab defines no {what}"
    return f"unknown {what} {name}{hint or listed}"
