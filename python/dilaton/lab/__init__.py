"""What users write: the lab file, read, checked and normalised."""

from __future__ import annotations

from dilaton.lab.errors import LabError, Problem
from dilaton.lab.loader import load, loads
from dilaton.lab.model import Lab
from dilaton.lab.topology import Topology

__all__ = ["Lab", "LabError", "Problem", "Topology", "load", "loads"]
