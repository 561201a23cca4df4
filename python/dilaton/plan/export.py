"""The network of a lab for other programs, with what a run would make of its nodes."""

from __future__ import annotations

from dilaton.lab.exporters import FORMATS
from dilaton.lab.exporters.configured import Configured, Route
from dilaton.lab.model import Lab
from dilaton.plan.kinds.recipe import FORWARDING, FORWARDING_IPV6
from dilaton.plan.model import Plan


def export(lab: Lab, plan: Plan, form: str) -> tuple[str, list[str]]:
    """A network in a format of `FORMATS`, and the names of what that has no place for."""
    return FORMATS[form].write(lab, configured(plan))


def configured(plan: Plan) -> dict[str, Configured]:
    """What a plan makes of each node, for writers of other formats."""
    return {
        node.name: Configured(
            {interface.name: interface.addresses for interface in node.interfaces},
            [Route(route.to, [(hop.via, hop.interface) for hop in route.hops]) for route in node.routes],
            forwards=any(node.sysctls.get(key) == "1" for key in FORWARDING | FORWARDING_IPV6),
            shares=any(route.shares for route in node.routes),
        )
        for node in plan.nodes
    }
