"""`nat`: a router that hides who is behind it, as routers of homes do.

What leaves by the interface `outside` has that interface's address, and a port of its own choice (masquerading). From
outside come only answers: nobody can open a connection inwards, although the plan's routes lead there. The rules are
those of iptables(8) in its first form, since the guest kernel has no chains of nftables for addresses. One that
has no iptables either gets the same by filters of packets (`crates/agent/src/network/masquerade.rs`).
"""

from __future__ import annotations

from dilaton.plan.kinds import router
from dilaton.plan.kinds.daemon import AGENT, setup
from dilaton.plan.kinds.recipe import Parts, Recipe, Site
from dilaton.plan.model import OwnFile

RULES_FILE = "/etc/dilaton/nat.rules"

TABLES_FILE = "/proc/net/ip_tables_names"
"""There where the kernel has iptables, whose modules are loaded before nodes are made."""

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
    tables = f"iptables-legacy-restore {RULES_FILE}"
    if site.has_ipv6:
        tables += f" && ip6tables-legacy-restore {RULES_FILE}"
    filters = f"{AGENT} masquerade {site.node.outside}"
    command = f"if [ -e {TABLES_FILE} ]; then {tables}; else {filters}; fi"
    process = setup(site.name, "nat", ["sh", "-c", command])
    return Parts(parts.sysctls, parts.bridge, [*parts.files, rules], [*parts.processes, process])


RECIPE = Recipe(
    forwards=lambda interfaces: True,
    make=make,
    modules=(
        *("iptable_nat|act_ct", "ip6table_nat|act_connmark", "iptable_filter|cls_flower", "ip6table_filter|cls_flower"),
        *("iptable_nat|act_mirred", "iptable_nat|act_gact", "xt_MASQUERADE", "xt_conntrack"),
    ),
)
