"""Where runs take place: the one place that chooses what implements the port."""

from __future__ import annotations

from pathlib import Path

from dilaton.host.here.machine import Here
from dilaton.host.port import Machine


def chosen(hidden: tuple[Path, ...] = ()) -> Machine:
    """This machine, which is the only one there is to choose; its guests do not see what is in `hidden`."""
    return Here(hidden)
