"""`switch`: a kernel bridge, which learns Ethernet addresses; without a spanning tree a port forwards at once."""

from __future__ import annotations

from dilaton.plan.kinds.recipe import Parts, Recipe, Site
from dilaton.plan.model import Bridge


def bridge_name(interfaces: list[str]) -> str:
    """A name that no interface has."""
    return next(name for number in range(len(interfaces) + 1) if (name := f"br{number}") not in interfaces)


def make(site: Site) -> Parts:
    """A bridge of all interfaces."""
    bridge = Bridge(name=bridge_name(site.interfaces), stp=site.node.stp)
    return Parts(sysctls={"net/ipv6/conf/default/disable_ipv6": "1"}, bridge=bridge)


RECIPE = Recipe(forwards=lambda interfaces: False, make=make, modules=("bridge",))
