"""What a file is, by its name and, where that says little, by what is in it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from dilaton.lab.importers._importer import read_text, read_yaml
from dilaton.lab.importers.kathara import LINE
from dilaton.lab.topology import ENDINGS

LAB = "lab"
"""A lab of our own, or what is nothing else: its mistakes are for who reads labs to tell."""

BEGINNING = 4096
"""Characters of a file by which it is known."""

GRAPHML = re.compile(r"<(?:\w+:)?graphml\b")
BY_CONTENT = {
    "gml": re.compile(r"^\s*graph\s*\[", re.MULTILINE),
    "mininet": re.compile(r"^\s*(?:from|import)\s+mininet\b", re.MULTILINE),
    "kathara": re.compile(LINE.pattern, re.MULTILINE),
}
"""What text files of a format have near their beginning."""


def kind_of(path: Path) -> str:
    """The format that reads a file, or `LAB`.

    Raises:
        ValueError: it cannot be read, or is no text.
    """
    beginning = read_text(path)[:BEGINNING]
    if path.suffix.lower() == ".xml" or (not path.suffix and beginning.lstrip().startswith("<")):
        return "graphml" if GRAPHML.search(beginning) else "xml"
    if path.suffix.lower() in (".yaml", ".yml"):
        return _of_yaml(path)
    name = path.name.lower()
    named = next((kind for ending, kind in ENDINGS.items() if name.endswith(ending)), None)
    return named or next((kind for kind, mark in BY_CONTENT.items() if mark.search(beginning)), LAB)


def _of_yaml(path: Path) -> str:
    try:
        return of_data(read_yaml(path))
    except ValueError:
        return LAB


def of_data(data: Any) -> str:
    """The format of what YAML says: containerlab has nodes below `topology`, Shadow a graph below `network`."""
    if not isinstance(data, dict):
        return LAB
    topology, network = data.get("topology"), data.get("network")
    if isinstance(topology, dict) and isinstance(topology.get("nodes"), dict):
        return "containerlab"
    return "shadow" if isinstance(network, dict) and "graph" in network else LAB
