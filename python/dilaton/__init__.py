"""Dilaton: networks of unmodified Linux programs, in virtual time."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from dilaton.lab.topology import Topology
    from dilaton.run.loading import Run

__version__ = "0.1.0"


def __getattr__(name: str) -> type[Topology]:
    # `dilaton.Topology`, without the cost of importing it where it is not used.
    if name == "Topology":
        from dilaton.lab.topology import Topology

        return Topology
    raise AttributeError(f"module dilaton has no attribute {name}")


def load(path: str | Path) -> Run:
    """Loads a run: its record, and its tables as pandas DataFrames (see `docs/python.md`).

    Args:
        path: Its run directory.

    Raises:
        RecordError: it is no run directory, is damaged, or another version of Dilaton wrote it.
    """
    # Here, since pandas and all that would make the command line slow.
    from dilaton.run.loading import load as load_run

    return load_run(path)
