"""A file of another program becomes a lab that has its network, and says what it does not have of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.host.files import EXAMPLES
from dilaton.lab import LabError, Topology, loads
from dilaton.lab.imported.file import imported
from dilaton.lab.imported.kinds import kind_of
from dilaton.lab.imported.writing import lab_text, written_out
from dilaton.lab.settings import parse_setting
from dilaton.lab.topology import parse_topology
from dilaton.service.request import LabText

FIXTURES = Path(__file__).parent / "fixtures"

FILES = {
    "office.clab.yml": ({"containerlab": "office.clab.yml", "ignore": ["image", "exec"]}, ["image", "exec"]),
    "pair.json": ({"json": "pair.json"}, []),
    "ring.graphml": ({"graphml": "ring.graphml", "names": "label"}, []),
    "triangle.gml": ({"gml": "triangle.gml", "names": "label"}, []),
    "kathara/lab.conf": ({"kathara": "kathara/lab.conf", "ignore": ["image", "startup"]}, ["image", "startup"]),
    "shadow.yaml": ({"shadow": "shadow.yaml", "ignore": "processes"}, ["processes"]),
    "custom.py": ({"mininet": "custom.py", "topo": "pair"}, []),
}
"""Each file with what `topology:` says to read it, and what of it a lab has not."""


def read_back(text: str) -> Topology:
    """The network of a lab, whose interfaces have no names but those that are written."""
    lab = loads(text, "lab.yaml")
    return Topology(lab.nodes, lab.links)


@pytest.mark.parametrize("name", FILES)
def test_a_lab_of_a_file_has_its_network_and_names_what_it_lacks(name: str) -> None:
    fields, lacks = FILES[name]
    found = imported(FIXTURES / name, {"topo": "pair"} if name == "custom.py" else {})
    there, here = read_back(lab_of(fields)), read_back(found.text)
    assert (here.nodes, here.links) == (there.nodes, there.links)
    assert found.kind in fields
    assert len(found.left_out) == len(lacks)
    for what, said in zip(lacks, found.left_out, strict=True):
        assert what in said


def lab_of(fields: dict[str, object]) -> str:
    """The text of a lab with the topology that these fields make."""
    return lab_text("there", parse_topology(fields, 1, FIXTURES), "there")


def test_all_that_a_reader_can_say_is_written_and_read_as_it_was(tmp_path: Path) -> None:
    text = """<topology>
<node name="a" kind="router" group="left" x="0" y="1"/><node name="s" kind="switch" x="1" y="0"/><node name="b"/>
<link rate="12345678bit" delay="1.000001ms" loss="0.125%" cost="7" mtu="9000">
  <end node="a" interface="eth3" address="10.1.0.1/24 fd00::1/64"/><end node="b"/><b_to_a delay="0s" rate="1Mbit"/>
</link>
<link><end node="s"/><end node="a"/><end node="b"/></link>
</topology>"""
    (tmp_path / "net.xml").write_text(text)
    found = imported(tmp_path / "net.xml")
    source = parse_topology({"xml": "net.xml"}, 1, tmp_path)
    there = loads(f"name: net\ntopology: {{xml: {tmp_path}/net.xml}}\ngroups: {{left: {{}}}}\n", "lab.yaml")
    here = loads(found.text, "lab.yaml")
    assert here.nodes == there.nodes
    for one, other in zip(here.links, there.links, strict=True):
        assert [one.direction(way) for way in ("a_to_b", "b_to_a")] == [
            other.direction(way) for way in ("a_to_b", "b_to_a")
        ]
        assert (one.endpoints, one.cost, one.mtu) == (other.endpoints, other.cost, other.mtu)
    assert found.positions == source.positions and found.left_out == []


def test_files_that_nodes_have_beside_them_are_told_to_be_missing(tmp_path: Path) -> None:
    (tmp_path / "frr.conf").write_text("router bgp 1\n")
    file = tmp_path / "x.clab.yml"
    file.write_text("topology: {nodes: {r1: {kind: linux, binds: ['frr.conf:/etc/frr/frr.conf']}}}")
    assert imported(file).left_out == ["r1: files: a lab of one file has none beside it"]
    (tmp_path / "frr.conf").unlink()
    (said,) = imported(file).left_out
    assert "nodes.r1.binds[0]: frr.conf: cannot be read" in said


def test_edges_without_a_length_have_no_delay_and_that_is_told(tmp_path: Path) -> None:
    file = tmp_path / "x.gml"
    file.write_text("graph [ node [ id 0 ] node [ id 1 ] edge [ source 0 target 1 ] ]")
    found = imported(file)
    assert "1 of 1 edges have no distance" in found.left_out[0] and "ignore" not in found.left_out[0]
    assert read_back(found.text).links[0].delay_ns == 0


@pytest.mark.parametrize(
    ("name", "text", "kind"),
    [
        ("a.xml", "<?xml version='1.0'?><graphml xmlns='x'/>", "graphml"),
        ("a.xml", "<topology/>", "xml"),
        ("A.GraphML", "<graphml/>", "graphml"),
        ("a.yml", "name: x\ntopology: {nodes: {a: }}", "containerlab"),
        ("a.yaml", "network: {graph: {type: gml}}", "shadow"),
        ("a.yaml", "name: x\ntopology: {generate: ring, nodes: 3}\nnodes: {a: }", "lab"),
        ("a.yaml", "name: x\nnodes: {a: }", "lab"),
        ("a.yaml", "{", "lab"),
        ("a", "# made by hand\ngraph [\n]", "gml"),
        ("a.txt", "r1[0]=A\n", "kathara"),
        ("a.txt", "import mininet.topo\n", "mininet"),
        ("a.txt", "nothing", "lab"),
    ],
)
def test_what_a_file_is_is_told_by_its_name_or_by_what_is_in_it(
    name: str, text: str, kind: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    assert kind_of(tmp_path / name) == kind


def test_a_lab_stays_as_it_is_even_with_mistakes(tmp_path: Path) -> None:
    (tmp_path / "x.yaml").write_text("# mine\nnodes: {a: {kind: spaceship}}\n")
    found = imported(tmp_path / "x.yaml")
    assert (found.kind, found.text) == ("lab", "# mine\nnodes: {a: {kind: spaceship}}\n")


@pytest.mark.parametrize(
    ("file", "name", "ignore"),
    [("office.clab.yml", "office", ["image", "exec"]), ("kathara", "kathara", ["image", "startup"])],
)
def test_a_file_given_for_a_lab_is_the_lab_that_has_its_network(file: str, name: str, ignore: list[str]) -> None:
    given = LabText.read(FIXTURES / file)
    left_out = (("topology", "ignore"), f"[{', '.join(ignore)}]")
    lab = loads(given.text, given.name, [parse_setting(f"{'.'.join(left_out[0])}={left_out[1]}")])
    of_file = read_back(imported(FIXTURES / file / "lab.conf" if file == name else FIXTURES / file).text)
    assert (lab.name, lab.links) == (name, of_file.links)
    assert list(lab.nodes) == list(of_file.nodes)
    with pytest.raises(LabError) as refused:
        loads(given.text, given.name)
    [problem] = refused.value.problems
    assert (problem.line, problem.column) == (0, 0), "nobody wrote the text"
    assert f"--set 'topology.ignore={left_out[1]}'" in problem.message


def test_a_network_that_is_read_from_a_file_is_written_out_and_the_lab_stays_the_same() -> None:
    lab = EXAMPLES / "abilene" / "lab.yaml"
    text, network = written_out(lab.read_text(), lab.parent)
    before, after = loads(lab.read_text(), str(lab)), loads(text, "/nowhere/lab.yaml")
    assert before.topology and before.topology == network and after.topology is None
    assert (after.nodes, after.links, after.run) == (before.nodes, before.links, before.run)
    # Comments and the order of what is not the network stay.
    kept = [line for line in lab.read_text().splitlines() if line[:1] not in ("t", "n", "l", " ")]
    assert [line for line in text.splitlines() if line in kept] == kept and "# BIRD looks" in text


@pytest.mark.parametrize("more", ["nodes: {n0: {kind: host}}\n", "nodes: {other: {}, n1: {}}\n"])
def test_a_network_of_a_file_of_whose_nodes_the_lab_says_more_is_not_written_out(more: str) -> None:
    text = f"name: x\ntopology: {{gml: triangle.gml}}\n{more}"
    with pytest.raises(ValueError, match=r"n\d: the file has a node of that name"):
        written_out(text, FIXTURES)
