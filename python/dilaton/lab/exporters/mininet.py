"""Mininet: a topology file for `mn --custom`, with TCLink's parameters, and the addresses and routes as planned."""

from __future__ import annotations

from collections.abc import Mapping

from dilaton.lab.exporters.configured import Configured, Route
from dilaton.lab.exporters.missing import missing
from dilaton.lab.kinds import CONTROLLER, NAT, OVS
from dilaton.lab.model import Lab
from dilaton.lab.parts.impairments import PacketLimit
from dilaton.lab.parts.links import Link
from dilaton.lab.segments import is_switch, without_lans

HEAD = '''"""The network of the lab {name}: mn --custom THIS-FILE --topo lab --link tc"""

from mininet.node import Node
from mininet.topo import Topo


class Planned(Node):
    """A node with the addresses and routes that were planned for it."""

    def config(self, addresses=(), routes=(), **params):
        super().config(**params)
        for interface, address in addresses:
            if ":" in address:
                self.cmd("ip address replace", address, "dev", interface)
            else:
                self.setIP(address, intf=interface)
        for route in routes:
            self.cmd("ip", route)


class PlannedRouter(Planned):
    """One that forwards packets."""

    def config(self, **params):
        self.cmd("sysctl -w net.ipv4.ip_forward=1 net.ipv6.conf.all.forwarding=1")
        super().config(**params)


class LabTopo(Topo):
    def build(self):
'''
TAIL = """

topos = {"lab": LabTopo}
"""
MEGA = 10**6
LOST_KINDS = (NAT, OVS, CONTROLLER)


def write(lab: Lab, configured: Mapping[str, Configured]) -> tuple[str, list[str]]:
    """The text, and what it lacks."""
    flat = without_lans(lab)
    lines = []
    for name, node in flat.nodes.items():
        if is_switch(node):
            lines.append(f"        self.addSwitch({name!r})")
        else:
            lines += _host(name, configured[name])
    for link in flat.links:
        a, b = link.endpoints
        options = _options(link)
        lines.append(
            f"        self.addLink({a.node!r}, {b.node!r}, intfName1={_interface(a.node, a.interface)!r}, "
            f"intfName2={_interface(b.node, b.interface)!r}"
            f"{''.join(f', {key}={value!r}' for key, value in options.items())})"
        )
    kept = {"rate_bit_per_s", "delay.mean_ns", "loss.random", "queue.limit"}
    lacks = missing(lab, {"kind"}, kept, addresses=True)
    if any(not isinstance(link.queue.limit, PacketLimit | None) for link in flat.links):
        lacks.insert(0, "limits of queues other than in packets")
    if any(node.shares for node in configured.values()):
        lacks.insert(0, "how flows are divided among equal routes")
    kinds = dict.fromkeys(node.kind for node in flat.nodes.values() if node.kind in LOST_KINDS)
    return HEAD.format(name=lab.name) + "\n".join(lines) + TAIL, [*(f"the kind {kind}" for kind in kinds), *lacks]


def _interface(node: str, interface: str) -> str:
    return f"{node}-{interface}"


def _host(name: str, configured: Configured) -> list[str]:
    """The lines that add a host or router."""
    addresses = [
        (_interface(name, interface), address)
        for interface, listed in configured.addresses.items()
        for address in listed
    ]
    kind = "PlannedRouter" if configured.forwards else "Planned"
    # Without `ip=None` Mininet gives the first interface an address of its own.
    lines = ["        self.addHost(", f"            {name!r},", f"            cls={kind},", "            ip=None,"]
    for key, values in (("addresses", addresses), ("routes", [_route(name, route) for route in configured.routes])):
        if values:
            lines += [f"            {key}=[", *(f"                {value!r}," for value in values), "            ],"]
    return [*lines, "        )"]


def _route(node: str, route: Route) -> str:
    """The arguments of ip(8)."""
    hops = [f"via {via} dev {_interface(node, interface)}" for via, interface in route.hops]
    way = hops[0] if len(hops) == 1 else " ".join(f"nexthop {hop}" for hop in hops)
    family = "-6 " if ":" in route.hops[0][0] else ""
    return f"{family}route replace {route.to} {way}"


def _options(link: Link) -> dict[str, object]:
    """The keyword arguments of TCLink: Mbit/s, time with unit, percent, packets."""
    options: dict[str, object] = {}
    if link.rate_bit_per_s is not None:
        options["bw"] = link.rate_bit_per_s / MEGA
    if link.delay_ns:
        options["delay"] = f"{link.delay_ns / 1000:.15g}us"
    if link.loss.random:
        options["loss"] = link.loss.random * 100
    if isinstance(link.queue.limit, PacketLimit):
        options["max_queue_size"] = link.queue.limit.packets
    return options
