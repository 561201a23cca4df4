"""Volumes: directories that nodes share, each in the memory of a guest."""

from __future__ import annotations

from collections.abc import Mapping

from dilaton.lab.model import Lab
from dilaton.plan.errors import lab_error
from dilaton.plan.model import Volume


def volumes(lab: Lab, guest_of: Mapping[str, str]) -> dict[str, list[Volume]]:
    """The volumes of each node, given its guest: those that the lab names, and those of its image.

    Raises:
        LabError: Nodes of different guests share one.
    """
    first: dict[str, str] = {}
    found: dict[str, list[Volume]] = {}
    for node, written in lab.nodes.items():
        for path, name in written.volumes.items():
            if written.disk is not None and written.disk.mount == path:
                raise lab_error(f"nodes.{node}.volumes.{path}", "its disk is there; let one of the two be elsewhere")
            other = first.setdefault(name, node)
            if guest_of[other] != guest_of[node]:
                raise lab_error(
                    f"nodes.{node}.volumes.{path}",
                    f"{name}: {other} has it too, and is in another guest, {guest_of[other]}; what one writes the "
                    "other sees at once, so a volume is memory of one guest: name the same on both, or write guests: 2",
                )
        own = () if written.image == "host" else written.image.volumes
        found[node] = [
            *(Volume(name=name, path=path) for path, name in written.volumes.items()),
            *(Volume(name=None, path=path) for path in own if path not in written.volumes),
        ]
    return found
