"""`dumbbell`: senders and receivers on either side of one link, the bottleneck."""

from __future__ import annotations

from typing import Annotated

from dilaton.lab.generator import Generator, count
from dilaton.lab.kinds import HOST, ROUTER
from dilaton.lab.parts.nodes import Node
from dilaton.lab.topology import Topology


class Source(Generator):
    """Hosts `s0`, `s1`, … on router `left`, as many `d0`, `d1`, … on router `right`, and a link between the routers."""

    pairs: Annotated[int, count("a number of pairs", 1)] = 1

    def parts(self) -> int:
        """How many nodes and links there are."""
        return 4 * self.pairs + 3

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        hosts = [f"{side}{number}" for side in "sd" for number in range(self.pairs)]
        nodes = {name: Node(kind=HOST, group="host") for name in hosts}
        nodes |= {name: Node(kind=ROUTER, group="fabric") for name in ("left", "right")}
        links = [self.host_link(name, "left" if name.startswith("s") else "right") for name in hosts]
        links.append(self.fabric_link("left", "right"))
        middle = (self.pairs - 1) / 2
        positions = {"left": (1.0, -middle), "right": (2.5, -middle)}
        for number in range(self.pairs):
            positions |= {f"s{number}": (0.0, -float(number)), f"d{number}": (3.5, -float(number))}
        return Topology(nodes, links, positions)
