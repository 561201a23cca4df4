"""`router`: forwards packets, by the routes of the plan."""

from __future__ import annotations

from dilaton.plan.kinds.recipe import FORWARDING, FORWARDING_IPV6, Parts, Recipe, Site


def make(site: Site) -> Parts:
    """Forwarding, and what a flow is where paths are equal."""
    sysctls = dict(FORWARDING)
    if site.hash_policy:
        sysctls["net/ipv4/fib_multipath_hash_policy"] = str(site.hash_policy)
    if site.has_ipv6:
        sysctls |= FORWARDING_IPV6
        if site.hash_policy:
            sysctls["net/ipv6/fib_multipath_hash_policy"] = str(site.hash_policy)
    return Parts(sysctls=sysctls)


RECIPE = Recipe(forwards=lambda interfaces: True, make=make)
