"""Disks: which block device of its guest each node's disk is."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Mapping

from dilaton.lab.model import Lab
from dilaton.lab.parts import disks as written_disks
from dilaton.plan.errors import lab_error
from dilaton.plan.model import Disk, VolatileCache

DISKS_MAX = 16
"""Block devices of one guest: the kernel's driver knows no more."""


def disks(lab: Lab, guest_of: Mapping[str, str]) -> dict[str, Disk]:
    """The disks of nodes by node, given each node's guest.

    Raises:
        LabError: A guest has too many, or two nodes have the same image.
    """
    counts, images, found = Counter[str](), dict[str, str](), dict[str, Disk]()
    for name, node in lab.nodes.items():
        written = node.disk
        if written is None:
            continue
        guest = guest_of[name]
        if counts[guest] == DISKS_MAX:
            raise lab_error(
                f"nodes.{name}.disk",
                f"guest {guest} has {DISKS_MAX} disks already, and a kernel no more; write guests: per-node",
            )
        if written.image is not None and (other := images.setdefault(written.image, name)) != name:
            raise lab_error(f"nodes.{name}.disk", f"image: {written.image} is the disk of {other} already")
        found[name] = Disk(
            number=counts[guest],
            model=written.kind,
            parameters=written.parameters(),
            size_bytes=written.size,
            image=written.image,
            mount=written.mount,
            volatile_cache=_volatile_cache(written, f"{lab.seed} disk {name}"),
        )
        counts[guest] += 1
    return found


def _volatile_cache(disk: written_disks.Disk, seed: str) -> VolatileCache | None:
    if disk.volatile_bytes is None:
        return None
    torn_seed = random.Random(seed).getrandbits(64) if disk.cache == "torn" else None
    return VolatileCache(bytes=disk.volatile_bytes, torn_seed=torn_seed)
