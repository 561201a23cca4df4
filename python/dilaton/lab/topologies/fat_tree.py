"""`fat-tree`: the data centre network of Al-Fares, Loukissas and Vahdat (SIGCOMM'08, section 3).

Of switches with k ports it has k pods, each of k/2 edge and k/2 aggregation switches, all linked with each other;
(k/2)^2 core switches, of which number i is linked with aggregation switch i / (k/2) of every pod; and k/2 hosts on each
edge switch: k^3/4 hosts in all, with as much capacity between any two halves of them as they can use.
"""

from __future__ import annotations

from typing import Annotated

from pydantic import BeforeValidator

from dilaton.lab.generator import Generator, in_layers
from dilaton.lab.kinds import HOST, ROUTER
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text import units
from dilaton.lab.topology import Topology

K_MAX = 48


def _parse_k(value: object) -> int:
    k = units.parse_count(value, "the k of a fat tree", 2, K_MAX)
    if k % 2:
        raise ValueError(
            f"{k}: the k of a fat tree must be even, since half the ports of a switch lead up; write {k + 1}"
        )
    return k


class Source(Generator):
    """Routers `core1`, …, `agg1`, … and `edge1`, … pod by pod, and hosts `h1`, … edge by edge."""

    k: Annotated[int, BeforeValidator(_parse_k)]

    def parts(self) -> int:
        """How many nodes and links there are."""
        return self.k**3 + 5 * self.k**2 // 4

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        half = self.k // 2
        cores = [f"core{number + 1}" for number in range(half * half)]
        aggregations = [f"agg{number + 1}" for number in range(self.k * half)]
        edges = [f"edge{number + 1}" for number in range(self.k * half)]
        hosts = [f"h{number + 1}" for number in range(self.k * half * half)]
        layers = (
            (cores, ROUTER, "core"),
            (aggregations, ROUTER, "aggregation"),
            (edges, ROUTER, "edge"),
            (hosts, HOST, "host"),
        )
        nodes = {name: Node(kind=kind, group=group) for names, kind, group in layers for name in names}
        links = [self.host_link(host, edges[place // half]) for place, host in enumerate(hosts)]
        for place, aggregation in enumerate(aggregations):
            pod = place // half
            links += [self.fabric_link(edge, aggregation) for edge in edges[pod * half : (pod + 1) * half]]
        for place, aggregation in enumerate(aggregations):
            group = place % half
            links += [self.fabric_link(aggregation, core) for core in cores[group * half : (group + 1) * half]]
        return Topology(nodes, links, in_layers(cores, aggregations, edges, hosts))
