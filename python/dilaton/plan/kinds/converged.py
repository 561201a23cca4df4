"""Waiting until routing has converged: processes that end when a router has a route to every network.

Where something in a lab waits for `converged`, each router with a routing daemon gets one: the agent's own program
(`crates/agent/src/network/converged.rs`), which ends at the instant of the last route that was missing. One more ends
after all of these, and is what `converged` means. Networks are those that the routers are on, with their loopback
addresses; a router needs those that it is not on itself, of the versions of IP that it has.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from ipaddress import IPv4Interface, IPv6Interface, ip_interface

from dilaton.lab.checks.course import CONVERGED
from dilaton.plan.course.entries import Awaited
from dilaton.plan.errors import lab_error
from dilaton.plan.kinds.daemon import AGENT, READY_TIMEOUT_NS, setup
from dilaton.plan.model import Node, OwnFile, Process

Address = IPv4Interface | IPv6Interface

NETWORKS = "/etc/dilaton/networks"
"""The file with those to which a router needs routes, a line each."""


def waiting(routers: Collection[str], nodes: Sequence[Node]) -> tuple[list[Node], list[Process]]:
    """The nodes with what routers need to know, and the processes that wait: one on each router, and one for all.

    Args:
        routers: The nodes with a routing daemon.
        nodes: All nodes of the plan.

    Raises:
        LabError: There are no routers.
    """
    if not routers:
        raise lab_error("routing", f"{CONVERGED}: is waited for, and no node of this lab is a router")
    addresses = {node.name: _addresses(node) for node in nodes if node.name in routers}
    networks = dict.fromkeys(address.network for own in addresses.values() for address in own)
    files = {}
    for name, own in addresses.items():
        near, versions = {address.network for address in own}, {address.version for address in own}
        wanted = [network for network in networks if network.version in versions and network not in near]
        files[name] = OwnFile(path=NETWORKS, text="".join(f"{network}\n" for network in wanted))
    found = [
        node.model_copy(update={"files": [*node.files, files[node.name]]}) if node.name in files else node
        for node in nodes
    ]
    argv = [AGENT, CONVERGED, str(READY_TIMEOUT_NS // 10**9)]
    each = [setup(name, CONVERGED, [*argv, NETWORKS]) for name in addresses]
    first = each[0].node
    whole = {
        "name": CONVERGED,
        "argv": [*argv, "/dev/null"],
        "after": [Awaited(name=process.name, moment="milestone") for process in each],
        "stdout": f"nodes/{first}/{CONVERGED}.stdout",
        "stderr": f"nodes/{first}/{CONVERGED}.stderr",
    }
    return found, [*each, each[0].model_copy(update=whole)]


def _addresses(node: Node) -> list[Address]:
    own = [address for interface in node.interfaces for address in interface.addresses]
    return [ip_interface(address) for address in (*own, *node.loopback)]
