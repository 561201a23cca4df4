"""`kathara:`: `lab.conf` of Kathará: which devices are in which collision domains.

A domain of two devices is a link, one of more a segment; one of a single device is a stub network, that is, a link to a
switch `stub-DOMAIN` with nothing else on it. Underscores of names become dashes. What a device runs (images, start-up
files) is not part of a topology: it is refused by name, unless it is ignored.
"""

from __future__ import annotations

import re
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
        domains: dict[str, list[Endpoint]] = {}
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
            end = Endpoint(node=device, interface=f"eth{int(match['key'])}")
            if (end.node, end.interface) in written:
                raise ValueError(f"{place}: {device}[{match['key']}] is written twice")
            written.add((end.node, end.interface))
            domains.setdefault(domain, []).append(end)
        for device in owners.values():
            if (path.parent / f"{device}.startup").is_file():
                self.refuse("startup", f"{device}.startup", "what runs is written under run:, addresses at endpoints")
        for domain, ends in domains.items():
            if len(ends) == 1:
                stub = host_name(f"stub-{domain.replace('_', '-')}".lower(), f"collision domain {domain}")
                if stub in nodes:
                    raise ValueError(f"collision domain {domain}: its switch would be called {stub}, as a node is")
                nodes[stub] = Node(kind=SWITCH)
                ends.append(Endpoint(node=stub))
        fields = self.link_fields()
        return Topology(nodes, [Link(endpoints=tuple(ends), **fields) for ends in domains.values()])
