"""The nodes, links and names of a plan: where segments, addresses, routes and kinds come together."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

from dilaton.lab.kinds import ROUTER, kind_of
from dilaton.lab.model import Lab
from dilaton.lab.parts.links import MTU_OF_IPV6
from dilaton.lab.segments import Port, segments
from dilaton.plan import kinds
from dilaton.plan.bind import Bind
from dilaton.plan.errors import lab_error
from dilaton.plan.guests.cpus import shares
from dilaton.plan.guests.disks import disks
from dilaton.plan.guests.images import images
from dilaton.plan.guests.placement import place
from dilaton.plan.guests.volumes import volumes
from dilaton.plan.links.changes import State, states_of_links
from dilaton.plan.links.wires import RING_BYTES_SPARE, beside_wire, lookahead_ns, wires
from dilaton.plan.model import End, HostsEntry, Interface, Link, Neighbour, Node, OwnFile, Process, Wire
from dilaton.plan.network import addresses
from dilaton.plan.network.addresses import NamedAddress, Version, ip, plan_addresses
from dilaton.plan.network.buffers import larger_bytes
from dilaton.plan.network.contents import own_files
from dilaton.plan.network.paths import Paths
from dilaton.plan.network.routes import Routes
from dilaton.plan.network.systems import as_numbers, check_neighbours

HASH_POLICIES = {"l3": 0, "l4": 1}
"""net.ipv4.fib_multipath_hash_policy."""

SYSCTLS = {
    # Every user may ping. Distributions allow it by a capability of the program's file, which a guest does not see.
    "net/ipv4/ping_group_range": "0 2147483647",
}
"""Settings of every node."""

SYSCTLS_OF_IMAGES = {"net/ipv4/ip_unprivileged_port_start": "0"}
"""As Docker has it: servers in images listen on port 80 as users of their own."""


class Network:
    """The network of a lab whose links have two ends."""

    def __init__(self, lab: Lab, cores: int) -> None:
        """Plans guests, addresses and routes.

        Args:
            lab: What to plan.
            cores: Of the host, over which `guests: auto` divides.

        Raises:
            LabError: a pool is too small, there is too much of something, or guests cannot be apart as asked for.
        """
        self.lab = lab
        self.whole_states = states_of_links(lab)
        """What each link is in the course of time."""
        lookaheads_ns = [min(both) for both in self._lookaheads()]
        self.placement = place(lab, lookaheads_ns, cores)
        self.states, self.delays_ns = self._take_apart()
        """What the ends of each link do in the course of time, and the delays of those that are wires."""
        self._cpus = shares(lab, self.placement.of_node)
        self._disks = disks(lab, self.placement.of_node)
        self._volumes = volumes(lab, self.placement.of_node)
        self._images = images(lab, self.placement.of_node, self._disks)
        self._numbers = {name: number for number, name in enumerate(lab.nodes)}
        self._ports: dict[str, list[Port]] = {name: [] for name in lab.nodes}
        """All interfaces of each node, in the order of links."""
        for number, link in enumerate(lab.links):
            for side, end in enumerate(link.endpoints):
                self._ports[end.node].append(Port(end.node, number, side))
        degrees = {name: len(ports) for name, ports in self._ports.items()}
        addresses.check_counts(len(lab.nodes), max(degrees.values(), default=0))
        self._kinds = {name: kind_of(node.kind, degrees[name]) for name, node in lab.nodes.items()}
        self._recipes = {name: kinds.recipe(kind) for name, kind in self._kinds.items()}
        self._segments = segments(lab)
        forwarding = frozenset(name for name, recipe in self._recipes.items() if recipe.forwards(degrees[name]))
        self._forwarding = forwarding
        has_loopbacks = lab.addressing.loopback is not None or lab.routing.has_daemon
        routers = [name for name in lab.nodes if has_loopbacks and name in forwarding]
        self.addresses = plan_addresses(lab, self._segments, routers)
        paths = Paths(lab, self._segments, forwarding)
        self._routes = Routes(lab, self._segments, paths, self.addresses)
        self._peers = {
            port: other
            for segment in self._segments
            if not segment.switches and len(segment.ports) == 2
            for port, other in (segment.ports, reversed(segment.ports))
        }
        """The other end, of interfaces of point-to-point links."""
        self._systems = as_numbers(lab, [name for name in lab.nodes if name in forwarding])
        if lab.routing.policy == "bgp":
            self._check_systems()
        self._macs = {
            port: addresses.mac(self._numbers[name], number)
            for name, ports in self._ports.items()
            for number, port in enumerate(ports)
        }
        self._segment_of = {port: number for number, segment in enumerate(self._segments) for port in segment.ports}
        self._routers_on = [[port for port in segment.ports if port.node in forwarding] for segment in self._segments]

    def _check_systems(self) -> None:
        """Makes sure that routers on one segment are different autonomous systems."""
        nodes = self.lab.nodes
        routers = [[port.node for port in segment.ports if port.node in self._forwarding] for segment in self._segments]
        own = [
            [name for name in dict.fromkeys(names) if not (nodes[name].config or nodes[name].startup)]
            for names in routers
        ]
        check_neighbours(self._systems, (pair for names in own for pair in combinations(names, 2)))

    def _lookaheads(self) -> list[tuple[int, int]]:
        """Returns the lookahead of each link, by its directions."""
        return [
            (lookahead_ns(link, states, 0), lookahead_ns(link, states, 1))
            for link, states in zip(self.lab.links, self.whole_states, strict=True)
        ]

    def _take_apart(self) -> tuple[list[list[State]], dict[int, tuple[int, int]]]:
        of_node = self.placement.of_node
        rest, delays_ns = list(self.whole_states), dict[int, tuple[int, int]]()
        for number, (link, delays) in enumerate(zip(self.lab.links, self._lookaheads(), strict=True)):
            a, b = (of_node[end.node] for end in link.endpoints)
            if a != b:
                delays_ns[number] = delays
                rest[number] = [beside_wire(state, delays) for state in self.whole_states[number]]
        return rest, delays_ns

    def wires(self) -> list[Wire]:
        """The wires between guests."""
        spare = RING_BYTES_SPARE + max(map(larger_bytes, self.lab.nodes.values()), default=0)
        links, states = self.lab.links, self.whole_states
        return wires(self.placement.guests, self.placement.of_node, links, states, self.delays_ns, spare)

    def modules(self, guest: str) -> list[str]:
        """Kernel modules that the kinds of a guest's nodes need."""
        recipes = [recipe for name, recipe in self._recipes.items() if self.placement.of_node[name] == guest]
        return list(dict.fromkeys(module for recipe in recipes for module in recipe.modules))

    def nodes(self) -> list[Node]:
        """The nodes of the plan."""
        interfaces = {name: [self._interface(port) for port in ports] for name, ports in self._ports.items()}
        loopbacks = {name: list(self._loopbacks(name).values()) for name in self.lab.nodes}
        files = own_files(self.lab, interfaces, loopbacks)
        return [self._node(name, interfaces[name], files.get(name, [])) for name in self.lab.nodes]

    def _node(self, name: str, interfaces: list[Interface], files: list[OwnFile]) -> Node:
        written = self.lab.nodes[name]
        ports = self._ports[name]
        parts = self._parts(name)
        sysctls = SYSCTLS | {
            f"net/ipv6/conf/{interface.name}/disable_ipv6": "1"
            for interface, port in zip(interfaces, ports, strict=True)
            if 6 not in self.addresses.addresses.get(port, {})
        }
        sysctls |= (SYSCTLS_OF_IMAGES if written.image != "host" else {}) | parts.sysctls
        # A kernel has nothing of IPv6 for an interface whose packets are too small for it.
        for interface in interfaces:
            if interface.mtu < MTU_OF_IPV6:
                sysctls.pop(f"net/ipv6/conf/{interface.name}/disable_ipv6", None)
        return Node(
            name=name,
            guest=self.placement.of_node[name],
            image=self._images[name],
            interfaces=interfaces,
            bridge=parts.bridge,
            loopback=list(self._loopbacks(name).values()),
            files=[*parts.files, *files],
            binds=[Bind(path=path, writable=False) for path in self.lab.files],
            volumes=self._volumes[name],
            routes=self._routes.of(name),
            cpu=self._cpus.get(name),
            sysctls=sysctls | written.sysctls,
            memory_bytes=written.memory_bytes,
            disk=self._disks.get(name),
            kind=self._kinds[name],
            position=self.lab.topology.positions.get(name) if self.lab.topology else None,
        )

    def _loopbacks(self, name: str) -> dict[Version, str]:
        """The node's own addresses, with prefix lengths."""
        own = self.addresses.loopbacks.get(name, {})
        return {version: f"{ip(version, value)}/{addresses.BITS[version]}" for version, value in own.items()}

    @property
    def routers(self) -> list[str]:
        """The nodes that are routers."""
        return [name for name, kind in self._kinds.items() if kind == ROUTER]

    def processes(self) -> list[Process]:
        """The daemons that kinds of nodes bring with them."""
        return [process for name in self.lab.nodes for process in self._parts(name).processes]

    def _parts(self, name: str) -> kinds.Parts:
        """What the node's kind makes of it."""
        ports = self._ports[name]
        if self.lab.nodes[name].startup is not None and self._kinds[name] != ROUTER:
            raise lab_error(f"nodes.{name}.startup", f"{name} is no router; write kind: router, or leave it out")
        routing = self.lab.routing
        site = kinds.Site(
            name,
            self.lab.nodes[name],
            [self._name(port) for port in ports],
            has_ipv6=any(6 in self.addresses.addresses.get(port, {}) for port in ports),
            hash_policy=HASH_POLICIES[routing.hash] if routing.policy == "ecmp" or routing.has_daemon else 0,
            adjacencies=[self._adjacency(port) for port in ports if port in self._segment_of],
            loopbacks=self._loopbacks(name),
            daemon=routing.daemon if routing.has_daemon else None,
            as_number=self._systems.get(name) if routing.policy == "bgp" else None,
            controller=self._controller(name),
        )
        return self._recipes[name].make(site)

    def _controller(self, name: str) -> str | None:
        """Where the controller of a switch listens: its address on a segment that both are on."""
        controller = self.lab.nodes[name].controller
        if controller is None:
            return None
        shared = (self._segment_of[port] for port in self._ports[name] if port in self._segment_of)
        there = next(port for number in shared for port in self._segments[number].ports if port.node == controller.node)
        return f"tcp:{ip(4, self.addresses.addresses[there][4])}:{controller.port}"

    def _adjacency(self, port: Port) -> kinds.Adjacency:
        routers = [other for other in self._routers_on[self._segment_of[port]] if other != port]
        return kinds.Adjacency(
            interface=self._name(port),
            cost=self.lab.links[port.link].cost,
            is_stub=not routers,
            is_point_to_point=port in self._peers,
            versions=frozenset(self.addresses.addresses.get(port, {})),
            peers=tuple(peer for other in routers for peer in self._bgp_peers(port, other)),
        )

    def _bgp_peers(self, port: Port, other: Port) -> Iterator[kinds.Peer]:
        """The sessions with a router on the same segment, one for each version of IP that both have there."""
        if self.lab.routing.policy != "bgp" or other.node == port.node:
            return
        own = self.addresses.addresses.get(port, {})
        for version, value in self.addresses.addresses.get(other, {}).items():
            if version in own:
                yield kinds.Peer(version, ip(version, value), self._systems[other.node])

    def _name(self, port: Port) -> str:
        return self.lab.links[port.link].endpoints[port.side].interface

    def _interface(self, port: Port) -> Interface:
        link = self.lab.links[port.link]
        own = self.addresses.addresses.get(port, {})
        other = self._peers.get(port)
        neighbours = self.addresses.addresses.get(other, {}) if other else {}
        prefixes = self.addresses.prefixes[self._segment_of[port]] if own else {}
        return Interface(
            name=self._name(port),
            mac=self._macs[port],
            mtu=link.mtu,
            offload=link.offload,
            addresses=[f"{ip(version, value)}/{prefixes[version].length}" for version, value in own.items()],
            neighbours=[
                Neighbour(address=ip(version, value), mac=self._macs[other])
                for version, value in neighbours.items()
                if other
            ],
            egress=self.states[port.link][0].egress[port.side],
            wire_delay_ns=self.delays_ns.get(port.link, (0, 0))[port.side],
        )

    def links(self) -> list[Link]:
        """The links of the plan."""
        found = []
        for link in self.lab.links:
            a, b = (End(node=end.node, interface=end.interface) for end in link.endpoints)
            found.append(Link(name=link.name, ends=(a, b)))
        return found

    def hosts(self) -> list[HostsEntry]:
        """The names of all addresses, node by node."""
        return addresses.hosts(self.lab.nodes, self.named())

    def named(self) -> Iterator[NamedAddress]:
        """All addresses, node by node: its own first, then those of its interfaces."""
        for name, ports in self._ports.items():
            for version, value in self.addresses.loopbacks.get(name, {}).items():
                yield NamedAddress(name, "", version, ip(version, value))
            for port in ports:
                interface = self._name(port)
                for version, value in self.addresses.addresses.get(port, {}).items():
                    yield NamedAddress(name, interface, version, ip(version, value))
