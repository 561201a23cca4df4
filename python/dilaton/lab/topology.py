"""A network that is not written node by node: generated, read from a file, or made in Python.

`topology:` names where the network comes from with one of its fields: `generate: fat-tree`, or a format of files such
as `graphml: Abilene.graphml`. Each source is a module with a model of its fields and a function that makes the network
of them: generators are in `topologies`, formats in `importers`. A new source is one more file there.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from dilaton.lab.text import syntax, units
from dilaton.lab.text.part import made

if TYPE_CHECKING:
    import networkx

    from dilaton.lab.importers._importer import Importer
    from dilaton.lab.parts.links import Link
    from dilaton.lab.parts.nodes import Node


KATHARA_FILE = "lab.conf"
"""What the directory of a lab of Kathará's has."""

ENDINGS = {
    ".graphml": "graphml",
    ".gml": "gml",
    ".json": "json",
    ".clab.yml": "containerlab",
    ".clab.yaml": "containerlab",
    KATHARA_FILE: "kathara",
    ".py": "mininet",
    ".xml": "xml",
}
"""What `file:` takes a file for, by the end of its name."""


@dataclass(frozen=True)
class Topology:
    """Nodes and links.

    Attributes:
        nodes: The nodes by name, in the order in which they get their addresses.
        links: The links, likewise.
        positions: Where a drawing has its nodes, x to the right and y up, in any unit; may leave nodes out.
        places: Where on earth they are, longitude and latitude in degrees; likewise.
    """

    nodes: Mapping[str, Node]
    links: list[Link]
    positions: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    places: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def from_networkx(cls, graph: networkx.Graph[Any]) -> Topology:
        """A topology with the nodes and edges of a graph.

        Attributes of nodes are fields of nodes in a lab (`kind`, `group`, …), those of edges are fields of links
        (`rate`, `delay`, …); `pos` of a node is its position. Names become text.

        Raises:
            ValueError: a name or an attribute has no place in a lab; the text names the node or edge.
        """
        from dilaton.lab.graphs import from_networkx

        return cls(*from_networkx(graph))

    def to_networkx(self) -> networkx.MultiGraph[str]:
        """The topology as a graph; segments become nodes of it."""
        from dilaton.lab.graphs import to_networkx

        return to_networkx(self.nodes, self.links, self.positions)


class Source(Protocol):
    """Makes a topology: the model of what `topology:` says with this source."""

    def build(self, seed: int, directory: Path) -> Topology:
        """The topology; what is drawn by chance starts at `seed`, relative paths at `directory`."""
        ...


def parse_topology(value: object, seed: int, directory: str | os.PathLike[str]) -> Topology:
    """Reads what `topology:` says and makes the topology.

    Raises:
        ValueError: there is no such source, it does not have such fields, or they make no network.
    """
    if isinstance(value, Topology):
        return value
    if not isinstance(value, dict):
        raise ValueError(f"must be a mapping such as {{generate: fat-tree, k: 4}}, not {units.shown(value)}")
    if "file" in value:
        file = str(value["file"])
        name = next((name for ending, name in ENDINGS.items() if file.endswith(ending)), None)
        if name is None:
            raise ValueError(
                f"{file}: no known kind of file; let its name end with {', '.join(ENDINGS)}, or say what it is, "
                f"as {{shadow: {file}}}"
            )
        value = {name: file, **{key: part for key, part in value.items() if key != "file"}}
    formats = _modules("importers")
    named = [name for name in ("generate", *formats) if name in value]
    if len(named) != 1:
        known = ", ".join(("generate", "file", *formats))
        what = "no source" if not named else f"{len(named)} sources ({', '.join(named)})"
        raise ValueError(f"{what}; write exactly one of {known}")
    if named == ["generate"]:
        generator = syntax.parse_choice(value["generate"], "a generator", _modules("topologies"))
        module = _module("topologies", generator)
        fields = {name: part for name, part in value.items() if name != "generate"}
        subject = generator
    else:
        module = _module("importers", named[0])
        fields = dict(value)
        subject = f"a topology from {named[0]}"
    model = module.Source
    _refuse_unknown(fields, model, subject)
    source: Source = model.model_validate(fields)
    return source.build(seed, Path(directory))


def importer(name: str) -> type[Importer]:
    """The model of what `topology:` says with a format of files."""
    model: type[Importer] = _module("importers", name).Source
    return model


def reader(name: str, fields: Mapping[str, object]) -> Importer:
    """The reader of a format of files, with these fields of `topology:`.

    Raises:
        ValueError: it has no such fields, or one cannot be so.
    """
    model = importer(name)
    _refuse_unknown(fields, model, f"a topology from {name}")
    return made(model, dict(fields), "topology")


def _refuse_unknown(fields: Mapping[str, object], model: Any, subject: str) -> None:
    known = [str(described.validation_alias or name) for name, described in model.model_fields.items()]
    for name in fields:
        if name not in known and name not in model.model_fields:
            hint = syntax.did_you_mean(name, known) or f"; known: {', '.join(known)}"
            raise ValueError(f"{name}: {subject} has no such field{hint}")


def _modules(package: str) -> tuple[str, ...]:
    """The names of what a package offers, by its files."""
    folder = Path(__file__).parent / package
    names: Iterable[str] = (module.name for module in pkgutil.iter_modules([str(folder)]))
    return tuple(sorted(name.replace("_", "-") for name in names if not name.startswith("_")))


def _module(package: str, name: str) -> Any:
    return importlib.import_module(f"dilaton.lab.{package}.{name.replace('-', '_')}")
