"""`nat`: a router that hides who is behind it, as routers of homes do.

What leaves by the interface `outside` has that interface's address, and a port of its own choice (masquerading). From
outside come only answers: nobody can open a connection inwards, although the plan's routes lead there. The rules are
those of iptables(8) in its first form, since the guest kernel has no chains of nftables for addresses.
"""

from __future__ import annotations

from dilaton.plan.kinds import router
from dilaton.plan.kinds.daemon import setup
from dilaton.plan.kinds.recipe import Parts, Recipe, Site
from dilaton.plan.model import OwnFile

RULES_FILE = "/etc/dilaton/nat.rules"

RULES = """*nat
-A POSTROUTING -o {outside} -j MASQUERADE
COMMIT
*filter
-A FORWARD -i {outside} -m conntrack --ctstate NEW,INVALID -j DROP
COMMIT
"""
"""The same for both versions of IP."""


def make(site: Site) -> Parts:
    """A router with these rules."""
    parts = router.make(site)
    rules = OwnFile(path=RULES_FILE, text=RULES.format(outside=site.node.outside))
    command = f"iptables-legacy-restore {RULES_FILE}"
    if site.has_ipv6:
        command += f" && ip6tables-legacy-restore {RULES_FILE}"
    process = setup(site.name, "nat", ["sh", "-c", command])
    return Parts(parts.sysctls, parts.bridge, [*parts.files, rules], [*parts.processes, process])


RECIPE = Recipe(
    forwards=lambda interfaces: True,
    make=make,
    modules=("iptable_nat", "ip6table_nat", "iptable_filter", "ip6table_filter", "xt_MASQUERADE", "xt_conntrack"),
)
