"""Generators make the networks that their names say, and always the same ones."""

from __future__ import annotations

import subprocess
import sys

import networkx
import pytest

from dilaton.lab import LabError, Topology, loads
from dilaton.lab.topology import parse_topology
from tests.conftest import environment

SMALL: dict[str, dict[str, str]] = {
    "line": {"nodes": "5"},
    "ring": {"nodes": "5"},
    "star": {"leaves": "5"},
    "tree": {"depth": "2", "fanout": "3"},
    "full-mesh": {"nodes": "5"},
    "grid": {"rows": "2", "columns": "3"},
    "torus": {"rows": "3", "columns": "4"},
    "dumbbell": {"pairs": "3"},
    "parking-lot": {"bottlenecks": "3"},
    "leaf-spine": {"spines": "2", "leaves": "3", "hosts": "4"},
    "fat-tree": {"k": "4"},
    "jellyfish": {"nodes": "20", "degree": "3"},
    "waxman": {"nodes": "20"},
    "barabasi-albert": {"nodes": "20", "links": "2"},
}
COUNTS = {
    "line": (5, 4), "ring": (5, 5), "star": (6, 5), "tree": (13, 12), "full-mesh": (5, 10), "grid": (6, 7),
    "torus": (12, 24), "dumbbell": (8, 7), "parking-lot": (12, 11), "leaf-spine": (17, 18), "fat-tree": (36, 48),
    "jellyfish": (20, 30), "barabasi-albert": (20, 36),
}  # fmt: skip
"""Nodes and links."""


REGULAR = {
    "line": networkx.path_graph(5),
    "ring": networkx.cycle_graph(5),
    "star": networkx.star_graph(5),
    "full-mesh": networkx.complete_graph(5),
    "grid": networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(3, 4), ordering="sorted"),
    "torus": networkx.convert_node_labels_to_integers(networkx.grid_2d_graph(3, 4, periodic=True), ordering="sorted"),
}
"""Graphs of as many nodes as these are made with."""


def make(name: str, lab_seed: int = 1, **fields: str) -> Topology:
    return parse_topology({"generate": name, **SMALL[name], **fields}, lab_seed, ".")


@pytest.mark.parametrize("name", COUNTS)
def test_a_network_has_the_nodes_and_links_that_its_shape_has(name: str) -> None:
    topology = make(name)
    assert (len(topology.nodes), len(topology.links)) == COUNTS[name]


@pytest.mark.parametrize("name", SMALL)
def test_every_network_is_connected_and_without_double_links(name: str) -> None:
    graph = make(name).to_networkx()
    assert networkx.is_connected(graph)
    assert networkx.Graph(graph).number_of_edges() == graph.number_of_edges()


@pytest.mark.parametrize("name", REGULAR)
def test_a_regular_network_is_the_graph_of_its_name(name: str) -> None:
    fields = {"nodes": 5, "leaves": 5, "rows": 3, "columns": 4}
    topology = make(name, **{key: str(fields[key]) for key in SMALL[name]})
    edges = {tuple(sorted(int(end.node.removeprefix("n")) for end in link.endpoints)) for link in topology.links}
    assert edges == {tuple(sorted(edge)) for edge in REGULAR[name].edges}


def test_only_networks_that_chance_draws_wait_for_networkx() -> None:
    # To import it takes longer than to plan a hundred nodes.
    code = "import importlib, sys; [importlib.import_module(f'dilaton.lab.topologies.{name}') for name in sys.argv[1:]]"
    code += "; sys.exit('networkx' in sys.modules)"
    drawn = {"jellyfish", "waxman", "barabasi-albert"}
    names = [name.replace("-", "_") for name in SMALL if name not in drawn]
    subprocess.run([sys.executable, "-c", code, *names], env=environment(), check=True)


@pytest.mark.parametrize("name", SMALL)
def test_the_same_seed_makes_the_same_network(name: str) -> None:
    assert make(name, 7) == make(name, 7)


@pytest.mark.parametrize("name", ["jellyfish", "waxman", "barabasi-albert"])
def test_another_seed_makes_another_network_and_the_own_one_wins(name: str) -> None:
    assert make(name, 1).links != make(name, 2).links
    assert make(name, 1, seed="5").links == make(name, 2, seed="5").links


def test_each_switch_of_a_fat_tree_has_k_links_and_hosts_of_two_pods_have_k_squared_over_4_paths() -> None:
    topology = make("fat-tree", k="6")
    graph = networkx.Graph(topology.to_networkx())
    assert {graph.degree(name) for name, node in topology.nodes.items() if node.group != "host"} == {6}
    assert len(list(networkx.all_shortest_paths(graph, "h1", "h54"))) == 9


def test_each_node_of_a_jellyfish_has_the_same_number_of_links() -> None:
    assert set(dict(make("jellyfish").to_networkx().degree).values()) == {3}


def test_hosts_hang_on_each_node_with_their_own_rate_and_delay() -> None:
    topology = make("ring", hosts="2", rate="1Gbit", host_delay="1us", fabric_rate="10Gbit", loss="1%")
    host, *_, fabric = topology.links
    assert (host.rate_bit_per_s, host.delay_ns, host.loss.random) == (10**9, 1000, 0.01)
    assert (fabric.rate_bit_per_s, fabric.delay_ns, fabric.loss.random) == (10**10, 0, 0.01)
    assert len(topology.nodes) == 15
    assert {end.node for link in topology.links[:2] for end in link.endpoints} == {"h0", "h1", "n0"}


@pytest.mark.parametrize("name", sorted(set(SMALL) - {"jellyfish", "waxman", "barabasi-albert"}))
def test_a_drawing_has_each_node_at_a_place_of_its_own(name: str) -> None:
    positions = make(name).positions
    assert set(positions) == set(make(name).nodes)
    assert len({(round(x, 3), round(y, 3)) for x, y in positions.values()}) == len(positions)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{generate: jellyfish, nodes: 5, degree: 3}", "topology: 5 nodes with 3 links each: there is no such graph"),
        (
            "{generate: barabasi-albert, nodes: 3, links: 3}",
            "topology: 3 links of a new node: must be less than the 3 nodes",
        ),
        ("{generate: tree, depth: 16, fanout: 10}", "topology: depth 16, fanout 10: "),
        ("{generate: waxman, nodes: 5, alpha: 2}", "topology.alpha: 2: alpha must be a number above 0 and up to 1"),
        ("{generate: ring}", "topology.nodes: missing"),
        ("{generate: ring, nodes: 2}", "topology.nodes: 2: a number of nodes must be from 3"),
        ("{generate: ring, nodes: 5, rate: 5}", "topology.rate: 5: a rate needs a unit"),
    ],
)
def test_what_makes_no_network_is_refused(text: str, message: str) -> None:
    with pytest.raises(LabError) as caught:
        loads(f"name: x\ntopology: {text}\n", "lab.yaml")
    [problem] = caught.value.problems
    assert f"{problem.field}: {problem.message}".startswith(message)
