"""What other formats do not say of a lab."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dilaton.lab.model import Lab
from dilaton.lab.parts.nodes import Node
from dilaton.lab.text.part import Part

NETWORK = frozenset({"name", "topology", "defaults", "kinds", "groups", "nodes", "links"})
"""The fields of a lab that every format is about: what they say is in its nodes and links."""


def missing(
    lab: Lab,
    node_fields: Collection[str],
    link_fields: Collection[str],
    *,
    addresses: bool = False,
    segments: bool = False,
) -> list[str]:
    """What is written in a lab and not in a format.

    Args:
        lab: The lab.
        node_fields: The fields of nodes that the format keeps.
        link_fields: Those of links; with a dot, parts of a field.
        addresses: Whether it keeps addresses.
        segments: Whether it keeps links of more than two ends.
    """
    of_nodes = {name for node in lab.nodes.values() for name in _written_of(node)} - set(node_fields)
    of_links = {name for link in lab.links for name in _lacking(link, {*link_fields, "endpoints"})}
    has_addresses = any(end.addresses for link in lab.links for end in link.endpoints)
    has_segments = any(len(link.endpoints) > 2 for link in lab.links)
    of_lab = [name for name in type(lab).model_fields if name in lab.model_fields_set - NETWORK]
    return [
        *(f"{_word(Node, name)} of nodes" for name in sorted(of_nodes)),
        *(["addresses of endpoints"] if has_addresses and not addresses else []),
        *(["that a segment is one link (a switch stands for it)"] if has_segments and not segments else []),
        *(f"{name.removesuffix('_bit_per_s').removesuffix('_ns')} of links" for name in sorted(of_links)),
        *(_word(Lab, name) for name in of_lab),
    ]


def _written_of(node: Node) -> Iterator[str]:
    """The fields of a node that say anything."""
    return (name for name in node.model_fields_set if getattr(node, name) is not None)


def _lacking(part: Part, kept: Collection[str]) -> Iterator[str]:
    """What is written in a part and not kept."""
    for name in part.model_fields_set - set(kept):
        value = getattr(part, name)
        inner = [field.removeprefix(f"{name}.") for field in kept if field.startswith(f"{name}.")]
        if inner and isinstance(value, Part):
            yield from (f"{name}.{field}" for field in _lacking(value, inner))
        else:
            yield name


def _word(model: type[Part], name: str) -> str:
    """A field by the name that users write."""
    return str(model.model_fields[name].validation_alias or name)
