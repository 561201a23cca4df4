"""OSPF by BIRD and by FRR in a network of the Internet Topology Zoo: its paths, and how long it takes to find them.

    .venv/bin/python benches/ospf.py [--network topozoo/TataNld] [--daemons bird,frr] [--out DIR] [--figure FILE.svg]

Every router runs a daemon and `ip monitor`, which tells of each change of its routes with its virtual instant. When
the network has settled, all tables are compared with the cheapest paths of the plan; then the link that lies on most of
them goes, and the tables are compared with the cheapest paths of what is left. All links cost the same, so that paths
are equal wherever they have equally many hops; all of these have to be found. It needs the package topohub.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, ip_interface
from pathlib import Path
from typing import Any

import networkx
from matplotlib.figure import Figure

from dilaton.lab import loads
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.model import Plan
from dilaton.report.style import BLUE, ORANGE, WIDTH_IN, applied

BEFORE_S, CUT_S, AFTER_S = 60, 65, 95
"""When tables are read, the link goes, and tables are read again. OSPF's hello and dead intervals are 10 and 40 s, but
both ends of a link see at once that it is down."""

NOW = "date +%Y-%m-%dT%H:%M:%S.%N"
STAMP = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6})")
COLOURS = {"bird": BLUE, "frr": ORANGE}

Table = dict[IPv4Network, frozenset[str]]
"""The destinations of a router, each with the gateways of its equal paths."""


@dataclass(frozen=True)
class Network:
    """The routers of a plan, the addresses by which each reaches its neighbours, and the loopback of each."""

    graph: networkx.Graph[str]
    gateways: dict[tuple[str, str], str]
    interfaces: dict[tuple[str, str], str]
    loopbacks: dict[str, str]

    @classmethod
    def of(cls, plan: Plan) -> Network:
        """The network that a plan describes."""
        graph: networkx.Graph[str] = networkx.Graph()
        gateways, interfaces = {}, {}
        places = {(node.name, interface.name): interface for node in plan.nodes for interface in node.interfaces}
        for link in plan.links:
            one, other = link.ends
            graph.add_edge(one.node, other.node)
            for here, there in ((one, other), (other, one)):
                far = places[there.node, there.interface].addresses[0]
                gateways[here.node, there.node] = str(ip_interface(far).ip)
                interfaces[here.node, there.node] = here.interface
        return cls(graph, gateways, interfaces, {node.name: node.loopback[0].split("/")[0] for node in plan.nodes})

    def busiest_link(self) -> tuple[str, str]:
        """The link on most of the cheapest paths, of those without which the network still hangs together."""
        bridges = set(networkx.bridges(self.graph))
        loads_of_links = networkx.edge_betweenness_centrality(self.graph)
        spare = {ends: load for ends, load in loads_of_links.items() if not {ends, ends[::-1]} & bridges}
        return max(spare, key=lambda ends: spare[ends])

    def wrong(self, tables: dict[str, Table], cut: tuple[str, str] | None = None) -> int:
        """How many of the ways from router to router are not all the cheapest ones, and no others."""
        graph = self.graph.copy()
        if cut:
            graph.remove_edge(*cut)
        distances = dict(networkx.all_pairs_shortest_path_length(graph))
        networks = {name: around(address) for name, address in self.loopbacks.items()}
        count = 0
        for start, table in tables.items():
            for to in set(graph) - {start}:
                near = [next_ for next_ in graph[start] if distances[next_][to] < distances[start][to]]
                found = next((table[network] for network in networks[to] if network in table), frozenset[str]())
                count += found != {self.gateways[start, hop] for hop in near}
        return count


def around(address: str) -> list[IPv4Network]:
    """All networks that an address is in, the longest prefix first."""
    return [IPv4Network((address, length), strict=False) for length in range(32, -1, -1)]


def read_table(text: str) -> Table:
    """What `ip -j route` prints."""
    table = {}
    for route in json.loads(text):
        hops = [hop["gateway"] for hop in route.get("nexthops", [route]) if "gateway" in hop]
        table[prefix(route["dst"])] = frozenset(hops)
    return table


def prefix(destination: str) -> IPv4Network:
    """The network that a route leads to."""
    return IPv4Network("0.0.0.0/0" if destination == "default" else destination)


def lab(network: str, routing: str | dict[str, str], runs: list[dict[str, Any]], tdf: str = "1") -> str:
    """The lab of a network by its name."""
    topology = {"topohub": network, "rate": "1Gbit"}
    pools = {"loopback": "192.168.0.0/16"}
    whole = {
        "name": "ospf",
        "time": {"tdf": tdf},
        "topology": topology,
        "defaults": {"kind": "router"},
        "routing": routing,
        "addressing": pools,
        "run": runs,
    }
    return json.dumps(whole)


def runs_of(network: Network, cut: tuple[str, str]) -> list[dict[str, Any]]:
    """What routers run beside their daemons."""
    down = f"{NOW}; ip link set {network.interfaces[cut]} down"
    runs: list[dict[str, Any]] = [{"on": cut[0], "name": "cut", "exec": ["sh", "-c", down], "start": f"{CUT_S}s"}]
    for name in network.graph:
        monitor = f"{NOW}; exec ip -ts -o monitor route"
        runs.append({"on": name, "name": f"monitor-{name}", "exec": ["sh", "-c", monitor], "background": True})
        for when, start_s in (("before", BEFORE_S), ("after", AFTER_S)):
            table = "ip -4 -j route show"
            runs.append({"on": name, "name": f"{when}-{name}", "exec": table, "start": f"{start_s}s"})
    return runs


def instants(path: Path) -> list[datetime]:
    """All instants in an output, in its order."""
    return [datetime.fromisoformat(text) for text in STAMP.findall(path.read_text())]


@dataclass(frozen=True)
class Convergence:
    """Virtual seconds until the last change of its routes at each router: from the start, and from the cut on."""

    start_s: list[float]
    cut_s: list[float]


def run(network: str, daemon: str, out: Path, tdf: str) -> Convergence:
    """Runs one daemon, and says what it found."""
    plan = compile_plan(loads(lab(network, "ecmp", []), "ospf"))
    known = Network.of(plan)
    static = {
        node.name: {prefix(route.to): frozenset(hop.via for hop in route.hops) for route in node.routes}
        for node in plan.nodes
    }
    cut = known.busiest_link()
    path = out / f"{daemon}.json"
    path.write_text(lab(network, {"policy": "ospf", "daemon": daemon}, runs_of(known, cut), tdf))
    if not (out / daemon / "run.json").is_file():
        command = [sys.executable, "-m", "dilaton", "run", str(path), "--out", str(out / daemon)]
        with path.with_suffix(".log").open("w") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log)
    outputs = {name: out / daemon / "nodes" / name for name in known.graph}
    before, after = (
        {name: read_table((folder / f"{when}-{name}.stdout").read_text()) for name, folder in outputs.items()}
        for when in ("before", "after")
    )
    [gone] = instants(outputs[cut[0]] / "cut.stdout")
    starts, cuts = [], []
    for name, folder in outputs.items():
        begin, *changes = instants(folder / f"monitor-{name}.stdout")
        starts.append(max((at - begin).total_seconds() for at in changes if at < gone))
        cuts += [(at - gone).total_seconds() for at in changes if at >= gone][-1:]
    pairs = len(known.graph) * (len(known.graph) - 1)
    record = json.loads((out / daemon / "run.json").read_text())
    print(
        f"| {daemon} | {len(known.graph)} | {known.graph.number_of_edges()} | {known.wrong(static)} "
        f"| {known.wrong(before)} | {known.wrong(after, cut)} | {pairs} | {max(starts):.2f} | {len(cuts)} "
        f"| {max(cuts):.2f} | {record['time']['virtual_s']:.0f} | {record['time']['host_s']:.0f} |",
        flush=True,
    )
    return Convergence(starts, cuts)


def draw(found: dict[str, Convergence], target: str) -> None:
    """Which share of the routers had made their last change, over virtual time."""
    with applied():
        figure = Figure(figsize=(WIDTH_IN, 2.4), layout="constrained")
        left, right = figure.subplots(1, 2, sharey=True)
        for daemon, times in found.items():
            left.ecdf(times.start_s, color=COLOURS[daemon], label={"bird": "BIRD", "frr": "FRR"}[daemon])
            right.ecdf(times.cut_s, color=COLOURS[daemon])
        left.set(xlabel="virtual time since the start (s)", ylabel="share of routers settled", xlim=(0, None))
        right.set(xlabel="virtual time since the link went (s)", xlim=(0, None))
        left.legend(loc="upper left")
        figure.savefig(target, metadata={"Date": None})


def main() -> None:
    """Prints the table, and draws the figure where one is wanted."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("--network", default="topozoo/TataNld")
    parser.add_argument("--daemons", default="bird,frr")
    parser.add_argument(
        "--tdf", default="10", help="that starting the daemons takes no part of it (default %(default)s)"
    )
    parser.add_argument("--out", type=Path, help="where runs are kept; one that is there is not made again")
    parser.add_argument("--figure")
    chosen = parser.parse_args()
    print("| daemon | routers | links | wrong, plan | wrong, settled | wrong, after the cut | of pairs", end=" ")
    print("| settled, s | routers that change | settled again, s | virtual s | host s |")
    print("| --- " * 12 + "|")
    with tempfile.TemporaryDirectory() as directory:
        out = chosen.out or Path(directory)
        out.mkdir(parents=True, exist_ok=True)
        found = {daemon: run(chosen.network, daemon, out, chosen.tdf) for daemon in chosen.daemons.split(",")}
    if chosen.figure:
        draw(found, chosen.figure)


if __name__ == "__main__":
    main()
