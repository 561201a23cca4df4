"""`Topo` and the topologies that Mininet has under names, with the same names of methods, nodes and parameters."""

from __future__ import annotations

from typing import Any

from mininet.util import natural


class Topo:
    """A network of hosts and switches; a subclass makes it in `build`."""

    def __init__(self, *args: Any, **params: Any) -> None:
        """Makes the network; `hopts`, `sopts` and `lopts` are options of all hosts, switches and links."""
        self.hopts = params.pop("hopts", {})
        self.sopts = params.pop("sopts", {})
        self.lopts = params.pop("lopts", {})
        self._nodes: dict[str, dict[str, Any]] = {}
        self._links: list[tuple[str, str, dict[str, Any]]] = []
        self.ports: dict[str, dict[int, tuple[str, int]]] = {}
        self.build(*args, **params)

    def build(self, *args: Any, **params: Any) -> None:
        """Overridden by subclasses."""

    def addNode(self, name: str, **opts: Any) -> str:
        """Adds a node and returns its name."""
        self._nodes[str(name)] = opts
        return str(name)

    def addHost(self, name: str, **opts: Any) -> str:
        """Adds a host and returns its name."""
        return self.addNode(name, **{**self.hopts, **opts})

    def addSwitch(self, name: str, **opts: Any) -> str:
        """Adds a switch and returns its name."""
        return self.addNode(name, **{**self.sopts, **opts, "isSwitch": True})

    def addLink(
        self, node1: str, node2: str, port1: int | None = None, port2: int | None = None, key: Any = None, **opts: Any
    ) -> Any:
        """Adds a link and returns its key, by default its number."""
        for node in (node1, node2):
            if node not in self._nodes:
                raise ValueError(f"addLink: there is no node {node}")
        port1, port2 = self.addPort(node1, node2, port1, port2)
        info = {**self.lopts, **opts, "node1": node1, "node2": node2, "port1": port1, "port2": port2}
        self._links.append((node1, node2, info))
        return len(self._links) - 1 if key is None else key

    def addPort(self, src: str, dst: str, sport: int | None = None, dport: int | None = None) -> tuple[int, int]:
        """Takes a port on either side, the next free one by default: from 0 on hosts, from 1 on switches."""
        found = []
        for node, port, other in ((src, sport, dst), (dst, dport, src)):
            taken = self.ports.setdefault(node, {})
            if port is None:
                port = len(taken) + (1 if self.isSwitch(node) else 0)
            taken[port] = (other, -1)
            found.append(port)
        return found[0], found[1]

    def isSwitch(self, name: str) -> bool:
        """Whether a node is a switch."""
        return bool(self._nodes[name].get("isSwitch", False))

    def nodes(self, sort: bool = True) -> list[str]:
        """The names of all nodes."""
        return self.sorted(list(self._nodes)) if sort else list(self._nodes)

    def hosts(self, sort: bool = True) -> list[str]:
        """The names of hosts."""
        return [name for name in self.nodes(sort) if not self.isSwitch(name)]

    def switches(self, sort: bool = True) -> list[str]:
        """The names of switches."""
        return [name for name in self.nodes(sort) if self.isSwitch(name)]

    def links(self, sort: bool = False, withKeys: bool = False, withInfo: bool = False) -> list[Any]:
        """The links as pairs of names, with their number and options if wanted."""
        rows = [
            (a, b, *([number] if withKeys else []), *([info] if withInfo else []))
            for number, (a, b, info) in enumerate(self._links)
        ]
        return sorted(rows, key=lambda row: row[:2]) if sort else rows

    def nodeInfo(self, name: str) -> dict[str, Any]:
        """The options of a node."""
        return self._nodes[name]

    def setNodeInfo(self, name: str, info: dict[str, Any]) -> None:
        """Replaces the options of a node."""
        self._nodes[name] = info

    def linkInfo(self, src: str, dst: str, key: Any = None) -> dict[str, Any]:
        """The options of the (first) link between two nodes."""
        return next(info for a, b, info in self._links if {a, b} == {src, dst})

    def port(self, src: str, dst: str) -> tuple[int, int]:
        """The ports of the link between two nodes."""
        info = self.linkInfo(src, dst)
        ports = (info["port1"], info["port2"])
        return ports if info["node1"] == src else (ports[1], ports[0])

    @staticmethod
    def sorted(names: list[str]) -> list[str]:
        """Names in natural order: s2 before s10."""
        return sorted(names, key=natural)


class SingleSwitchTopo(Topo):
    """`k` hosts on one switch."""

    def build(self, k: int = 2, **_opts: Any) -> None:
        """Makes it."""
        self.k = k
        switch = self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost(f"h{number}"), switch)


class SingleSwitchReversedTopo(Topo):
    """`k` hosts on one switch, whose ports are in reverse order."""

    def build(self, k: int = 2) -> None:
        """Makes it."""
        self.k = k
        switch = self.addSwitch("s1")
        for number in range(1, k + 1):
            self.addLink(self.addHost(f"h{number}"), switch, port1=0, port2=k - number + 1)


class MinimalTopo(SingleSwitchTopo):
    """Two hosts on one switch."""

    def build(self) -> None:  # type: ignore[override]
        """Makes it."""
        super().build(k=2)


class LinearTopo(Topo):
    """`k` switches in a row with `n` hosts on each."""

    def build(self, k: int = 2, n: int = 1, sopts: dict[str, Any] | None = None, **_opts: Any) -> None:
        """Makes it."""
        self.k, self.n = k, n
        last = None
        for number in range(1, k + 1):
            switch = self.addSwitch(f"s{number}", **(sopts or {}))
            for own in range(1, n + 1):
                self.addLink(self.addHost(f"h{number}" if n == 1 else f"h{own}s{number}"), switch)
            if last is not None:
                self.addLink(switch, last)
            last = switch
