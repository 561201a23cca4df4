"""Where nodes of a lab are drawn: a file for each lab, beside its versions and not in them, since it says nothing about
what runs. Who moves a node makes no version, and a lab that has no such file is drawn as its reader likes."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

Positions = Mapping[str, tuple[float, float]]
"""Of nodes, by their names; x to the right and y downwards."""


@dataclass(frozen=True)
class Layout:
    """Where nodes are: in the drawing, and on earth, as longitude and latitude in degrees."""

    positions: Positions = field(default_factory=dict)
    places: Positions = field(default_factory=dict)


def read(directory: Path, lab: str) -> Layout:
    """The layout of a lab; nothing where nobody has moved anything."""
    try:
        kept = json.loads(_file(directory, lab).read_text())
    except FileNotFoundError:
        return Layout()
    # Servers before had the positions alone, which are lists, also that of a node of this name.
    return Layout(**kept) if isinstance(kept.get("positions"), dict) else Layout(kept)


def write(directory: Path, lab: str, layout: Layout) -> None:
    """Keeps the layout of a lab, as a whole or not at all."""
    directory.mkdir(mode=0o700, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as file:
        try:
            json.dump(asdict(layout), file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, _file(directory, lab))
        except BaseException:
            os.unlink(file.name)
            raise


def remove(directory: Path, lab: str) -> None:
    """Forgets the layout of a lab."""
    with contextlib.suppress(FileNotFoundError):
        _file(directory, lab).unlink()


def _file(directory: Path, lab: str) -> Path:
    return directory / f"{lab}.json"
