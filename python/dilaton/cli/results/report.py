"""`dilaton report`."""

from __future__ import annotations

from pathlib import Path

from dilaton.cli.errors import BadInputError, refusing, writing
from dilaton.run.record.record import RecordError


@refusing(RecordError)
def report(path: Path, formats: list[str], out: Path | None) -> None:
    """Writes the report of a run, or its figures and tables as files."""
    from dilaton.report.export import FIGURE_FORMATS, TABLE_FORMATS, export
    from dilaton.report.page import write_report
    from dilaton.run.loading import load

    known = (*FIGURE_FORMATS, *TABLE_FORMATS)
    wanted = [each for text in formats for each in text.split(",")]
    if unknown := [each for each in wanted if each not in known]:
        raise BadInputError(f"--format: {unknown[0]}: not a format; write some of {', '.join(known)}")
    run = load(path)
    if wanted:
        directory = out or path / "report"
        with writing(directory):
            files = export(run, wanted, directory)
        print(f"{len(files)} files in {directory}")
    else:
        with writing(path):
            print(write_report(run))
