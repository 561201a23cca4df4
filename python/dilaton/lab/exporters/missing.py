"""What other formats do not say of a lab."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from dilaton.lab.model import Lab
from dilaton.lab.part import Part

NOT_THE_NETWORK = ("changes", "run", "expect", "time", "stop_after_ns", "routing", "addressing")


def missing(lab: Lab, node_fields: Collection[str], link_fields: Collection[str]) -> list[str]:
    """What is written in a lab and not in a format.

    Args:
        lab: The lab.
        node_fields: The fields of nodes that the format keeps.
        link_fields: Those of links; with a dot, parts of a field.
    """
    of_nodes = {name for node in lab.nodes.values() for name in node.model_fields_set} - {*node_fields, "group"}
    of_links = {name for link in lab.links for name in _lacking(link, {*link_fields, "endpoints"})}
    has_addresses = any(end.addresses for link in lab.links for end in link.endpoints)
    of_lab = [name for name in NOT_THE_NETWORK if name in lab.model_fields_set]
    return [
        *(f"{_written(lab, name)} of nodes" for name in sorted(of_nodes)),
        *(["addresses of endpoints"] if has_addresses else []),
        *(f"{name.removesuffix('_bit_per_s').removesuffix('_ns')} of links" for name in sorted(of_links)),
        *(name.removesuffix("_ns") for name in of_lab),
    ]


def _lacking(part: Part, kept: Collection[str]) -> Iterator[str]:
    """What is written in a part and not kept."""
    for name in part.model_fields_set - set(kept):
        value = getattr(part, name)
        inner = [field.removeprefix(f"{name}.") for field in kept if field.startswith(f"{name}.")]
        if inner and isinstance(value, Part):
            yield from (f"{name}.{field}" for field in _lacking(value, inner))
        else:
            yield name


def _written(lab: Lab, name: str) -> str:
    field = type(next(iter(lab.nodes.values()))).model_fields[name]
    return str(field.validation_alias or name)
