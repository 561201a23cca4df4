"""Topologies in XML: all that the format has is kept both ways, what it does not have is refused with its place, and the
schema that is published is the one that is read."""

from __future__ import annotations

import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from dilaton.lab import Lab, loads
from dilaton.lab.exporters import FORMATS
from dilaton.lab.importers import xml
from dilaton.lab.parts.links import WAYS
from dilaton.lab.topology import Topology, parse_topology
from dilaton.plan.compile import compile as compile_plan
from dilaton.plan.export import configured
from tests.conftest import ROOT

TEXT = """
name: mixed
nodes: {a: {kind: host, group: left}, r: {kind: router}, s: {kind: switch}, b: {}, c: {}}
groups: {left: {}}
links:
  - {endpoints: [{node: a, interface: eth3, address: [10.1.0.1/24, "fd00::1/64"]}, r], rate: 100Mbit, delay: 2.5ms, mtu: 9000}
  - {endpoints: [r, s], rate: 12345678bit, cost: 7, b_to_a: {rate: 1Mbit, loss: 0.125%}, a_to_b: {delay: 1us}}
  - {endpoints: [s, b, c], delay: 1ms}
"""

XS = "{http://www.w3.org/2001/XMLSchema}"


def exported(lab: Lab) -> tuple[str, list[str]]:
    return FORMATS["xml"].write(lab, configured(compile_plan(lab)))


def read(text: str, directory: Path, **fields: object) -> Topology:
    (directory / "x.xml").write_text(text)
    return parse_topology({"file": "x.xml", **fields}, 1, directory)


def test_all_that_the_format_has_is_kept(tmp_path: Path) -> None:
    lab = loads(TEXT, "lab.yaml")
    text, lacks = exported(lab)
    assert lacks == []
    (tmp_path / "x.xml").write_text(text)
    back = loads("{name: mixed, groups: {left: {}}, topology: {xml: x.xml}}", str(tmp_path / "lab.yaml"))
    assert (back.nodes, list(back.links)) == (lab.nodes, list(lab.links))
    assert exported(back)[0] == text


def test_what_the_format_does_not_have_is_told() -> None:
    lab = loads(TEXT + "  - {endpoints: [a, b], queue: {limit: 5}, delay: {mean: 1ms, jitter: 1us}}\n", "lab.yaml")
    assert exported(lab)[1] == ["delay.jitter of links", "queue of links"]


def test_places_are_read_and_what_is_written_for_all_links_counts(tmp_path: Path) -> None:
    text = '<topology><node name="a" x="1" y="-2.5"/><node name="b"/><link rate="1Mbit"><end node="a"/><end node="b"/></link></topology>'
    found = read(text, tmp_path, rate="5Mbit", delay="3ms")
    assert found.positions == {"a": (1.0, -2.5)}
    (link,) = found.links
    assert (link.rate_bit_per_s, link.delay_ns) == (5_000_000, 3_000_000)


NODES = '<topology>\n<node name="a"/><node name="b"/>\n'

WRONG = {
    "no topology": ("<lab/>", r"x\.xml:1:1: .*<lab>; <topology> may be here"),
    "another namespace": ('<topology xmlns="urn:x"/>', r"1:1: .*<topology> of urn:x"),
    "no XML": ("<topology>", r"x\.xml:1:11: not a topology in XML: no element found"),
    "nothing": ("", r"x\.xml:1:1: not a topology in XML"),
    "no name": ("<topology><node/></topology>", r"1:11: <node> needs an attribute name"),
    "a name that cannot be": ('<topology><node name="a b"/></topology>', r"1:11: "),
    "twice": (NODES + '<node name="a"/></topology>', r"3:1: node a: there is one"),
    "an attribute": (NODES + '<link rat="1Mbit"/></topology>', r"3:1: <link> has no attribute rat; did you mean rate"),
    "an element": (NODES + "<ling/></topology>", r"3:1: .*<ling>; <node>, <link> may be here"),
    "an unknown end": (
        NODES + '<link><end node="a"/><end node="c"/></link></topology>',
        r"3:22: node c: there is none",
    ),
    "one end": (NODES + '<link><end node="a"/></link></topology>', r"3:1: link: "),
    "a rate": (NODES + '<link rate="x"><end node="a"/><end node="b"/></link></topology>', r"3:1: link: rate: "),
    "a way": (
        NODES + '<link><end node="a"/><end node="b"/><b_to_a mtu="9"/></link></topology>',
        r"3:37: <b_to_a> has no attribute mtu; known: rate, delay, loss",
    ),
    "two ways": (
        NODES + '<link><end node="a"/><end node="b"/><b_to_a/><b_to_a/></link></topology>',
        r"there is one already",
    ),
    "an address": (
        NODES + '<link><end node="a" address="x"/><end node="b"/></link></topology>',
        r"3:1: link: .*address",
    ),
    "a place": ('<topology><node name="a" x="nan" y="0"/></topology>', r"1:11: x: .*number"),
    "inside an end": (
        NODES + '<link><end node="a"><end node="b"/></end><end node="b"/></link></topology>',
        r"nothing may be here",
    ),
}


@pytest.mark.parametrize(("text", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_is_told_with_its_place(text: str, said: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=said):
        read(text, tmp_path)


def test_a_word_in_a_comment_is_no_entity(tmp_path: Path) -> None:
    assert list(read(f"<!-- <!ENTITY --> {NODES}</topology>", tmp_path).nodes) == ["a", "b"]


def test_the_schema_names_what_is_read_and_nothing_else() -> None:
    schema = ElementTree.parse(ROOT / "docs" / "topology.xsd").getroot()
    assert schema.get("targetNamespace") == xml.NAMESPACE
    types = {kind.get("name"): kind for kind in schema.iter(f"{XS}complexType")}

    def attributes(kind: ElementTree.Element) -> tuple[str | None, ...]:
        return tuple(one.get("name") for one in kind.findall(f"{XS}attribute"))

    known = {None: xml.TOPOLOGY, "node": xml.NODE, "link": xml.LINK, "way": xml.WAY, "end": xml.END}
    assert {name: attributes(kind) for name, kind in types.items()} == known
    elements = {one.get("name") for one in schema.iter(f"{XS}element")}
    assert elements == {"topology", "node", "link", "end", *WAYS}


def test_the_example_of_the_documents_is_a_topology(tmp_path: Path) -> None:
    (example,) = re.findall(r"```xml\n(.*?)```", (ROOT / "docs" / "topologies.md").read_text(), re.DOTALL)
    (link,) = read(example, tmp_path).links
    assert (link.delay_ns, link.b_to_a.rate_bit_per_s) == (5_000_000, 10_000_000)
