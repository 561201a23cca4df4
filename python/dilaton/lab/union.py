"""Things that are joined bit by bit, and whether two of them are together: union-find."""

from __future__ import annotations

from collections.abc import Hashable


class Union:
    """Sets of things; each thing is alone at first."""

    def __init__(self) -> None:
        self._parents: dict[Hashable, Hashable] = {}

    def root(self, thing: Hashable) -> Hashable:
        """The thing that stands for the set of `thing`; of two joined sets that of the first."""
        parents = self._parents
        parent = parents.setdefault(thing, thing)
        while parents[parent] != parent:
            parents[thing] = parent = parents[parent]
        return parent

    def join(self, one: Hashable, other: Hashable) -> bool:
        """Joins the sets of two things; returns whether they were apart."""
        first, second = self.root(one), self.root(other)
        self._parents[second] = first
        return first != second
