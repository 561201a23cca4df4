"""Trees and tori, as in Mininet."""

from __future__ import annotations

from typing import Any

from mininet.topo import Topo


class TreeTopo(Topo):
    """A tree of switches with hosts as its leaves."""

    def build(self, depth: int = 1, fanout: int = 2) -> None:
        """Makes it."""
        self.host_number = self.switch_number = 1
        self.addTree(depth, fanout)

    def addTree(self, depth: int, fanout: int) -> str:
        """Adds a tree and returns the name of its root."""
        if depth == 0:
            name = self.addHost(f"h{self.host_number}")
            self.host_number += 1
            return name
        name = self.addSwitch(f"s{self.switch_number}")
        self.switch_number += 1
        for _ in range(fanout):
            self.addLink(name, self.addTree(depth - 1, fanout))
        return name


class TorusTopo(Topo):
    """Switches in a grid whose sides are joined, with `n` hosts on each."""

    def build(self, x: int, y: int, n: int = 1, **_opts: Any) -> None:
        """Makes it."""
        if x < 3 or y < 3:
            raise ValueError("a torus has at least 3 rows of 3")
        for row in range(x):
            for column in range(y):
                place = f"{row + 1}x{column + 1}"
                switch = self.addSwitch(f"s{place}", dpid=f"{row + 1:01x}{column + 1:015x}")
                for own in range(n):
                    self.addLink(self.addHost(f"h{place}" if n == 1 else f"h{place}x{own + 1}"), switch)
        for row in range(x):
            for column in range(y):
                here = f"s{row + 1}x{column + 1}"
                self.addLink(here, f"s{row + 1}x{(column + 1) % y + 1}")
                self.addLink(here, f"s{(row + 1) % x + 1}x{column + 1}")
