"""`dilaton report addressing`: which addresses a lab has."""

from __future__ import annotations

from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.table import Table

from dilaton.cli.terminal import Output
from dilaton.plan.model import Plan
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides

LOOPBACK = "lo"


def print_addressing(path: Path) -> None:
    """Prints a row for each interface of a lab."""
    plan = prepare(LabText.read(path), Overrides()).plan
    table = Table(box=SIMPLE_HEAD)
    for column in ("node", "interface", "IPv4", "IPv6", "Ethernet", "link to"):
        table.add_column(column, no_wrap=True)
    for row in rows(plan):
        table.add_row(*row)
    console = Output()
    if not console.is_terminal:
        console.width = 200
    console.print(table)


def rows(plan: Plan) -> list[tuple[str, ...]]:
    """Node, interface, IPv4 and IPv6 addresses, Ethernet address, and the other end of the link."""
    others: dict[tuple[str, str], str] = {}
    for link in plan.links:
        a, b = link.ends
        others[a.node, a.interface] = f"{b.node}:{b.interface}"
        others[b.node, b.interface] = f"{a.node}:{a.interface}"
    found: list[tuple[str, ...]] = []
    for node in plan.nodes:
        if node.loopback:
            found.append((node.name, LOOPBACK, *_by_version(node.loopback), "", ""))
        for interface in node.interfaces:
            other = others.get((node.name, interface.name), "")
            found.append((node.name, interface.name, *_by_version(interface.addresses), interface.mac, other))
    return found


def _by_version(addresses: list[str]) -> tuple[str, str]:
    ipv4 = [address for address in addresses if ":" not in address]
    return ", ".join(ipv4), ", ".join(address for address in addresses if address not in ipv4)
