"""Where runs take place: the one place that chooses what implements the port."""

from __future__ import annotations

from pathlib import Path

from dilaton.host.here.machine import Here
from dilaton.host.port import Machine


def chosen(hidden: tuple[Path, ...] = (), machines: int = 1) -> Machine:
    """This machine, or as many that are made of it; guests do not see what is in `hidden`."""
    if machines == 1:
        return Here(hidden)
    # Who has one machine waits for nothing of this.
    from dilaton.cluster.local import Local
    from dilaton.cluster.machine import Cluster

    return Cluster(lambda: Local(machines), hidden)
