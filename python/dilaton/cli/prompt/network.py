"""The network of a plan as the `lab>` prompt shows it. Pure."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from dilaton.measure.numbers import counted
from dilaton.plan.model import HostTree, Node, Plan


@dataclass(frozen=True)
class Network:
    """The nodes and links of a plan."""

    plan: Plan

    @property
    def nodes(self) -> list[str]:
        """All names, in the lab's order."""
        return [node.name for node in self.plan.nodes]

    @property
    def hosts(self) -> list[str]:
        """The nodes with addresses that do not forward."""
        return [node.name for node in self.plan.nodes if _addresses(node) and not _forwards(node)]

    def has_tree_of_host(self, name: str) -> bool:
        """Whether a node has the programs of this machine, and not those of an image."""
        return any(node.name == name and isinstance(node.image, HostTree) for node in self.plan.nodes)

    def greeting(self) -> str:
        """What somebody is told who comes to the prompt."""
        counts = f"{counted(len(self.plan.nodes), 'node')}, {counted(len(self.plan.links), 'link')}"
        return f"{self.plan.lab}: {counts}; help lists what can be typed, exit leaves"

    def connections(self) -> Iterator[str]:
        """A line for each node: its interfaces, each with what is at the other end."""
        others: dict[tuple[str, str], str] = {}
        for link in self.plan.links:
            for end, other in (link.ends, link.ends[::-1]):
                others[end.node, end.interface] = f"{end.interface}:{other.node}-{other.interface}"
        for node in self.plan.nodes:
            shown = [others.get((node.name, interface.name), interface.name) for interface in node.interfaces]
            yield " ".join([node.name, *shown])

    def addresses(self) -> Iterator[str]:
        """A line for each node: its addresses."""
        for node in self.plan.nodes:
            yield " ".join([node.name, *_addresses(node)])

    def between(self, a: str, b: str) -> list[str]:
        """The names of the links between two nodes.

        Raises:
            ValueError: there are none.
        """
        found = [link.name for link in self.plan.links if {end.node for end in link.ends} == {a, b}]
        if not found:
            raise ValueError(f"{a} {b}: no link between these; net shows all")
        return found


def _addresses(node: Node) -> list[str]:
    own = [f"{interface.name}:{address}" for interface in node.interfaces for address in interface.addresses]
    return [*own, *(f"lo:{address}" for address in node.loopback)]


def _forwards(node: Node) -> bool:
    return node.sysctls.get("net/ipv4/ip_forward") == "1"
