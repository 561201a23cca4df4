"""Drawings have all nodes, each at a place of its own, and are the same each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.lab import loads
from dilaton.lab.segments import without_lans
from dilaton.plan.compile import compile as compile_plan
from dilaton.report.drawing import draw, figure, kinds
from dilaton.report.figures.layout import positions, positions_of

LABS = {
    "generated": "topology: {generate: fat-tree, k: 4}\nnodes: {extra: }\nlinks: [extra -- core1]\n",
    "by chance": "topology: {generate: barabasi-albert, nodes: 20}\n",
    "written": "nodes: {a: , b: , c: , d: }\nlinks: [{endpoints: [a, b, c]}, c -- d]\n",
    "apart": "nodes: {a: , b: , c: }\nlinks: [a -- b]\n",
    "alone": "nodes: {a: }\n",
}


@pytest.mark.parametrize("text", LABS.values(), ids=LABS)
def test_every_node_has_a_place_of_its_own(text: str) -> None:
    lab = loads(f"name: x\n{text}", "lab.yaml")
    places = positions(lab)
    assert set(lab.nodes) <= set(places)
    assert len({(round(x, 3), round(y, 3)) for x, y in places.values()}) == len(places)


@pytest.mark.parametrize("text", LABS.values(), ids=LABS)
def test_reports_have_nodes_where_graphs_have_them(text: str) -> None:
    lab = loads(f"name: x\n{text}", "lab.yaml")
    plan = compile_plan(lab)
    assert positions_of(plan) == positions(lab)
    assert {node.name: node.kind for node in plan.nodes} == kinds(without_lans(lab))


@pytest.mark.parametrize("text", LABS.values(), ids=LABS)
def test_a_picture_is_the_same_each_time(text: str, tmp_path: Path) -> None:
    lab = loads(f"name: x\n{text}", "lab.yaml")
    for kind in ("png", "svg", "pdf"):
        for name in ("one", "other"):
            draw(lab, tmp_path / f"{name}.{kind}")
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()


def test_rates_delays_and_addresses_are_beside_links_where_they_are_asked_for() -> None:
    lab = loads(
        "name: x\nnodes: {a: , b: }\nlinks: [{endpoints: a -- b, rate: 1Gbit, delay: 5ms, b_to_a: {rate: 1Mbit}}]\n",
        "lab.yaml",
    )
    addresses = {("a", "eth0"): ["10.0.0.0/31"], ("b", "eth0"): ["10.0.0.1/31"]}

    def written(*labels: str) -> set[str]:
        return {text.get_text() for text in figure(lab, labels, addresses).axes[0].texts} - {"a", "b"}

    assert written() == set()
    assert written("delay") == {"5 ms"}
    assert written("rate", "delay") == {"a > b: 1 Gbit/s, 5 ms\nb > a: 1 Mbit/s, 5 ms"}
    assert written("address") == {"10.0.0.0/31", "10.0.0.1/31"}
