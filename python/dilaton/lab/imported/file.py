"""Reads a file of another program as a lab of our own, and says what of it that lab does not have.

In a lab, what a file says and a lab cannot honour is a mistake until `ignore:` names it (`importers._importer`). Here
somebody has only the file, and is to see all of that at once beside the lab: so it is left out, and told.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from dilaton.lab.imported.kinds import LAB, kind_of
from dilaton.lab.imported.writing import lab_text
from dilaton.lab.importers._attributed import AttributedGraph
from dilaton.lab.importers._importer import Importer, read_text
from dilaton.lab.text.syntax import lab_name_of
from dilaton.lab.topology import Topology, importer, reader


@dataclass(frozen=True)
class Imported:
    """A lab that was made of a file.

    Attributes:
        kind: What the file was taken for.
        text: Of the lab.
        left_out: What of the file it does not have, each with its place and a reason.
        positions: Where the file has its nodes, x to the right and y up, in any unit.
        places: Where on earth it has them, longitude and latitude in degrees.
    """

    kind: str
    text: str
    left_out: list[str] = field(default_factory=list)
    positions: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    places: Mapping[str, tuple[float, float]] = field(default_factory=dict)


def imported(path: Path, fields: Mapping[str, object] | None = None, name: str = "") -> Imported:
    """The lab that a file becomes; a lab stays as it is.

    Args:
        path: Of the file.
        fields: What `topology:` would say of it, such as which of the topologies in a file of Mininet.
        name: Of the lab; empty: that of the file.

    Raises:
        ValueError: it cannot be read as what its name and its contents say that it is.
    """
    kind = kind_of(path)
    if kind == LAB:
        return Imported(kind, read_text(path))
    source, topology = _read(kind, path, fields or {})
    left_out = source.left_out()
    files = [name for name, node in topology.nodes.items() if node.files]
    if files:
        left_out.append(f"{', '.join(files)}: files: a lab of one file has none beside it")
    text = lab_text(name or lab_name_of(path.name), topology, f"From {' '.join(path.name.split())}")
    return Imported(kind, text, left_out, topology.positions, topology.places)


def _read(kind: str, path: Path, fields: Mapping[str, object]) -> tuple[Importer, Topology]:
    """The network of a file, and its reader. Nodes of a graph have their labels, where each has one."""
    fields = {**fields, kind: path.name}
    if issubclass(importer(kind), AttributedGraph) and "names" not in fields:
        labelled = reader(kind, {**fields, "names": "label"})
        with contextlib.suppress(ValueError):
            return labelled, labelled.read(path.parent)
    source = reader(kind, fields)
    return source, source.read(path.parent)
