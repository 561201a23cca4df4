"""Verbs that take the directories of runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dilaton.cli.errors import BadInputError

app = typer.Typer()


@app.command()
def report(
    context: typer.Context,
    run_dir: Annotated[
        Path,
        typer.Argument(metavar="RUN|SWEEP|addressing", help="A directory of a run or a sweep; or the word addressing."),
    ],
    lab: Annotated[
        Path | None, typer.Argument(metavar="LAB", help="With addressing: the lab whose addresses are printed.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format", metavar="svg|pdf|png|csv|parquet", help="Write figures or tables as files instead. Repeatable."
        ),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where (default: RUN/report).")] = None,
) -> None:
    """Write a page of a run's or a sweep's figures and tables; or these as files. Or print a lab's addresses."""
    if context.obj is not None:
        from dilaton.cli.runs.reaching import report_there

        if lab is not None or str(run_dir) == "addressing":
            raise BadInputError("addressing: of a lab of this machine; leave --server out")
        report_there(context.obj, str(run_dir), formats or [], out)
        return
    if lab is not None:
        if str(run_dir) != "addressing":
            raise BadInputError(f"{run_dir}: not a report of a lab; write dilaton report addressing {lab}")
        from dilaton.cli.labs.addressing import print_addressing

        print_addressing(lab)
        return
    if str(run_dir) == "addressing" and not run_dir.exists():
        raise BadInputError("addressing: of which lab? write dilaton report addressing LAB")
    from dilaton.cli.results.report import report as write

    write(run_dir, formats or [], out)


@app.command()
def compare(
    context: typer.Context,
    run_dirs: Annotated[
        list[Path],
        typer.Argument(metavar="RUN", help="Run directories, the first is the reference; or that of a sweep."),
    ],
    by: Annotated[
        str | None, typer.Option(metavar="PATH", help="Of a sweep: the field whose values are compared.")
    ] = None,
    tolerance: Annotated[str, typer.Option(metavar="%", help="Relative difference that does not matter.")] = "5%",
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw both, to an .svg, .pdf or .png file.")
    ] = None,
) -> None:
    """Say whether runs measured the same: status 0 indistinguishable, 1 different."""
    if context.obj is not None:
        from dilaton.cli.results.compare_there import compare_there

        raise typer.Exit(compare_there(context.obj, [str(path) for path in run_dirs], tolerance, figure, by))
    from dilaton.cli.results.compare import compare_runs

    raise typer.Exit(compare_runs(run_dirs, tolerance, figure, by))
