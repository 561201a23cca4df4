"""Where nodes of a lab are drawn: a file for each lab, beside its versions and not in them, since it says nothing about
what runs. Who moves a node makes no version, and a lab that has no such file is drawn as its reader likes."""

from __future__ import annotations

import contextlib
import json
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path

Positions = Mapping[str, tuple[float, float]]
"""Of nodes, by their names; x to the right and y downwards."""


def read(directory: Path, lab: str) -> Positions:
    """The positions of a lab; none where nobody has moved anything."""
    try:
        kept: Positions = json.loads(_file(directory, lab).read_text())
    except FileNotFoundError:
        return {}
    return kept


def write(directory: Path, lab: str, positions: Positions) -> None:
    """Keeps the positions of a lab, as a whole or not at all."""
    directory.mkdir(mode=0o700, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=directory, delete=False) as file:
        try:
            json.dump(positions, file)
            file.flush()
            os.fsync(file.fileno())
            os.replace(file.name, _file(directory, lab))
        except BaseException:
            os.unlink(file.name)
            raise


def remove(directory: Path, lab: str) -> None:
    """Forgets the positions of a lab."""
    with contextlib.suppress(FileNotFoundError):
        _file(directory, lab).unlink()


def _file(directory: Path, lab: str) -> Path:
    return directory / f"{lab}.json"
