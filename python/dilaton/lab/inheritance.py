"""A node says only what differs: containerlab's inheritance.

What a node does not say itself is said by its group, else by its kind, else by the defaults, else by the topology that
made the node. A mapping, such as sysctls, is inherited key by key.

A kind is one of the built-in ones, whose settings `kinds` may give; or one that the lab defines there, which is of a
built-in kind in turn: `kinds: {leaf: {kind: switch}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dilaton.lab.parts.nodes import Node


def inherit(
    node: Node, made: Node | None, defaults: Node, kinds: Mapping[str, Node], groups: Mapping[str, Node]
) -> Node:
    """A node with all that it inherits; unknown kinds and groups give nothing.

    Args:
        node: What is written for it.
        made: What the topology says of it, if it made the node.
        defaults: What is said for all nodes.
        kinds: What is said by kind.
        groups: What is said by group.
    """
    weakest = [made] if made else []
    group = _said(node, defaults, *weakest, name="group")
    by_group = [groups[group]] if group is not None and group in groups else []
    kind = _said(node, *by_group, defaults, *weakest, name="kind")
    by_kind = [kinds[kind]] if kind is not None and kind in kinds else []
    fields: dict[str, Any] = {}
    for layer in (*weakest, defaults, *by_kind, *by_group, node):
        for name in layer.model_fields_set:
            value = getattr(layer, name)
            fields[name] = {**fields.get(name, {}), **value} if isinstance(value, dict) else value
    if kind is not None:
        fields["kind"] = _said(*by_kind, name="kind") or kind
    return type(node).model_validate(fields)


def _said(*layers: Node, name: str) -> str | None:
    """What the first of these layers says that says anything."""
    return next((value for layer in layers if (value := getattr(layer, name)) is not None), None)
