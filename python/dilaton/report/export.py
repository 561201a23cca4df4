"""Figures and tables of a run as files, for papers and for other programs."""

from __future__ import annotations

import errno
import json
from collections.abc import Sequence
from pathlib import Path

from dilaton.report.drawings import draw
from dilaton.report.style import Drawing, applied
from dilaton.run.loading import Run

FIGURE_FORMATS = ("svg", "pdf", "png")
TABLE_FORMATS = ("csv", "parquet")
TABLES = ("interfaces", "tcp", "nodes", "outputs", "processes", "events", "checks", "flows", "clock", "epochs")
NESTED = ("argv", "result")
"""Columns of `processes`."""
PNG_DOTS_PER_INCH = 200


def export(run: Run, formats: Sequence[str], directory: Path) -> list[Path]:
    """Writes every figure and every table of a run in the formats that are asked for; returns the files.

    Args:
        run: What is written.
        formats: Of `FIGURE_FORMATS` and `TABLE_FORMATS`.
        directory: Where; made if it is not there.

    Raises:
        OSError: something cannot be written.
        RecordError: a table is damaged.
    """
    if directory.is_symlink():
        # A guest may have left it, to have us write elsewhere.
        raise OSError(errno.ELOOP, "it is a symbolic link; give another directory with --out", str(directory))
    directory.mkdir(parents=True, exist_ok=True)
    return _figures(run, [each for each in formats if each in FIGURE_FORMATS], directory) + _tables(
        run, [each for each in formats if each in TABLE_FORMATS], directory
    )


def _figures(run: Run, formats: Sequence[str], directory: Path) -> list[Path]:
    if not formats:
        return []
    written = []
    with applied():
        for drawing in draw(run)[0]:
            written += [save(drawing, directory / f"{drawing.name}.{each}") for each in formats]
    return written


def save(drawing: Drawing, path: Path) -> Path:
    """Writes a figure in the format that the path ends with, the same bytes for the same figure; returns the path."""
    path.unlink(missing_ok=True)
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}}.get(path.suffix)
    drawing.figure.savefig(path, dpi=PNG_DOTS_PER_INCH, metadata=metadata)
    return path


def _tables(run: Run, formats: Sequence[str], directory: Path) -> list[Path]:
    if not formats:
        return []
    tables = {name: getattr(run, name) for name in TABLES}
    tables |= {f"packets-{name.replace(':', '-')}": run.packets(name) for name in run.captures}
    written = []
    for name, table in tables.items():
        # What is nested is text in a file, as JSON.
        nested = [each for each in NESTED if each in table]
        flat = table.assign(**{each: table[each].map(json.dumps, na_action="ignore") for each in nested})
        for each in formats:
            path = directory / f"{name}.{each}"
            path.unlink(missing_ok=True)
            if each == "csv":
                flat.to_csv(path, index=False)
            else:
                flat.to_parquet(path, index=False)
            written.append(path)
    return written
