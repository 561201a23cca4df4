"""`router`: forwards packets, by the routes of the plan or of a routing daemon."""

from __future__ import annotations

from dilaton.lab.beside.configs import DirectoryTexts
from dilaton.plan.kinds import bird, frr, startup
from dilaton.plan.kinds.recipe import FORWARDING, FORWARDING_IPV6, Parts, Recipe, Site

DAEMONS = {"bird": bird.parts, "frr": frr.parts}


def make(site: Site) -> Parts:
    """Forwarding, what a flow is where paths are equal, and the routing daemon."""
    sysctls = dict(FORWARDING)
    if site.hash_policy:
        sysctls["net/ipv4/fib_multipath_hash_policy"] = str(site.hash_policy)
    if site.has_ipv6:
        sysctls |= FORWARDING_IPV6
        if site.hash_policy:
            sysctls["net/ipv6/fib_multipath_hash_policy"] = str(site.hash_policy)
    if site.node.startup is not None:
        files, processes = startup.parts(site, site.node.startup)
    elif isinstance(site.node.config, DirectoryTexts):
        files, processes = frr.own_parts(site, site.node.config.texts)
    elif site.daemon is not None:
        files, processes = DAEMONS[site.daemon](site)
    else:
        return Parts(sysctls=sysctls)
    return Parts(sysctls=sysctls, files=files, processes=processes)


RECIPE = Recipe(forwards=lambda interfaces: True, make=make)
