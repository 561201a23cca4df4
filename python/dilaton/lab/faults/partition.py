"""Partitions: which nodes do not hear which others, as users write it, and as it is drawn.

The shapes are those of Jepsen. `halves` and `majority` shuffle the nodes by the seed and cut them in two; of an uneven
number the second part is larger. `ring` shuffles them into a ring in which each hears its neighbours on both sides, a
majority with itself, and no two the same one. `bridge` shuffles them into two halves and one node that hears both.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Annotated, Any, NamedTuple

from pydantic import BeforeValidator, Field, model_validator

from dilaton.lab.text import syntax
from dilaton.lab.text.part import Part, Text

Nodes = Annotated[tuple[Text, ...], BeforeValidator(syntax.parse_names)]
"""Names of nodes or groups, or patterns of names of nodes."""

SHAPES = ("isolate", "halves", "majority", "ring", "bridge")
LEAST = {"isolate": 1, "halves": 2, "majority": 3, "ring": 4, "bridge": 3}
"""How many nodes each shape takes at least."""

Groups = list[list[str]]


class Cut(NamedTuple):
    """What the first nodes send to the others is lost."""

    sources: list[str]
    targets: list[str]


class Drawn(NamedTuple):
    """A partition of named nodes."""

    words: str
    cuts: list[Cut]


def _parse_groups(value: object) -> object:
    if value is None:
        return None
    groups = [syntax.parse_names(group) for group in value] if isinstance(value, list | tuple) else []
    if len(groups) < 2 or not all(groups):
        raise ValueError("needs two groups of nodes or more, as in [[db1, db2], [db3]]")
    return tuple(groups)


class Partition(Part):
    """Which nodes do not hear which others; exactly one way to say so is written."""

    groups: Annotated[tuple[tuple[Text, ...], ...] | None, BeforeValidator(_parse_groups)] = None
    """Written as a list: those of each group do not hear those of the others. Nodes of no group hear all."""
    sources: Nodes | None = Field(default=None, validation_alias="from")
    targets: Nodes | None = Field(default=None, validation_alias="to")
    """One way."""
    isolate: Nodes | None = None
    """Each of them hears no other node of the lab."""
    halves: Nodes | None = None
    majority: Nodes | None = None
    ring: Nodes | None = None
    bridge: Nodes | None = None

    @model_validator(mode="before")
    @classmethod
    def _from_groups(cls, data: Any) -> Any:
        return data if isinstance(data, dict | Part) else {"groups": data}

    @model_validator(mode="after")
    def _one_way_to_say_it(self) -> Partition:
        ways = [name for name in ("groups", *SHAPES) if getattr(self, name) is not None]
        is_one_way = self.sources is not None or self.targets is not None
        if len(ways) + is_one_way != 1 or (self.sources is None) != (self.targets is None):
            raise ValueError(f"needs [[a], [b, c]], {{from: [a], to: [b]}}, or one of {', '.join(SHAPES)}")
        return self

    @property
    def written(self) -> list[tuple[tuple[str | int, ...], tuple[str, ...]]]:
        """All lists of nodes, each with where it is written."""
        if self.groups is not None:
            return [((number,), group) for number, group in enumerate(self.groups)]
        named = (("from", self.sources), ("to", self.targets), *((shape, getattr(self, shape)) for shape in SHAPES))
        return [((name,), nodes) for name, nodes in named if nodes is not None]

    def drawn(self, select: Callable[[Sequence[str]], list[str]], every: Sequence[str], seed: str) -> Drawn:
        """Who does not hear whom.

        Args:
            select: The nodes that a list means.
            every: All nodes that have addresses.
            seed: Of what is drawn; the same seed draws the same.
        """
        if self.groups is not None:
            return _apart([select(group) for group in self.groups])
        if self.sources is not None and self.targets is not None:
            cut = Cut(select(self.sources), select(self.targets))
            return Drawn(f"{', '.join(cut.sources)} to {', '.join(cut.targets)}", [cut])
        shape = next(shape for shape in SHAPES if getattr(self, shape) is not None)
        nodes = select(getattr(self, shape))
        if shape == "isolate":
            others = [node for node in every if node not in nodes]
            return _apart([*([node] for node in nodes), *([others] if others else [])])
        random.Random(seed).shuffle(nodes)
        half = (len(nodes) - 1) // 2 if shape == "majority" else len(nodes) // 2
        if shape == "ring":
            return _ring(nodes)
        if shape == "bridge":
            bridge = nodes.pop(half)
            return _apart([nodes[:half], nodes[half:]])._replace(
                words=f"{_said([nodes[:half], nodes[half:]])} with {bridge} between them"
            )
        return _apart([sorted(nodes[:half], key=every.index), sorted(nodes[half:], key=every.index)])


def _apart(groups: Groups) -> Drawn:
    pairs = [(one, other) for one in groups for other in groups if one is not other]
    return Drawn(_said(groups), [Cut(list(one), list(other)) for one, other in pairs])


def _said(groups: Groups) -> str:
    return " | ".join(", ".join(group) for group in groups)


def _ring(nodes: list[str]) -> Drawn:
    majority = len(nodes) // 2 + 1
    cuts = []
    for place, node in enumerate(nodes):
        away = ((other - place) % len(nodes) for other in range(len(nodes)))
        far = [nodes[other] for other, step in enumerate(away) if min(step, len(nodes) - step) > majority // 2]
        if far:
            cuts.append(Cut([node], far))
    return Drawn(f"ring {', '.join(nodes)}", cuts)
