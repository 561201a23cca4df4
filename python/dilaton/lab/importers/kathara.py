"""`kathara:`: `lab.conf` of Kathará: which devices are in which collision domains.

A domain of two devices is a link, one of more a segment. What a device runs (images, start-up files) is not part of a
topology: it is refused by name, unless it is ignored.
"""

from __future__ import annotations

import re
from pathlib import Path

from dilaton.lab.importers._importer import Importer, host_name, read_text
from dilaton.lab.links import Endpoint, Link
from dilaton.lab.nodes import Node
from dilaton.lab.topology import Topology

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
        for number, line in enumerate(read_text(path).splitlines(), 1):
            text = line.split("#", maxsplit=1)[0].strip()
            if not text or HEADER.match(text):
                continue
            place = f"{self.kathara}:{number}"
            match = LINE.match(text)
            if match is None:
                raise ValueError(f'{place}: {text}: a line is written as device[0]="A"')
            device = host_name(match["device"], place)
            nodes.setdefault(device, Node())
            if not match["key"].isdecimal():
                self.refuse(match["key"], place)
                continue
            domain, *options = match["value"].split("/")
            if options:
                self.refuse("mac", place, "Ethernet addresses are planned")
            end = Endpoint(node=device, interface=f"eth{int(match['key'])}")
            if any(
                (other.node, other.interface) == (end.node, end.interface)
                for ends in domains.values()
                for other in ends
            ):
                raise ValueError(f"{place}: {device}[{match['key']}] is written twice")
            domains.setdefault(domain, []).append(end)
        for device in nodes:
            if (path.parent / f"{device}.startup").is_file():
                self.refuse("startup", f"{device}.startup", "what runs is written under run:, addresses at endpoints")
        alone = next((name for name, ends in domains.items() if len(ends) < 2), None)
        if alone is not None:
            end = domains[alone][0]
            raise ValueError(f"collision domain {alone}: only {end.node}:{end.interface} is in it; a link has two ends")
        fields = self.link_fields()
        return Topology(nodes, [Link(endpoints=tuple(ends), **fields) for ends in domains.values()])
