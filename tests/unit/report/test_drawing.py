"""Drawings have all nodes, each at a place of its own, and are the same each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from dilaton.lab import loads
from dilaton.report.drawing import draw
from dilaton.report.figures.layout import positions

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
def test_a_picture_is_the_same_each_time(text: str, tmp_path: Path) -> None:
    lab = loads(f"name: x\n{text}", "lab.yaml")
    for kind in ("png", "svg", "pdf"):
        for name in ("one", "other"):
            draw(lab, tmp_path / f"{name}.{kind}")
        assert (tmp_path / f"one.{kind}").read_bytes() == (tmp_path / f"other.{kind}").read_bytes()
