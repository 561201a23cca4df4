"""Dilaton: networks of unmodified Linux programs, in virtual time."""

# Nothing is imported here while the command line starts, which is deaf to Ctrl-C until `__main__.py` listens.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from dilaton.lab.errors import LabError
    from dilaton.lab.topology import Topology
    from dilaton.run.control import ControlError
    from dilaton.run.live import LiveRun, attach, start
    from dilaton.run.loading import Run

__version__ = "0.1.0"

__all__ = ["ControlError", "LabError", "LiveRun", "Topology", "attach", "load", "start"]

_HOMES = {
    "ControlError": "dilaton.run.control",
    "LabError": "dilaton.lab.errors",
    "LiveRun": "dilaton.run.live",
    "Topology": "dilaton.lab.topology",
    "attach": "dilaton.run.live",
    "start": "dilaton.run.live",
}


def __getattr__(name: str) -> "Any":
    # Without the cost of importing what is not used.
    if name in _HOMES:
        import importlib

        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module dilaton has no attribute {name}")


def load(path: "str | Path") -> "Run":
    """Loads a run: its record, and its tables as pandas DataFrames (see `docs/python.md`).

    Args:
        path: Its run directory.

    Raises:
        RecordError: it is no run directory, is damaged, or another version of Dilaton wrote it.
    """
    # Here, since pandas and all that would make the command line slow.
    from dilaton.run.loading import load as load_run

    return load_run(path)
