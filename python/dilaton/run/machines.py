"""Where runs take place: the one place that chooses what implements the port."""

from __future__ import annotations

from dilaton.host.here.machine import Here
from dilaton.host.port import Machine


def chosen() -> Machine:
    """This machine, which is the only one there is to choose."""
    return Here()
