"""`dilaton report`."""

from __future__ import annotations

from pathlib import Path

from dilaton.cli.errors import BadInputError, refusing, writing
from dilaton.measure.numbers import counted
from dilaton.run.record.record import RecordError


@refusing(RecordError)
def report(path: Path, formats: list[str], out: Path | None) -> None:
    """Writes the report of a run or a sweep, or its figures and tables as files."""
    from dilaton.report.export import FIGURE_FORMATS, TABLE_FORMATS, export
    from dilaton.report.page import write_report
    from dilaton.run.files.directory import SWEEP_FILE
    from dilaton.run.loading import load

    known = (*FIGURE_FORMATS, *TABLE_FORMATS)
    wanted = [each for text in formats for each in text.split(",")]
    if unknown := [each for each in wanted if each not in known]:
        raise BadInputError(f"--format: {unknown[0]}: not a format; write some of {', '.join(known)}")
    if (path / SWEEP_FILE).is_file():
        _report_sweep(path, wanted, out)
        return
    run = load(path)
    if wanted:
        directory = out or path / "report"
        with writing(directory):
            files = export(run, wanted, directory)
        print(f"{counted(len(files), 'file')} in {directory}")
    else:
        with writing(path):
            print(write_report(run))


def _report_sweep(path: Path, formats: list[str], out: Path | None) -> None:
    """The same of a sweep, whose tables are in its directory already."""
    from dilaton.report.export import TABLE_FORMATS, save
    from dilaton.report.page import write_sweep
    from dilaton.report.pictures import picture_of
    from dilaton.report.style import applied
    from dilaton.report.sweeps import load

    if tables := [each for each in formats if each in TABLE_FORMATS]:
        raise BadInputError(f"--format {tables[0]}: the tables of a sweep are in it already: sweep.csv, sweep.parquet")
    try:
        swept = load(path)
    except ValueError as error:
        raise BadInputError(str(error)) from error
    directory = out or path / "report" if formats else path
    with applied(), writing(directory):
        if not formats:
            print(write_sweep(path, swept, [picture_of(drawing) for drawing in swept.drawings()]))
            return
        directory.mkdir(parents=True, exist_ok=True)
        files = [
            save(drawing, directory / f"{drawing.name}.{each}") for drawing in swept.drawings() for each in formats
        ]
    print(f"{counted(len(files), 'file')} in {directory}")
