"""Writers of a lab's network in other formats, one a file; each names what it leaves out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from dilaton.lab.exporters import containerlab, dot, graphml, mininet, xml
from dilaton.lab.exporters.configured import Configured
from dilaton.lab.model import Lab


@dataclass(frozen=True)
class Format:
    """A format: how the names of its files end, and its writer, which gives the text and what it lacks of the lab.

    A writer takes the lab and what a run would make of its nodes, by name.
    """

    suffix: str
    write: Callable[[Lab, Mapping[str, Configured]], tuple[str, list[str]]]


FORMATS = {
    "containerlab": Format(".clab.yml", containerlab.write),
    "dot": Format(".dot", dot.write),
    "graphml": Format(".graphml", graphml.write),
    "mininet": Format(".py", mininet.write),
    "xml": Format(".xml", xml.write),
}
