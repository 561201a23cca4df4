"""`tree`: a balanced tree of switching nodes with hosts as its leaves, as Mininet's."""

from __future__ import annotations

from itertools import pairwise
from typing import Annotated

from dilaton.lab.generator import Generator, count, in_layers
from dilaton.lab.kinds import HOST, ROUTER
from dilaton.lab.parts.nodes import Node
from dilaton.lab.topology import Topology


class Source(Generator):
    """Routers `r1`, `r2`, … in `depth` layers, each with `fanout` below it, and hosts `h1`, `h2`, … below the last."""

    depth: Annotated[int, count("a depth", 1, 16)] = 1
    fanout: Annotated[int, count("a fan-out", 1, 1024)] = 2

    def parts(self) -> int:
        """How many nodes and links there are."""
        return 2 * sum(int(self.fanout**level) for level in range(self.depth + 1))

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        sizes = [self.fanout**level for level in range(self.depth)]
        layers = [[f"r{sum(sizes[:level]) + number + 1}" for number in range(size)] for level, size in enumerate(sizes)]
        layers.append([f"h{number + 1}" for number in range(self.fanout**self.depth)])
        *routers, hosts = layers
        nodes = {name: Node(kind=ROUTER, group="fabric") for layer in routers for name in layer}
        nodes |= {name: Node(kind=HOST, group="host") for name in hosts}
        links = [self.host_link(host, routers[-1][place // self.fanout]) for place, host in enumerate(hosts)]
        for upper, lower in pairwise(routers):
            links += [self.fabric_link(upper[place // self.fanout], name) for place, name in enumerate(lower)]
        return Topology(nodes, links, in_layers(*layers))
