"""Names in place of addresses: what legends and titles say, since nobody knows the addresses of a lab by heart."""

from __future__ import annotations

from collections.abc import Mapping

from dilaton.plan.model import Plan


def names_of(plan: Plan | None) -> dict[str, str]:
    """The node that has each address; none without a plan."""
    nodes = plan.nodes if plan else []
    return {
        address.partition("/")[0]: node.name
        for node in nodes
        for given in (node.loopback, *(interface.addresses for interface in node.interfaces))
        for address in given
    }


def flow_name(names: Mapping[str, str], source: str, source_port: int, destination: str, destination_port: int) -> str:
    """One direction of a connection, as `a:41000 > b:5201`; what has an address that is no node's keeps it."""
    return f"{names.get(source, source)}:{source_port} > {names.get(destination, destination)}:{destination_port}"
