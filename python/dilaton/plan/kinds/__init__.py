"""What a run makes of each kind of node: one file a kind, with a recipe; a new kind is a new file and a line here."""

from __future__ import annotations

from dilaton.lab import kinds
from dilaton.plan.kinds import controller, host, nat, ovs, router, switch
from dilaton.plan.kinds.recipe import Adjacency, Parts, Peer, Recipe, Site

_RECIPES = {
    kinds.HOST: host.RECIPE,
    kinds.ROUTER: router.RECIPE,
    kinds.NAT: nat.RECIPE,
    kinds.SWITCH: switch.RECIPE,
    kinds.OVS: ovs.RECIPE,
    kinds.CONTROLLER: controller.RECIPE,
}


def recipe(kind: str | None) -> Recipe:
    """The recipe of a kind; None: a node of no kind is a host."""
    return _RECIPES[kind or kinds.HOST]


__all__ = ["Adjacency", "Parts", "Peer", "Recipe", "Site", "recipe"]
