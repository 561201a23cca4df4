"""How large a generated network gets is known before it is made, and what is too large is not made."""

from __future__ import annotations

import importlib
import time
from pathlib import Path

import pytest

from dilaton.lab import topologies
from dilaton.lab.topology import parse_topology

EXAMPLES: dict[str, dict[str, object]] = {
    "barabasi-albert": {"nodes": 60, "links": 3, "hosts": 2},
    "dumbbell": {"pairs": 7},
    "fat-tree": {"k": 6},
    "full-mesh": {"nodes": 9, "hosts": 2},
    "grid": {"rows": 3, "columns": 5, "hosts": 1},
    "jellyfish": {"nodes": 20, "degree": 4},
    "leaf-spine": {"spines": 3, "leaves": 5, "hosts": 4},
    "line": {"nodes": 12, "hosts": 1},
    "parking-lot": {"bottlenecks": 5},
    "ring": {"nodes": 12},
    "star": {"leaves": 8},
    "torus": {"rows": 4, "columns": 5},
    "tree": {"depth": 3, "fanout": 4},
    "waxman": {"nodes": 200, "hosts": 1},
}


@pytest.mark.parametrize("generator", EXAMPLES)
def test_how_large_a_network_gets_is_known_before_it_is_made(generator: str) -> None:
    source = importlib.import_module(f"dilaton.lab.topologies.{generator.replace('-', '_')}").Source
    fields = source.model_validate(EXAMPLES[generator])
    made = fields.make(1)
    assert 0.5 * fields.parts() <= len(made.nodes) + len(made.links) <= 1.5 * fields.parts()


@pytest.mark.parametrize(
    "text",
    [
        {"generate": "full-mesh", "nodes": 100_000},
        {"generate": "full-mesh", "nodes": 1000},
        {"generate": "line", "nodes": 100_000, "hosts": 1000},
        {"generate": "barabasi-albert", "nodes": 10_000, "links": 1000},
        {"generate": "jellyfish", "nodes": 10_000, "degree": 1000},
        {"generate": "leaf-spine", "spines": 1000, "leaves": 1000, "hosts": 1000},
        {"generate": "grid", "rows": 100_000, "columns": 100_000},
        {"generate": "torus", "rows": 100_000, "columns": 100_000},
        {"generate": "tree", "depth": 16, "fanout": 1024},
        {"generate": "waxman", "nodes": 5000, "alpha": 1, "beta": 1},
    ],
    ids=lambda text: " ".join(map(str, text.values())),
)
def test_a_network_too_large_is_refused_before_it_costs_anything(text: dict[str, object]) -> None:
    before = time.process_time()
    with pytest.raises(ValueError, match=r"it would have \d+ nodes and links; at most 200000"):
        parse_topology(text, 1, ".")
    assert time.process_time() - before < 1


def test_every_generator_says_how_large_its_network_gets() -> None:
    folder = Path(topologies.__file__).parent
    assert {path.stem.replace("_", "-") for path in folder.glob("[!_]*.py")} == set(EXAMPLES)
