"""Dilaton: networks of unmodified Linux programs, in virtual time."""

# Nothing is imported here while the command line starts, which is deaf to Ctrl-C until `__main__.py` listens.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any

    from dilaton.host.errors import HostLacksError
    from dilaton.lab.errors import LabError
    from dilaton.lab.topology import Topology
    from dilaton.run.control.errors import ControlError
    from dilaton.run.loading import Run
    from dilaton.service.live import AsyncRun
    from dilaton.service.live import attach as attach_async
    from dilaton.service.live import start as start_async
    from dilaton.service.plain import LiveRun, attach, start

__version__ = "0.1.0"

__all__ = [
    "AsyncRun",
    "ControlError",
    "HostLacksError",
    "LabError",
    "LiveRun",
    "Topology",
    "attach",
    "attach_async",
    "load",
    "start",
    "start_async",
]

_HOMES = {
    "AsyncRun": ("dilaton.service.live", "AsyncRun"),
    "ControlError": ("dilaton.run.control.errors", "ControlError"),
    "HostLacksError": ("dilaton.host.errors", "HostLacksError"),
    "LabError": ("dilaton.lab.errors", "LabError"),
    "LiveRun": ("dilaton.service.plain", "LiveRun"),
    "Topology": ("dilaton.lab.topology", "Topology"),
    "attach": ("dilaton.service.plain", "attach"),
    "attach_async": ("dilaton.service.live", "attach"),
    "start": ("dilaton.service.plain", "start"),
    "start_async": ("dilaton.service.live", "start"),
}
"""Where each name lives, and what it is called there."""


def __getattr__(name: str) -> "Any":
    # Without the cost of importing what is not used.
    if name in _HOMES:
        import importlib

        module, attribute = _HOMES[name]
        return getattr(importlib.import_module(module), attribute)
    raise AttributeError(f"module dilaton has no attribute {name}; it has {', '.join(__all__)}")


def __dir__() -> "list[str]":
    # What is not imported yet is there for those, too, who complete names; how it is imported is not for them.
    return sorted({*(name for name in globals() if name.startswith("__")), *__all__})


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
