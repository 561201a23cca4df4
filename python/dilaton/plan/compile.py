"""Compiles a lab to its plan."""

from __future__ import annotations

from dilaton.lab.model import Lab
from dilaton.plan import addresses, guests, schedule
from dilaton.plan.addresses import NamedAddress
from dilaton.plan.links import qdiscs
from dilaton.plan.model import (
    Check,
    End,
    HostsEntry,
    Image,
    Interface,
    Link,
    Neighbour,
    Node,
    Plan,
    Route,
    Tdf,
    Time,
)
from dilaton.plan.routes import Topology

TRANSIT_DEGREE_MIN = 2
"""Nodes with so many links forward packets."""

SYSCTLS = {
    # Every user may ping. Distributions allow it by a capability of the program's file, which a guest does not see.
    "net/ipv4/ping_group_range": "0 2147483647",
}
"""Of every node."""


def compile(lab: Lab) -> Plan:
    """Compiles a lab to its plan: a pure function of the lab.

    Raises:
        LabError: the lab has more parts than addresses can tell apart.
    """
    network = _Network(lab)
    return Plan(
        lab=lab.name,
        seed=lab.seed,
        time=Time(
            drive=lab.time.drive,
            tdf=Tdf(numerator=lab.time.tdf.numerator, denominator=lab.time.tdf.denominator),
        ),
        stop_after_ns=lab.stop_after_ns,
        grace_ns=schedule.GRACE_NS,
        guests=[guests.guest(lab)],
        nodes=[network.node(number) for number in range(len(lab.nodes))],
        links=network.links(),
        hosts=network.hosts(),
        processes=[schedule.process(process) for process in lab.run],
        checks=[Check(text=expectation.text) for expectation in lab.expect],
    )


class _Network:
    """The nodes and links of a lab, by their positions in it."""

    def __init__(self, lab: Lab) -> None:
        self.lab = lab
        self.names = list(lab.nodes)
        position = {name: number for number, name in enumerate(self.names)}
        ends = [(position[link.endpoints[0].node], position[link.endpoints[1].node]) for link in lab.links]
        self.topology = Topology(len(self.names), ends)
        degrees = [len(adjacent) for adjacent in self.topology.adjacent]
        addresses.check_counts(len(ends), len(self.names), max(degrees, default=0))
        self.macs: dict[int, str] = {}
        """By the position of the interface's address."""
        for node, adjacent in enumerate(self.topology.adjacent):
            for number, (_, link) in enumerate(adjacent):
                self.macs[self.offset(node, link)] = addresses.mac(node, number)

    def offset(self, node: int, link: int) -> int:
        """The position of the address that a node has on one of its links."""
        return addresses.offset(link, self.topology.links[link].index(node))

    def node(self, number: int) -> Node:
        """A node of the plan, complete."""
        name = self.names[number]
        interfaces = [self.interface(number, link) for _, link in self.topology.adjacent[number]]
        sysctls = SYSCTLS | {f"net/ipv6/conf/{interface.name}/disable_ipv6": "1" for interface in interfaces}
        if len(interfaces) >= TRANSIT_DEGREE_MIN:
            sysctls["net/ipv4/ip_forward"] = "1"
        return Node(
            name=name,
            guest=guests.GUEST,
            image=Image(kind=self.lab.nodes[name].image),
            interfaces=interfaces,
            routes=self.routes(number),
            sysctls=sysctls | self.lab.nodes[name].sysctls,
        )

    def interface(self, node: int, number: int) -> Interface:
        """The interface of a node to its link `number`."""
        link = self.lab.links[number]
        own = self.offset(node, number)
        other = own ^ 1
        side = own % 2
        return Interface(
            name=link.endpoints[side].interface,
            mac=self.macs[own],
            mtu=link.mtu,
            offload=link.offload,
            addresses=[f"{addresses.ipv4(own)}/31"],
            neighbours=[Neighbour(address=addresses.ipv4(other), mac=self.macs[other])],
            qdiscs=qdiscs(link.direction("b_to_a" if side else "a_to_b"), link.mtu, link.round_trip_ns),
        )

    def routes(self, node: int) -> list[Route]:
        """The routes of a node: one to everything where there is only one way."""
        adjacent = self.topology.adjacent[node]
        if len(adjacent) < TRANSIT_DEGREE_MIN:
            return [self.route(node, "default", link) for _, link in adjacent]
        return [
            self.route(node, f"{addresses.ipv4(prefix.start)}/{prefix.length}", prefix.link)
            for prefix in self.topology.prefixes(node)
        ]

    def route(self, node: int, to: str, link: int) -> Route:
        """A route of a node by one of its links."""
        own = self.offset(node, link)
        interface = self.lab.links[link].endpoints[own % 2].interface
        return Route(to=to, via=addresses.ipv4(own ^ 1), interface=interface)

    def links(self) -> list[Link]:
        """The links of the plan."""
        found = []
        for link in self.lab.links:
            a, b = (End(node=end.node, interface=end.interface) for end in link.endpoints)
            found.append(Link(name=f"{a.node}:{a.interface}--{b.node}:{b.interface}", ends=(a, b)))
        return found

    def hosts(self) -> list[HostsEntry]:
        """The names of all addresses, node by node."""
        named = [
            NamedAddress(name, self.lab.links[link].endpoints[own % 2].interface, addresses.ipv4(own))
            for number, name in enumerate(self.names)
            for _, link in self.topology.adjacent[number]
            for own in [self.offset(number, link)]
        ]
        return addresses.hosts(self.names, named)
