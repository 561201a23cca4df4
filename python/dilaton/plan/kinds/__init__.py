"""What a run makes of each kind of node: one file a kind, with a recipe; a new kind is a new file and a line here."""

from __future__ import annotations

from dilaton.plan.kinds import host, ovs, router, switch
from dilaton.plan.kinds.recipe import Adjacency, Parts, Recipe, Site

_RECIPES = {"host": host.RECIPE, "ovs": ovs.RECIPE, "router": router.RECIPE, "switch": switch.RECIPE}


def recipe(kind: str | None) -> Recipe:
    """The recipe of a kind; None: a node of no kind is a host."""
    return _RECIPES[kind or "host"]


__all__ = ["Adjacency", "Parts", "Recipe", "Site", "recipe"]
