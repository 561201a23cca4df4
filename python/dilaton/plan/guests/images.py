"""Images: which block device of its guest the tree of each is.

Nodes with the same image share its device, and with that what the kernel has read of it. Images take the last numbers
of a guest's devices, as disks take the first.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping

from dilaton.lab.model import Lab
from dilaton.plan.errors import lab_error
from dilaton.plan.guests.disks import DISKS_MAX
from dilaton.plan.model import Disk, HostTree, StoredImage


def images(lab: Lab, guest_of: Mapping[str, str], disks: Mapping[str, Disk]) -> dict[str, HostTree | StoredImage]:
    """Where the file trees of nodes come from, given each node's guest and the disks that there are.

    Raises:
        LabError: A guest has too many images.
    """
    places: defaultdict[str, dict[str, int]] = defaultdict(dict)
    found: dict[str, HostTree | StoredImage] = {}
    for name, node in lab.nodes.items():
        image = node.image
        if image == "host":
            found[name] = HostTree()
            continue
        guest = guest_of[name]
        here = places[guest]
        device = here.setdefault(image.digest, DISKS_MAX - 1 - len(here))
        if device < _disks_in(guest, guest_of, disks):
            raise lab_error(
                f"nodes.{name}.image",
                f"guest {guest} has {DISKS_MAX} disks and images already, and a kernel no more; write guests: per-node",
            )
        found[name] = StoredImage(name=image.name, digest=image.digest, file=image.root, device=device)
    return found


def _disks_in(guest: str, guest_of: Mapping[str, str], nodes: Collection[str]) -> int:
    return sum(guest_of[node] == guest for node in nodes)
