"""A part of the plan that guests of a single command need too: so it takes none of what the plan's models import."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Bind:
    """A directory of this machine that a node sees at its own path, also where nodes have a place of their own."""

    path: str
    writable: bool
    """Whether what the node writes there is kept; else it is in the node's memory, like all that it writes."""
