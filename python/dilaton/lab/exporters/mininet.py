"""Mininet: a topology file for `mn --custom`, with TCLink's parameters."""

from __future__ import annotations

from dilaton.lab.exporters.missing import missing
from dilaton.lab.impairments import PacketLimit
from dilaton.lab.kinds import ROUTER
from dilaton.lab.links import Link
from dilaton.lab.model import Lab
from dilaton.lab.segments import is_switch, without_lans

HEAD = '''"""The network of the lab {name}: mn --custom THIS-FILE --topo lab --link tc"""

from mininet.topo import Topo


class LabTopo(Topo):
    def build(self):
'''
TAIL = """

topos = {"lab": LabTopo}
"""
MEGA = 10**6


def write(lab: Lab) -> tuple[str, list[str]]:
    """The text, and what it lacks. A router is a host there, whose addresses and routes remain to be set."""
    flat = without_lans(lab)
    lines = []
    for name, node in flat.nodes.items():
        lines.append(f"        self.{'addSwitch' if is_switch(node) else 'addHost'}({name!r})")
    for link in flat.links:
        a, b = link.endpoints
        options = _options(link)
        lines.append(
            f"        self.addLink({a.node!r}, {b.node!r}, intfName1={f'{a.node}-{a.interface}'!r}, "
            f"intfName2={f'{b.node}-{b.interface}'!r}{''.join(f', {key}={value!r}' for key, value in options.items())})"
        )
    lacks = missing(lab, {"kind"}, {"rate_bit_per_s", "delay.mean_ns", "loss.random", "queue.limit"})
    if any(not isinstance(link.queue.limit, PacketLimit | None) for link in flat.links):
        lacks.insert(0, "limits of queues other than in packets")
    if any(node.kind == ROUTER for node in flat.nodes.values()):
        lacks.insert(0, "forwarding and routes of routers")
    return HEAD.format(name=lab.name) + "\n".join(lines) + TAIL, lacks


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
