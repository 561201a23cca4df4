"""`parking-lot`: one long path over several bottlenecks, each of which is also crossed by a short one."""

from __future__ import annotations

from typing import Annotated

from dilaton.lab.generator import Generator, count
from dilaton.lab.kinds import HOST, ROUTER
from dilaton.lab.parts.nodes import Node
from dilaton.lab.topology import Topology


class Source(Generator):
    """Routers `r0`, `r1`, … in a row with `bottlenecks` links between them.

    The long path is from host `s0` on the first to `d0` on the last; bottleneck i (from 1), between `r(i-1)` and `ri`,
    has the short path from `si` to `di`.
    """

    bottlenecks: Annotated[int, count("a number of bottlenecks", 1)] = 2

    def parts(self) -> int:
        """How many nodes and links there are."""
        return 6 * self.bottlenecks + 5

    def make(self, seed: int) -> Topology:
        """The network; nothing in it is drawn by chance."""
        last = self.bottlenecks
        places = {"s0": 0, "d0": last}
        for number in range(1, last + 1):
            places |= {f"s{number}": number - 1, f"d{number}": number}
        nodes = {name: Node(kind=HOST, group="host") for name in places}
        nodes |= {f"r{number}": Node(kind=ROUTER, group="fabric") for number in range(last + 1)}
        links = [self.host_link(name, f"r{place}") for name, place in places.items()]
        links += [self.fabric_link(f"r{number}", f"r{number + 1}") for number in range(last)]
        positions = {f"r{number}": (2.0 * number, 0.0) for number in range(last + 1)}
        positions |= {"s0": (-1.0, 0.0), "d0": (2.0 * last + 1.0, 0.0)}
        for number in range(1, last + 1):
            positions |= {f"s{number}": (2.0 * number - 1.7, 1.0), f"d{number}": (2.0 * number - 0.3, -1.0)}
        return Topology(nodes, links, positions)
