"""Verbs about this machine: what it has, which kernel guests run, how exact it is."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dilaton.cli.machine import cluster, image, kernel
from dilaton.cli.verbs.options import Out

app = typer.Typer()


@app.command()
def doctor(
    lab: Annotated[
        Path | None, typer.Argument(metavar="LAB", help="A lab: which programs it runs, and what installs each.")
    ] = None,
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure how fast a core is, for labs that name CPU speeds in GHz.")
    ] = False,
) -> None:
    """Say what this machine has and lacks, with the fix for each lack."""
    from dilaton.cli.machine import doctor as verb

    if lab is not None and not calibrate:
        verb.programs_of(lab)
        return
    verb.calibrate() if calibrate else verb.doctor()


validate = typer.Typer(help="Measure what this machine's emulation really does.", no_args_is_help=True)
app.add_typer(validate, name="validate")


@validate.callback()
def _validate() -> None:
    pass


@validate.command()
def link(
    rate: Annotated[
        str | None, typer.Option("--rate", metavar="RATE", help="Rate, such as 100Mbit (default: only delays).")
    ] = None,
    delay: Annotated[str, typer.Option("--delay", metavar="TIME", help="One way, such as 10ms.")] = "10ms",
    tdf: Annotated[str, typer.Option("--tdf", metavar="N", help="Time dilation factor, such as 10 or 1/2.")] = "1",
    drive: Annotated[str, typer.Option("--drive", metavar="wall|work", help="What drives virtual time.")] = "work",
    out: Out = None,
) -> None:
    """Send probes over a link, and print what was configured and what was measured, with a figure."""
    from dilaton.cli.labs.validate import validate_link

    raise typer.Exit(validate_link(rate, delay, tdf, drive, out))


app.add_typer(cluster.app)
app.add_typer(kernel.app)
app.add_typer(image.app)
