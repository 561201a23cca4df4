"""What users write: the lab file, read, checked and normalised."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dilaton.lab.errors import LabError, Problem
    from dilaton.lab.loader import load, loads
    from dilaton.lab.model import Lab
    from dilaton.lab.topology import Topology

__all__ = ["Lab", "LabError", "Problem", "Topology", "load", "loads"]

_HOMES = {
    "Lab": "dilaton.lab.model",
    "LabError": "dilaton.lab.errors",
    "Problem": "dilaton.lab.errors",
    "Topology": "dilaton.lab.topology",
    "load": "dilaton.lab.loader",
    "loads": "dilaton.lab.loader",
}


def __getattr__(name: str) -> Any:
    # Without the cost of importing what is not used: units and notations serve the command line too.
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module dilaton.lab has no attribute {name}")
