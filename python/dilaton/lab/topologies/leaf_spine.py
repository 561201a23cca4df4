"""`leaf-spine`: a Clos network of two layers."""

from __future__ import annotations

from typing import Annotated

from dilaton.lab.generator import Generator, count, in_layers
from dilaton.lab.kinds import HOST, ROUTER
from dilaton.lab.parts.nodes import Node
from dilaton.lab.topology import Topology


class Source(Generator):
    """Spines `spine1`, …, leaves `leaf1`, …, all linked with each other, and `hosts` hosts `h1`, … on each leaf."""

    spines: Annotated[int, count("a number of spines", 1, 1000)] = 2
    leaves: Annotated[int, count("a number of leaves", 1, 1000)] = 4
    hosts: Annotated[int, count("a number of hosts", 0, 1000)] = 2

    def parts(self) -> int:
        """How many nodes and links there are."""
        return self.spines * (self.leaves + 1) + self.leaves * (2 * self.hosts + 1)

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        spines = [f"spine{number + 1}" for number in range(self.spines)]
        leaves = [f"leaf{number + 1}" for number in range(self.leaves)]
        hosts = [f"h{number + 1}" for number in range(self.leaves * self.hosts)]
        nodes = {
            name: Node(kind=kind, group=group)
            for names, kind, group in ((spines, ROUTER, "spine"), (leaves, ROUTER, "leaf"), (hosts, HOST, "host"))
            for name in names
        }
        links = [self.host_link(host, leaves[place // self.hosts]) for place, host in enumerate(hosts)]
        links += [self.fabric_link(leaf, spine) for leaf in leaves for spine in spines]
        return Topology(nodes, links, in_layers(spines, leaves, hosts) if hosts else in_layers(spines, leaves))
