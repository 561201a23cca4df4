"""Which nodes a list of names means: nodes, groups, and patterns such as `db*`."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase

from dilaton.lab.errors import unknown
from dilaton.lab.model import Lab


def select(lab: Lab, written: Iterable[str]) -> list[str]:
    """The nodes that are meant, in the order in which they are written, those of a pattern in that of the lab.

    Raises:
        ValueError: A name is of nothing, a pattern meets no node, or a node is meant twice.
    """
    found: list[str] = []
    for text in written:
        for name in _meant(lab, text):
            if name in found:
                raise ValueError(f"{name} is named twice")
            found.append(name)
    return found


def _meant(lab: Lab, text: str) -> list[str]:
    if text in lab.nodes:
        return [text]
    if text in lab.groups:
        found = [name for name, node in lab.nodes.items() if node.group == text]
        if not found:
            raise ValueError(f"{text}: no node is of this group")
        return found
    if any(sign in text for sign in "*?["):
        found = [name for name in lab.nodes if fnmatchcase(name, text)]
        if not found:
            raise ValueError(f"{text}: meets no node")
        return found
    raise ValueError(unknown("node or group", text, [*lab.nodes, *lab.groups]))
