"""Each format is read as what it says, and what a lab cannot honour is refused by name."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from dilaton.lab import Lab, LabError, Topology, load
from dilaton.lab.topology import parse_topology
from dilaton.plan.compile import compile as compile_plan

FIXTURES = Path(__file__).parent / "fixtures"


def read(**fields: Any) -> Topology:
    return parse_topology(fields, 1, FIXTURES)


def refusal(**fields: Any) -> str:
    """What is said of a topology in a lab, at its line."""
    with pytest.raises(ValueError, match=r".") as caught:
        read(**fields)
    return str(caught.value)


def ends(topology: Topology) -> list[tuple[str, ...]]:
    return [tuple(f"{end.node}:{end.interface}".rstrip(":") for end in link.endpoints) for link in topology.links]


PAIRS = ["osloden-haag", "den-haagwien", "oslowien"]


def test_graphml_of_the_topology_zoo_has_rates_and_the_delay_of_its_distances() -> None:
    topology = read(graphml="ring.graphml", names="label")
    assert list(topology.nodes) == ["oslo", "den-haag", "wien"]
    links = {link.endpoints[0].node + link.endpoints[1].node: link for link in topology.links}
    assert [links[pair].rate_bit_per_s for pair in PAIRS] == [10**10, 2_500_000_000, None]
    # Oslo and Den Haag are 965 km apart, Den Haag and Wien 962, Wien and Oslo 1352, give or take a percent.
    assert [links[pair].delay_ns / 1e6 for pair in PAIRS] == pytest.approx([965 / 200, 962 / 200, 1352 / 200], rel=0.01)
    x, y = zip(*(topology.positions[name] for name in ("den-haag", "oslo", "wien")), strict=True)
    assert x[0] < x[1] < x[2] and y[2] < y[0] < y[1]


def test_numbers_name_nodes_unless_labels_are_asked_for() -> None:
    assert list(read(graphml="ring.graphml").nodes) == ["n0", "n1", "n2"]


def test_what_is_written_for_all_links_wins() -> None:
    topology = read(graphml="ring.graphml", rate="1Gbit", delay="2ms", loss="1%")
    assert {(link.rate_bit_per_s, link.delay_ns, link.loss.random) for link in topology.links} == {
        (10**9, 2_000_000, 0.01)
    }


def test_gml_has_distances_in_km_and_costs() -> None:
    topology = read(gml="triangle.gml", names="label")
    found = {link.endpoints[0].node + link.endpoints[1].node: (link.delay_ns, link.cost) for link in topology.links}
    assert found == {"westeast": (500_000, 1), "eastsouth": (1_252_500, 7), "westsouth": (2_000_000, 1)}


def test_json_keeps_the_names_kinds_rates_and_delays() -> None:
    topology = read(json="pair.json")
    assert {name: node.kind for name, node in topology.nodes.items()} == {"core-1": "router", "h1": None}
    assert (topology.links[0].rate_bit_per_s, topology.links[0].delay_ns) == (10**9, 3_000_000)


def test_containerlab_keeps_groups_sysctls_and_interfaces_and_makes_bridges_switches() -> None:
    topology = read(file="office.clab.yml", ignore=["image", "exec"])
    assert {name: node.kind for name, node in topology.nodes.items()} == {"a": None, "b": None, "br-1": "switch"}
    assert topology.nodes["a"].sysctls == {"net/ipv4/tcp_sack": "1"}
    assert topology.nodes["a"].group == "rack"
    assert ends(topology) == [("a:eth1", "br-1:eth1"), ("b:eth1", "br-1:eth2")]
    assert topology.links[1].mtu == 9000


CLAB = """
topology:
  nodes:
    srl: {kind: nokia_srlinux, image: srl, labels: LABELS}
    a: {kind: linux}
    b: {kind: linux}
  links:
    - {endpoints: ["srl:e1-1", "a:eth1"], ipv4: ["", 192.168.0.2/24]}
    - {endpoints: [{node: a, interface: eth2, ipv6: "2001:db8::1/64"}, {node: b, interface: eth1}], type: veth}
"""


def test_containerlab_has_the_files_that_nodes_bind(tmp_path: Path) -> None:
    file = tmp_path / "x.clab.yml"
    (tmp_path / "r1").mkdir()
    (tmp_path / "r1/frr.conf").write_text("router bgp 1\n")
    binds = "[/lib/modules:/lib/modules, '__clabDir__/r1/frr.conf:/etc/frr/frr.conf:ro', r1:/etc/all]"
    nodes = "{kinds: {linux: {binds: ['r1/frr.conf:/etc/all']}}, nodes: {r1: {kind: linux, binds: BINDS}}}"
    file.write_text(f"topology: {nodes}".replace("BINDS", binds))
    files = read(containerlab=str(file)).nodes["r1"].files
    assert [entry.contents for entry in files["/etc/frr/frr.conf"].entries] == [b"router bgp 1\n"]
    assert {(place, entry.below) for place, given in files.items() for entry in given.entries} == {
        ("/etc/frr/frr.conf", ""),
        ("/etc/all", ""),
        ("/etc/all", "frr.conf"),
    }
    file.write_text(f"topology: {nodes}".replace("BINDS", "[none:/a]"))
    assert "nodes.r1.binds[0]: none: cannot be read" in refusal(containerlab=str(file))
    assert read(containerlab=str(file), ignore=["binds"]).nodes["r1"].files == {}


def test_a_node_of_a_kind_that_a_lab_has_not_is_left_out_with_its_links_where_asked(tmp_path: Path) -> None:
    file = tmp_path / "x.clab.yml"
    file.write_text(CLAB.replace("LABELS", "{}"))
    assert "nodes.srl.kind: nokia_srlinux: a lab cannot honour this" in refusal(containerlab=str(file))
    topology = read(containerlab=str(file), ignore=["nokia_srlinux"])
    assert list(topology.nodes) == ["a", "b"]
    assert ends(topology) == [("a:eth2", "b:eth1")]


def test_a_label_says_what_a_node_of_any_kind_is_and_links_give_addresses(tmp_path: Path) -> None:
    file = tmp_path / "x.clab.yml"
    file.write_text(CLAB.replace("LABELS", "{dilaton.kind: router, dilaton.image: host}"))
    topology = read(containerlab=str(file))
    assert topology.nodes["srl"].kind == "router"
    given = [[str(address) for address in end.addresses] for link in topology.links for end in link.endpoints]
    assert given == [[], ["192.168.0.2/24"], ["2001:db8::1/64"], []]


def test_a_collision_domain_of_one_device_is_a_stub_network(tmp_path: Path) -> None:
    (tmp_path / "lab.conf").write_text('r_1[0]="A"\nr_1[1]="B1"\nr2[0]="A"\n')
    (tmp_path / "lab.yaml").write_text("{name: x, topology: {file: lab.conf}}")
    lab = load(tmp_path / "lab.yaml")
    assert ends(Topology(lab.nodes, lab.links)) == [("r-1:eth0", "r2:eth0"), ("r-1:eth1", "stub-b1:eth0")]
    interfaces = {interface.name: interface for interface in compile_plan(lab).nodes[0].interfaces}
    assert interfaces["eth1"].addresses


def test_start_up_files_of_kathara_give_addresses_and_what_else_they_do_is_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.conf").write_text('r_1[0]="A"\nr_1[1]="B"\nr2[0]="A"\n')
    (tmp_path / "r_1.startup").write_text(
        "#!/bin/sh\nip address add 10.1.0.1/24 dev eth0 # the left one\nip addr add 2001:db8::1/64 dev eth0\n"
        "ip link set eth0 up\n\nifconfig eth1 10.2.0.1 netmask 255.255.255.0 up\n"
    )
    (tmp_path / "r2.startup").write_text("ifconfig eth0 10.1.0.2/24 up\n")
    topology = read(kathara=str(tmp_path / "lab.conf"))
    given = {
        f"{end.node}:{end.interface}": [str(address) for address in end.addresses]
        for link in topology.links
        for end in link.endpoints
    }
    assert given == {
        "r-1:eth0": ["10.1.0.1/24", "2001:db8::1/64"],
        "r2:eth0": ["10.1.0.2/24"],
        "r-1:eth1": ["10.2.0.1/24"],
        "stub-b:": [],
    }


@pytest.mark.parametrize(
    ("file", "command"),
    [
        ("r1.startup", "ip route add default via 10.0.0.2"),
        ("r1.startup", "ip address add 10.0.0.300/24 dev eth0"),
        ("r1.startup", "ip address add 10.0.0.1/24 dev eth7"),
        ("r1.startup", "ip link set eth0 down"),
        ("shared.startup", "systemctl start frr"),
    ],
)
def test_of_a_start_up_file_no_command_is_left_out_unsaid(tmp_path: Path, file: str, command: str) -> None:
    (tmp_path / "lab.conf").write_text('r1[0]="A"\nr2[0]="A"\n')
    (tmp_path / file).write_text(f"\n{command}\n")
    assert f"{file}:2: {command}: startup: a lab cannot honour this" in refusal(kathara=str(tmp_path / "lab.conf"))
    assert ends(read(kathara=str(tmp_path / "lab.conf"), ignore=["startup"])) == [("r1:eth0", "r2:eth0")]


def test_devices_of_kathara_whose_names_would_be_one_are_refused(tmp_path: Path) -> None:
    (tmp_path / "lab.conf").write_text('r_1[0]="A"\nr-1[0]="A"\n')
    assert "lab.conf:2: r_1 and r-1 would both be called r-1" in refusal(kathara=str(tmp_path / "lab.conf"))


def test_kathara_domains_are_links_and_segments() -> None:
    topology = read(kathara="kathara/lab.conf", ignore=["image", "startup"])
    assert ends(topology) == [("r1:eth0", "pc1:eth0", "pc2:eth0"), ("r1:eth1", "r2:eth0")]


def test_mininet_links_have_the_parameters_of_tclink_and_hosts_their_addresses() -> None:
    topology = read(mininet="custom.py", topo="pair", args=["2", "50"])
    between, first, second = topology.links
    assert (between.rate_bit_per_s, between.delay_ns, between.loss.random) == (50_000_000, 5_000_000, 0.01)
    assert between.queue.limit is not None and between.queue.limit.model_dump() == {"packets": 100}
    assert ends(topology)[1:] == [("h1:eth0", "s1:eth2"), ("h2:eth0", "s1:eth3")]
    assert [str(end.addresses[0]) for end in (first.endpoints[0], second.endpoints[0])] == [
        "10.7.0.1/24",
        "10.7.0.2/24",
    ]
    assert {name: node.kind for name, node in topology.nodes.items()} == {
        "s1": "switch",
        "s2": "switch",
        "h1": "host",
        "h2": "host",
    }


@pytest.mark.parametrize(
    ("topo", "args", "hosts", "switches", "links"),
    [
        ("single", ["5"], 5, 1, 5),
        ("linear", ["3", "2"], 6, 3, 8),
        ("linear", ["n=2", "k=3"], 6, 3, 8),
        ("tree", ["2", "3"], 9, 4, 12),
    ],
)
def test_mininets_own_topologies_are_there(topo: str, args: list[str], hosts: int, switches: int, links: int) -> None:
    topology = read(mininet="custom.py", topo=topo, args=args)
    kinds = [node.kind for node in topology.nodes.values()]
    assert (kinds.count("host"), kinds.count("switch"), len(topology.links)) == (hosts, switches, links)


ROUTED = """
from mininet.node import Node
from mininet.topo import Topo

class LinuxRouter(Node):
    pass

class NetworkTopo(Topo):
    def build(self):
        r0 = self.addHost("r0", cls=LinuxRouter, ip="192.168.1.1/24")
        for n in (1, 2):
            host = self.addHost(f"h{n}", ip=f"192.168.{n}.100/24", defaultRoute=f"via 192.168.{n}.1")
            self.addLink(host, r0, intfName2=f"r0-eth{n}", params2={"ip": f"192.168.{n}.1/24"})

topos = {"net": NetworkTopo}
"""


def test_a_class_called_router_and_addresses_of_ends_are_read(tmp_path: Path) -> None:
    (tmp_path / "net.py").write_text(ROUTED)
    assert "host h1: defaultRoute: a lab cannot honour this; routes are planned" in refusal(
        mininet=str(tmp_path / "net.py")
    )
    topology = read(mininet=str(tmp_path / "net.py"), ignore="defaultRoute")
    assert {name: node.kind for name, node in topology.nodes.items()} == {"r0": "router", "h1": "host", "h2": "host"}
    given = [[str(address) for address in end.addresses] for link in topology.links for end in link.endpoints]
    assert given == [["192.168.1.100/24"], ["192.168.1.1/24"], ["192.168.2.100/24"], ["192.168.2.1/24"]]


def test_a_mininet_file_can_write_nothing(tmp_path: Path) -> None:
    target = tmp_path / "written"
    file = tmp_path / "topo.py"
    file.write_text(f"open({str(target)!r}, 'w')\n")
    assert "Read-only file system" in refusal(mininet=str(file))
    assert not target.exists()


@pytest.mark.parametrize(
    ("begins", "said"),
    [
        ("import os; os.fork()", "PermissionError"),
        ("import threading; threading.Thread().start()", "RuntimeError: can't start new thread"),
        ("import subprocess; subprocess.run(['true'])", "PermissionError"),
    ],
)
def test_a_mininet_file_stays_one_process(begins: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "topo.py"
    file.write_text(f"{begins}\n")
    assert f"topo.py: {said}" in refusal(mininet=str(file))


def test_a_mininet_file_that_computes_for_ever_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dilaton.lab.importers.mininet.CPU_S_MAX", 1)
    file = tmp_path / "topo.py"
    file.write_text("while True: pass\n")
    assert "topo.py: did not describe its network within 1 s of CPU" in refusal(mininet=str(file))


def test_shadow_has_its_graph_as_routers_and_its_hosts_on_them() -> None:
    topology = read(shadow="shadow.yaml", ignore="processes")
    assert {name: node.kind for name, node in topology.nodes.items()} == {
        "n0": "router",
        "n1": "router",
        "client": "host",
        "server": "host",
    }
    client, server, edge = topology.links
    assert (client.direction("a_to_b").rate_bit_per_s, client.direction("b_to_a").rate_bit_per_s) == (
        100_000_000,
        200_000_000,
    )
    assert (server.direction("a_to_b").rate_bit_per_s, server.direction("b_to_a").rate_bit_per_s) == (
        50_000_000,
        10_000_000,
    )
    assert (edge.delay_ns, edge.loss.random) == (50_000_000, 0.01)
    assert client.cost < edge.cost


@pytest.mark.parametrize(
    ("graph", "delay_ns", "rate", "loss"),
    [
        ("{type: 1_gbit_switch}", 10**6, 10**9, 0.0),
        (
            '{type: gml, inline: \'graph [ node [ id 0 host_bandwidth_up "20 Mbit" host_bandwidth_down "20 Mbit" ] '
            'edge [ source 0 target 0 latency "150 ms" packet_loss 0.01 ] ]\'}',
            150 * 10**6,
            20 * 10**6,
            0.01,
        ),
    ],
    ids=["by name", "as a graph"],
)
def test_all_hosts_at_the_only_node_of_a_graph_are_at_a_switch(
    graph: str, delay_ns: int, rate: int, loss: float, tmp_path: Path
) -> None:
    file = tmp_path / "shadow.yaml"
    hosts = "{a: {network_node_id: 0}, b: {network_node_id: 0}, c: {network_node_id: 0}}"
    file.write_text(f"network: {{graph: {graph}}}\nhosts: {hosts}\n")
    topology = read(shadow=str(file))
    assert {name: node.kind for name, node in topology.nodes.items()} == {
        "n0": "switch",
        "a": "host",
        "b": "host",
        "c": "host",
    }
    up, down = (topology.links[0].direction(way) for way in ("a_to_b", "b_to_a"))
    # Every path has the latency and the loss of the edge once.
    assert (up.delay_ns + down.delay_ns, up.loss.random, down.loss.random) == (delay_ns, loss, 0.0)
    assert (up.rate_bit_per_s, down.rate_bit_per_s) == (rate, rate)


def test_what_is_written_for_all_links_wins_over_rates_of_shadows_hosts() -> None:
    topology = read(shadow="shadow.yaml", ignore="processes", rate="5Mbit")
    rates = {link.direction(way).rate_bit_per_s for link in topology.links for way in ("a_to_b", "b_to_a")}
    assert rates == {5_000_000}


def test_a_host_of_shadow_is_not_called_like_a_router(tmp_path: Path) -> None:
    file = tmp_path / "shadow.yaml"
    file.write_text((FIXTURES / "shadow.yaml").read_text().replace("client:", "n1:"))
    assert "hosts.n1: n1 is the router of a node of the graph" in refusal(shadow=str(file), ignore="processes")


DIRECTED = """<graphml><key id="d" for="edge" attr.name="delay" attr.type="string"/>
<graph edgedefault="directed"><node id="a"/><node id="b"/>{edges}</graph></graphml>"""
THERE = '<edge source="a" target="b"><data key="d">5ms</data></edge>'


def test_two_edges_of_a_directed_graph_are_a_link(tmp_path: Path) -> None:
    file = tmp_path / "graph.graphml"
    back = THERE.replace('"a" target="b"', '"b" target="a"')
    file.write_text(DIRECTED.format(edges=THERE + back))
    (link,) = read(graphml=str(file)).links
    assert [link.direction(way).delay_ns for way in ("a_to_b", "b_to_a")] == [5_000_000, 5_000_000]
    file.write_text(DIRECTED.format(edges=THERE + back.replace("5ms", "7ms")))
    (link,) = read(graphml=str(file)).links
    assert [link.direction(way).delay_ns for way in ("a_to_b", "b_to_a")] == [5_000_000, 7_000_000]
    file.write_text(DIRECTED.format(edges=THERE))
    assert "edge 'a' -> 'b': the graph is directed and has no edge back" in refusal(graphml=str(file))


def graph_file(path: Path, *nodes: dict[str, Any]) -> Path:
    data = {"nodes": list(nodes), "edges": [{"source": nodes[0]["id"], "target": nodes[-1]["id"]}]}
    path.write_text(json.dumps(data))
    return path


def test_a_graph_without_lengths_asks_for_a_delay(tmp_path: Path) -> None:
    file = str(graph_file(tmp_path / "graph.json", {"id": 0}, {"id": 1}))
    assert "1 of 1 edges have no distance, and their ends no Longitude and Latitude (0 -- 1)" in refusal(json=file)
    assert "--set topology.delay=5ms" in refusal(json=file)
    assert read(json=file, delay="5ms").links[0].delay_ns == 5_000_000
    assert read(json=file, ignore="delay").links[0].delay_ns == 0


def test_labels_that_several_nodes_have_are_numbered(tmp_path: Path) -> None:
    labels = ["Oslo", "oslo", "?", "Oslo 2", "oslo"]
    file = graph_file(tmp_path / "graph.json", *({"id": number, "label": label} for number, label in enumerate(labels)))
    names = list(read(json=str(file), names="label", delay="1ms").nodes)
    assert names == ["oslo", "oslo-3", "n2", "oslo-2", "oslo-4"]


def test_a_missing_topohub_is_told_with_the_python_that_it_must_go_to(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "topohub", None)
    assert f"not installed; {sys.executable} -m pip install topohub" in refusal(topohub="topozoo/Abilene")


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # topohub leaves its file open
@pytest.mark.skipif(importlib.util.find_spec("topohub") is None, reason="topohub is not installed")
def test_topohub_gives_networks_by_name() -> None:
    topology = read(topohub="topozoo/Abilene", names="label")
    assert len(topology.nodes) == 11 and len(topology.links) == 14
    assert "new-york" in topology.nodes
    assert all(link.delay_ns > 0 for link in topology.links)
    assert "no such network" in refusal(topohub="topozoo/Atlantis")


REFUSED: list[tuple[dict[str, Any], str]] = [
    (
        {"containerlab": "office.clab.yml"},
        "nodes.a: image: a lab cannot honour this; alpine:3: not in the store of images",
    ),
    ({"containerlab": "office.clab.yml"}, "or write ignore: [image, exec]"),
    ({"containerlab": "office.clab.yml", "ignore": "image"}, "or write ignore: [image, exec]"),
    ({"containerlab": "office.clab.yml", "ignore": "image"}, "nodes.b: exec: a lab cannot honour this"),
    (
        {"kathara": "kathara/lab.conf"},
        "kathara/lab.conf:8: image: a lab cannot honour this; remove it, or write ignore: [image, startup]",
    ),
    (
        {"kathara": "kathara/lab.conf", "ignore": "image"},
        "pc1.startup:2: ip route add default via 10.0.0.2: startup: a lab cannot honour this",
    ),
    ({"mininet": "custom.py", "topo": "odd"}, "host h1: cpu: a lab cannot honour this"),
    ({"mininet": "custom.py"}, "custom.py: has the topologies pair, odd, single, linear, tree; say which by topo:"),
    ({"mininet": "custom.py", "topo": "none"}, "custom.py: has no topology none"),
    ({"shadow": "shadow.yaml"}, "hosts.client: processes: a lab cannot honour this; what runs is written under run:"),
    (
        {"gml": "triangle.gml", "distance": "length"},
        "3 of 3 edges have no length (0 -- 1, 0 -- 2, 1 -- 2); write delay: for all links",
    ),
    ({"json": "pair.json", "names": "label"}, "node 'core-1': no attribute label to be called by"),
    ({"graphml": "triangle.gml"}, "not GraphML"),
    ({"gml": "ring.graphml"}, "not GML"),
    ({"json": "triangle.gml"}, "not JSON"),
    ({"graphml": "missing.graphml"}, "missing.graphml: cannot be read: No such file or directory"),
    ({"file": "notes.txt"}, "notes.txt: no known kind of file"),
]


@pytest.mark.parametrize(
    ("fields", "message"), REFUSED, ids=[f"{next(iter(fields))}: {message[:40]}" for fields, message in REFUSED]
)
def test_what_cannot_be_honoured_is_refused_by_name(fields: dict[str, Any], message: str) -> None:
    assert message in refusal(**fields)


@pytest.mark.parametrize(
    ("label", "message"),
    [
        ("image: alpine", "nodes.a: image: alpine: not in the store of images"),
        ("rate: 1Gbit", "nodes.a.labels: dilaton.rate: no such field of a node; known: dilaton.kind"),
    ],
)
def test_a_wrong_label_of_a_containerlab_node_is_told_with_the_node(label: str, message: str, tmp_path: Path) -> None:
    file = tmp_path / "x.clab.yml"
    file.write_text(f"topology: {{nodes: {{a: {{kind: linux, labels: {{dilaton.{label}}}}}}}}}")
    assert message in refusal(containerlab=str(file))


def test_an_edge_of_a_graph_that_ends_at_no_node_of_it_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "graph.json"
    file.write_text('{"nodes": [{"id": 1}], "edges": [{"source": 1, "target": 2}]}')
    assert "an edge ends at 2, which is not among the nodes" in refusal(json=str(file))


SHADOW = "network: {{graph: {{type: gml, inline: 'graph [ node [ id 0 ] node [ id 1 ] edge [ {edge} ] ]'}}}}"


@pytest.mark.parametrize(
    ("field", "text", "message"),
    [
        (
            "containerlab",
            "topology: {nodes: {a: {kind: [linux]}}}",
            "nodes.a.kind: ['linux']: a lab cannot honour this",
        ),
        ("containerlab", "topology: {links: 5}", "topology.links: must be a list, not 5"),
        (
            "containerlab",
            "topology: {defaults: {kind: linux}, nodes: {a: {}, b: {}}, links: [{endpoints: ['a:e', 'b:e'], mtu: [1]}]}",
            "links[0].mtu must be a whole number from 68 to 65535",
        ),
        ("containerlab", "topology: {null: 5}", "write ignore: [None]"),
        ("json", '{"nodes": [1], "edges": []}', "not a node-link graph"),
        ("gml", "graph [ node [ id 0 id 1 ] ]", "not GML"),
        ("shadow", SHADOW.format(edge="id 0 id 1"), "network.graph: not GML"),
        ("shadow", SHADOW.format(edge="source 0 target 1 packet_loss 0.1 packet_loss 0.2"), "'[0.1, 0.2]'"),
    ],
)
def test_what_stands_where_a_format_has_something_else_is_told(
    tmp_path: Path, field: str, text: str, message: str
) -> None:
    file = tmp_path / "network"
    file.write_text(text)
    assert message in refusal(**{field: str(file)})


def test_a_lab_finds_the_file_beside_itself_and_tells_its_mistakes_at_its_line(tmp_path: Path) -> None:
    (tmp_path / "net.gml").write_text((FIXTURES / "triangle.gml").read_text())
    lab = tmp_path / "lab.yaml"
    lab.write_text("name: x\ntopology: {file: net.gml, rate: 1Gbit}\n")
    found: Lab = load(lab)
    assert len(compile_plan(found).links) == 3
    lab.write_text("name: x\ntopology: {file: net.gml, distance: miles}\n")
    with pytest.raises(LabError) as caught:
        load(lab)
    assert str(caught.value).startswith(f"{lab}:2:11: topology: 3 of 3 edges have no miles")
