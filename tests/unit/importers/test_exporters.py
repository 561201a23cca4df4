"""What is written for other programs is what they read, and what is left out is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.lab import Lab, loads
from dilaton.lab.exporters import FORMATS
from dilaton.lab.topology import parse_topology
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.export import configured

TEXT = """
name: mixed
topology: {generate: leaf-spine, spines: 1, leaves: 2, hosts: 1, rate: 100Mbit, delay: 5ms, queue: {limit: 50}}
groups: {leaf: {kind: switch}, spine: {kind: switch}}
nodes: {extra: {}}
links: [{endpoints: [extra, leaf1], mtu: 9000, loss: 1%}]
run: [{on: h1, exec: ping -c 1 h2}]
"""


@pytest.fixture
def lab() -> Lab:
    return loads(TEXT, "lab.yaml")


def exported(lab: Lab, name: str) -> tuple[str, list[str]]:
    """The text of a lab in a format, and what that lacks."""
    return FORMATS[name].write(lab, configured(compile_plan(lab)))


def there_and_back(lab: Lab, name: str, directory: Path) -> Lab:
    """The lab that a lab's text in a format is."""
    file = f"x{FORMATS[name].suffix}"
    (directory / file).write_text(exported(lab, name)[0])
    return loads(f"{{name: back, topology: {{file: {file}}}}}", str(directory / "lab.yaml"))


@pytest.mark.parametrize("name", ["containerlab", "graphml", "mininet", "xml"])
def test_what_is_exported_is_imported_as_the_same_network(lab: Lab, name: str, tmp_path: Path) -> None:
    (tmp_path / f"x{FORMATS[name].suffix}").write_text(exported(lab, name)[0])
    back = parse_topology({"file": f"x{FORMATS[name].suffix}"}, 1, tmp_path)
    assert set(back.nodes) == set(lab.nodes)
    assert {node: back.nodes[node].kind for node in ("leaf1", "spine1")} == {"leaf1": "switch", "spine1": "switch"}
    pairs = [{frozenset(end.node for end in link.endpoints) for link in links} for links in (back.links, lab.links)]
    assert pairs[0] == pairs[1]
    if name != "containerlab":
        found = next(link for link in back.links if {end.node for end in link.endpoints} == {"h1", "leaf1"})
        assert (found.rate_bit_per_s, found.delay_ns) == (100_000_000, 5_000_000)


def test_labels_of_containerlab_keep_what_its_kinds_do_not_say(tmp_path: Path) -> None:
    nodes = "{a: {kind: host}, b: {kind: router}, c: {kind: nat, outside: eth1}, d: {kind: ovs}, e: }"
    lab = loads(f"{{name: kinds, nodes: {nodes}, links: [a -- b, b -- c, c -- d, d -- e, a -- e]}}", "lab.yaml")
    (tmp_path / "x.clab.yml").write_text(exported(lab, "containerlab")[0])
    back = parse_topology({"file": "x.clab.yml"}, 1, tmp_path)
    assert back.nodes == lab.nodes
    assert [link.name for link in back.links] == [link.name for link in lab.links]


def test_what_a_format_has_no_place_for_is_told(lab: Lab) -> None:
    lacks = {name: exported(lab, name)[1] for name in FORMATS}
    assert lacks["containerlab"] == ["delay of links", "loss of links", "queue of links", "rate of links", "run"]
    assert lacks["mininet"] == ["group of nodes", "mtu of links", "run"]
    assert lacks["dot"] == ["group of nodes", "loss of links", "mtu of links", "queue of links", "run"]
    assert lacks["graphml"] == ["loss of links", "mtu of links", "queue of links", "run"]


def test_what_a_format_has_no_place_for_within_a_field_is_told() -> None:
    options = "delay: {mean: 5ms, jitter: 1ms}, loss: {gemodel: {p: 1%}}, queue: {limit: 9KB}, rate: 1Mbit"
    link = f"{{endpoints: [a, b], {options}}}"
    lab = loads(f"name: x\nnodes: {{a: {{}}, b: {{}}}}\nlinks: [{link}]\n", "lab.yaml")
    lacks = {name: exported(lab, name)[1] for name in ("mininet", "graphml")}
    assert lacks["mininet"] == [
        "limits of queues other than in packets",
        "delay.jitter of links",
        "loss.gemodel of links",
    ]
    assert lacks["graphml"] == ["delay.jitter of links", "loss of links", "queue of links"]


@pytest.mark.parametrize("name", ["graphml", "mininet"])
def test_delays_are_exported_exactly(name: str, tmp_path: Path) -> None:
    links = "{endpoints: [a, b], delay: 2s}, {endpoints: [b, c], delay: 1.234567891s}"
    lab = loads(f"name: x\nnodes: {{a: {{}}, b: {{}}, c: {{}}}}\nlinks: [{links}]\n", "lab.yaml")
    (tmp_path / f"x{FORMATS[name].suffix}").write_text(exported(lab, name)[0])
    back = parse_topology({"file": f"x{FORMATS[name].suffix}"}, 1, tmp_path)
    assert sorted(link.delay_ns for link in back.links) == [1_234_567_891, 2_000_000_000]


ROUTED = """
name: routed
addressing: {p2p: 10.99.0.0/16}
nodes: {a: , r1: {kind: router}, r2: , r3: , b: }
links:
  - endpoints: [{node: a, interface: up, address: 192.168.7.2/30}, {node: r1, interface: lan, address: 192.168.7.1/30}]
  - r2 -- r1
  - r2 -- r3
  - r1 -- r3
  - b -- r3
"""


@pytest.mark.parametrize("name", ["containerlab", "mininet"])
def test_addresses_interfaces_and_routes_are_the_same_there_and_back(name: str, tmp_path: Path) -> None:
    lab = loads(ROUTED, "lab.yaml")
    there, back = (configured(compile_plan(every)) for every in (lab, there_and_back(lab, name, tmp_path)))
    assert there == back
    assert [node for node, found in there.items() if found.forwards] == ["r1", "r2", "r3"]


def test_interfaces_routes_and_planned_addresses_are_the_same_after_graphml(tmp_path: Path) -> None:
    text = ROUTED.replace("addressing: {p2p: 10.99.0.0/16}\n", "").replace(", address: 192.168.7.2/30", "")
    lab = loads(text.replace(", address: 192.168.7.1/30", ""), "lab.yaml")
    assert configured(compile_plan(lab)) == configured(compile_plan(there_and_back(lab, "graphml", tmp_path)))


def test_every_field_of_a_lab_that_is_not_its_network_is_told_as_left_out() -> None:
    fields = "measure: {tcp: 10ms}, fidelity: {lateness: 1ms}, seed: 7, stop_after: 1s"
    lab = loads(f"{{name: x, nodes: {{a: , b: , c: }}, links: [{{endpoints: [a, b, c]}}], {fields}}}", "lab.yaml")
    segment = "that a segment is one link (a switch stands for it)"
    for name in FORMATS:
        lacking = ["seed", "stop_after", "measure", "fidelity"]
        assert exported(lab, name)[1] == (lacking if name == "xml" else [segment, *lacking])


def test_kinds_that_mininet_has_not_are_told() -> None:
    lab = loads(
        "{name: x, nodes: {a: , n: {kind: nat, outside: eth1}, c: {kind: controller}}, links: [a -- n, n -- c]}", "x"
    )
    assert exported(lab, "mininet")[1] == ["the kind nat", "the kind controller", "outside of nodes"]


def test_addresses_are_among_what_is_left_out() -> None:
    lab = loads(
        "{name: two, nodes: {a: , b: }, links: [{endpoints: [{node: a, address: 10.0.0.1/30}, b]}]}", "lab.yaml"
    )
    assert all(exported(lab, name)[1] == ["addresses of endpoints"] for name in ("dot", "graphml"))


def test_dot_shows_every_node_and_link(lab: Lab) -> None:
    text, _ = exported(lab, "dot")
    assert text.count(" -- ") == len(lab.links)
    assert '"leaf1" [shape=box' in text
    assert '[label="100Mbit 5ms", taillabel="' in text
    assert '"extra" -- "leaf1" [taillabel="eth0", headlabel="eth2"];' in text
