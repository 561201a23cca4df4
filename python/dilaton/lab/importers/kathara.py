"""`kathara:`: `lab.conf` of Kathará: which devices are in which collision domains.

A domain of two devices is a link, one of more a segment; one of a single device is a stub network, that is, a link to a
switch `stub-DOMAIN` with nothing else on it. Underscores of names become dashes. Of the commands in `DEVICE.startup`
those that give an interface an address, or bring it up, are understood. What else a device runs, and its image, are not
part of a topology: they are refused by name, unless they are ignored.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator
from pathlib import Path

from dilaton.lab.importers._importer import Importer, host_name, read_text
from dilaton.lab.kinds import SWITCH
from dilaton.lab.parts.links import Endpoint, Link
from dilaton.lab.parts.nodes import Node
from dilaton.lab.topology import Topology

LINES_MAX = 20_000
LINE = re.compile(r"""^(?P<device>[^\s=\[\]]+)\[(?P<key>[^\]]+)\]\s*=\s*(?P<quote>["']?)(?P<value>.*?)(?P=quote)$""")
HEADER = re.compile(r"^LAB_[A-Z]+\s*=")


class Source(Importer):
    """A lab.conf."""

    kathara: str

    def read(self, directory: Path) -> Topology:
        """See `Importer.read`."""
        path = directory / self.kathara
        domains: dict[str, list[tuple[str, str]]] = {}
        nodes: dict[str, Node] = {}
        owners: dict[str, str] = {}
        written: set[tuple[str, str]] = set()
        lines = read_text(path).splitlines()
        if len(lines) > LINES_MAX:
            raise ValueError(f"{self.kathara}: {len(lines)} lines; {LINES_MAX} are the most that is read")
        for number, line in enumerate(lines, 1):
            text = line.split("#", maxsplit=1)[0].strip()
            if not text or HEADER.match(text):
                continue
            place = f"{self.kathara}:{number}"
            match = LINE.match(text)
            if match is None:
                raise ValueError(f'{place}: {text}: a line is written as device[0]="A"')
            device = host_name(match["device"].replace("_", "-"), place)
            if owners.setdefault(device, match["device"]) != match["device"]:
                raise ValueError(f"{place}: {owners[device]} and {match['device']} would both be called {device}")
            nodes.setdefault(device, Node())
            if not match["key"].isdecimal():
                self.refuse(match["key"], place)
                continue
            domain, *options = match["value"].split("/")
            if options:
                self.refuse("mac", place, "Ethernet addresses are planned")
            end = (device, f"eth{int(match['key'])}")
            if end in written:
                raise ValueError(f"{place}: {device}[{match['key']}] is written twice")
            written.add(end)
            domains.setdefault(domain, []).append(end)
        addresses = self._addresses(path.parent, owners, written)
        links: list[Link] = []
        for domain, members in domains.items():
            ends = [
                Endpoint.model_validate({"node": node, "interface": name, "address": addresses.get((node, name), [])})
                for node, name in members
            ]
            if len(ends) == 1:
                stub = host_name(f"stub-{domain.replace('_', '-')}".lower(), f"collision domain {domain}")
                if stub in nodes:
                    raise ValueError(f"collision domain {domain}: its switch would be called {stub}, as a node is")
                nodes[stub] = Node(kind=SWITCH)
                ends.append(Endpoint(node=stub))
            links.append(Link(endpoints=tuple(ends), **self.link_fields()))
        return Topology(nodes, links)

    def _addresses(
        self, directory: Path, devices: dict[str, str], interfaces: set[tuple[str, str]]
    ) -> dict[tuple[str, str], list[str]]:
        """What start-up files give the interfaces of devices, by these."""
        found: dict[tuple[str, str], list[str]] = {}
        files = {f"{device}.startup": node for node, device in devices.items()} | {"shared.startup": ""}
        for name, node in files.items():
            for number, line in _commands(directory / name):
                address, interface = _address(line)
                if (node, interface) not in interfaces:
                    fix = "what runs is written under run:, and routes are planned"
                    self.refuse("startup", f"{name}:{number}: {line}", fix)
                elif address:
                    found.setdefault((node, interface), []).append(address)
        return found


def _commands(path: Path) -> Iterator[tuple[int, str]]:
    """The commands of a start-up file, each on a line of its own, with their numbers."""
    if path.is_file():
        for number, line in enumerate(read_text(path).splitlines(), 1):
            if text := line.split("#", maxsplit=1)[0].strip():
                yield number, text


def _address(command: str) -> tuple[str, str]:
    """The address that a command gives an interface, none if it brings it up; and which, none if it does neither."""
    match command.removesuffix(" up").split():
        case ["ip", "a" | "addr" | "address", "add", address, "dev", interface] | ["ifconfig", interface, address]:
            pass
        case ["ifconfig", interface, address, "netmask", mask]:
            address = f"{address}/{mask}"
        case (
            ["ifconfig" | "ifup", interface]
            | ["ip", "link", "set", interface]
            | ["ip", "link", "set", "dev", interface]
        ):
            return "", interface
        case _:
            return "", ""
    try:
        return str(ipaddress.ip_interface(address)), interface
    except ValueError:
        return "", ""
