"""Verbs that take a lab, or a command: run it, look at it, make another of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from dilaton.cli.labs import saved as saved_labs
from dilaton.cli.labs import template
from dilaton.cli.verbs.options import (
    ConfirmOption,
    ConfirmSuspectOption,
    DriveOption,
    EngineOption,
    HoldAtOption,
    LabFile,
    LabOrSaved,
    MachinesOption,
    MaxDisk,
    MaxSpeedOption,
    NoJail,
    OntoOption,
    Out,
    SetOption,
    TdfOption,
    TerminalOption,
    completing,
    hosts,
    overridden,
    read_lab,
    which_confirmed,
)

app = typer.Typer()


@app.command()
def new(
    path: Annotated[
        Path, typer.Argument(metavar="PATH", help="The file to write, a .yaml, or a directory for a lab.yaml.")
    ],
    source: Annotated[
        Path | None,
        typer.Option("--from", help="The network of this file, of containerlab, Kathará, Mininet, Shadow, GraphML, …."),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=VALUE", help="How that file is read, such as topology.topo=mine. Repeatable."
        ),
    ] = None,
) -> None:
    """Write a lab to begin with, which runs as it is: two hosts, a router, ping and iperf3."""
    from dilaton.cli.labs.new import write_lab

    write_lab(path, source, settings or ())


@app.command()
def run(
    context: typer.Context,
    lab: LabOrSaved,
    out: Out = None,
    tdf: TdfOption = None,
    drive: DriveOption = None,
    max_speed: MaxSpeedOption = None,
    hold_at: HoldAtOption = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            "--metrics", metavar="PORT", min=0, max=65535, help="Answer Prometheus at this port; 0: any free one."
        ),
    ] = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="Go on when nothing is left to do, at host speed, until stopped.")
    ] = False,
    strict: Annotated[
        bool, typer.Option("--strict", help="Exit with 1 unless the verdict is valid or confirmed.")
    ] = False,
    confirm: ConfirmOption = None,
    confirm_suspect: ConfirmSuspectOption = False,
    junit: Annotated[
        Path | None, typer.Option("--junit", metavar="FILE", help="Write a report of JUnit, for a CI server.")
    ] = None,
    settings: SetOption = None,
    max_disk: MaxDisk = None,
    machines: MachinesOption = 1,
    onto: OntoOption = None,
    engine: EngineOption = "local",
    no_jail: NoJail = False,
) -> None:
    """Run a lab, and show what was asked and what was measured."""
    from dilaton.cli.runs.run import run_lab
    from dilaton.service.request import RunRequest

    text, saved = read_lab(lab, is_here=context.obj is None)
    request = RunRequest(
        lab=text,
        saved=saved,
        overrides=overridden(tdf, drive, max_speed, settings, which_confirmed(confirm, confirm_suspect)),
        out=out,
        hold_at=hold_at,
        stays=stay,
        jailed=not no_jail,
        max_disk=max_disk,
        metrics=metrics,
        machines=machines,
        onto=hosts(onto),
        engine=engine,
    )
    if context.obj is not None:
        from dilaton.cli.runs.remote import run_there

        raise typer.Exit(run_there(context.obj, request, strict=strict, junit=junit))
    raise typer.Exit(run_lab(request, strict=strict, junit=junit))


@app.command()
def demo(out: Out = None, tdf: TdfOption = None, no_jail: NoJail = False) -> None:
    """Run examples/dumbbell: a 10 Gbit/s link, real ping and iperf3, about a minute."""
    from dilaton.cli.runs.run import run_lab
    from dilaton.host.files import EXAMPLES
    from dilaton.service.request import LabText, RunRequest

    lab = LabText.read(EXAMPLES / "dumbbell")
    raise typer.Exit(run_lab(RunRequest(lab=lab, overrides=overridden(tdf), out=out, jailed=not no_jail)))


@app.command("exec", context_settings={"allow_interspersed_args": False})
def execute(
    command: Annotated[list[str], typer.Argument(metavar="COMMAND", help="A program of this machine, and arguments.")],
    tdf: Annotated[str, typer.Option("--tdf", metavar="N", help="Time dilation factor, such as 10 or 1/2.")] = "1",
    drive: Annotated[
        str, typer.Option("--drive", metavar="wall|work|event", help="What drives virtual time.")
    ] = "work",
    max_speed: Annotated[
        str | None,
        typer.Option("--max-speed", metavar="N", help="Virtual seconds per host second at most (with a terminal: 1)."),
    ] = None,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Memory, such as 512M or 2G.")] = "1G",
    seed: Annotated[str, typer.Option("--seed", metavar="N", help="Seed of random numbers, on the event drive.")] = "1",
    writable: Annotated[
        list[Path] | None,
        typer.Option("--rw", metavar="DIR", help="A directory that the command may write. Repeatable."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="DIR", help="Like --rw, made where it does not exist.")
    ] = None,
    terminal: TerminalOption = None,
) -> None:
    """Run a command of this machine, as root of a world of its own, in virtual time."""
    from dilaton.cli.runs.exec import Options
    from dilaton.cli.runs.exec import execute as run_command

    options = Options(tdf, drive, max_speed, memory, seed, writable or [], out, terminal)
    raise typer.Exit(run_command(command, options))


@app.command()
def check(
    labs: Annotated[
        list[Path],
        typer.Argument(metavar="LAB", help="YAML files, directories with a lab.yaml, or names of saved labs."),
    ],
    tdf: TdfOption = None,
    drive: DriveOption = None,
    settings: SetOption = None,
) -> None:
    """Read and plan labs, and say what is wrong with them, without running anything."""
    from dilaton.cli.labs.check import check_labs

    raise typer.Exit(check_labs(labs, overridden(tdf, drive, settings=settings)))


@app.command()
def plan(
    lab: LabFile,
    tdf: TdfOption = None,
    drive: DriveOption = None,
    settings: SetOption = None,
    machines: MachinesOption = 1,
    onto: OntoOption = None,
) -> None:
    """Print what a lab compiles to, as JSON: every address, queue, process and instant."""
    from dilaton.cli.labs.check import print_plan

    print_plan(lab, overridden(tdf, drive, settings=settings), machines, hosts(onto))


@app.command()
def lock(lab: LabFile) -> None:
    """Write which images a lab has, by digest, into dilaton.lock beside it, so that it means the same next year."""
    from dilaton.cli.labs.lock import lock_lab

    lock_lab(lab)


@app.command()
def graph(
    lab: LabFile,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help=".svg, .png, .pdf or .dot (default: <lab>.svg).")
    ] = None,
    show: Annotated[
        str,
        typer.Option(
            metavar="rate,delay,address",
            help="What is written beside links; several with commas.",
            autocompletion=completing("rate", "delay", "address", "rate,delay", "rate,delay,address"),
        ),
    ] = "",
    settings: SetOption = None,
    machines: MachinesOption = 1,
    onto: OntoOption = None,
) -> None:
    """Draw the network of a lab."""
    from dilaton.cli.labs.graph import write_graph

    write_graph(lab, out, show, overridden(settings=settings), machines, hosts(onto))


@app.command()
def export(
    lab: LabFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help=".clab.yml, .graphml, .xml, .dot or .py (Mininet).")
    ],
    to: Annotated[
        str | None,
        typer.Option(
            "--to", metavar="FORMAT", help="containerlab, graphml, xml, dot or mininet (default: as FILE ends)."
        ),
    ] = None,
    settings: SetOption = None,
) -> None:
    """Write the network of a lab for containerlab, Mininet, Graphviz or a graph library, and say what is left out."""
    from dilaton.cli.labs.graph import write_export

    write_export(lab, out, to, overridden(settings=settings))


@app.command()
def schema() -> None:
    """Print the JSON schema of labs, by which editors complete and check them while you write."""
    from dilaton.schema.labs import schema_text

    print(schema_text(), end="")


@app.command()
def scale(
    lab: LabFile,
    onto: Annotated[int, typer.Option("--onto", metavar="GUESTS", min=1, help="How many guests hold the machines.")],
    machines: Annotated[
        int | None,
        typer.Option(
            "--machines", metavar="N", min=1, help="How many hosts the lab must have; it is refused otherwise."
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="FILE", help="The scaled lab (default: LAB-onto-GUESTS.yaml, beside LAB)."),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option(
            "--duration", metavar="TIME", help="How long a run is, in virtual time (default: the lab's stop_after)."
        ),
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option(
            "--pilot",
            metavar="TIME",
            help="How much to run to predict host time (default: a tenth or more; 0s: nothing).",
        ),
    ] = None,
    confirm: Annotated[
        bool, typer.Option("--confirm", help="Write into the scaled lab that its runs are to be confirmed.")
    ] = False,
) -> None:
    """Put the machines of a lab onto few guests: TDF, CPU shares, memory, host time, and a lab ready to run."""
    from dilaton.cli.runs.scale import scale_lab
    from dilaton.service.studies.scale import ScaleRequest

    request = ScaleRequest(
        lab=lab, onto=onto, machines=machines, out=out, duration=duration, pilot=pilot, confirm=confirm
    )
    raise typer.Exit(scale_lab(request))


@app.command()
def sweep(
    context: typer.Context,
    lab: LabFile,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="PATH=A,B,C", help="A field and its values, such as time.tdf=1,10,100. Repeatable."
        ),
    ] = None,
    labels: Annotated[
        list[str] | None,
        typer.Option(
            "--label",
            metavar="NAME=TEXT",
            help="What a field, or a number that is measured, is called in figures and tables: "
            "links.0.loss=loss. Repeatable.",
        ),
    ] = None,
    repeat: Annotated[
        int, typer.Option("--repeat", metavar="N", min=1, help="Runs of each combination, each with its own seed.")
    ] = 1,
    jobs: Annotated[
        int | None,
        typer.Option("-j", "--jobs", metavar="N", min=1, help="Runs side by side (default: 1, or what hosts hold)."),
    ] = None,
    onto: Annotated[
        str | None,
        typer.Option(
            "--onto", metavar="HOST,…", help="Run on these hosts, reached by ssh, each run on one, or on --machines."
        ),
    ] = None,
    machines: Annotated[
        int,
        typer.Option(
            "--machines",
            metavar="N",
            min=1,
            max=1000,
            help="Spread each run over so many machines: made of this one, of the hosts, or of the engine's.",
        ),
    ] = 1,
    engine: EngineOption = "local",
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where (default: sweeps/<lab>).")] = None,
    confirm: ConfirmOption = None,
    confirm_suspect: ConfirmSuspectOption = False,
    max_disk: MaxDisk = None,
) -> None:
    """Run a lab at every combination of values; go on where an earlier sweep was interrupted."""
    from dilaton.cli.runs.sweep import sweep_lab
    from dilaton.service.request import LabText
    from dilaton.service.studies.sweep import SweepRequest

    fields, text = tuple(settings or ()), LabText.read(lab)
    request = SweepRequest(
        lab=text,
        fields=fields,
        labels=tuple(labels or ()),
        repeat=repeat,
        jobs=jobs,
        out=out,
        confirm=which_confirmed(confirm, confirm_suspect),
        max_disk=max_disk,
        onto=hosts(onto),
        machines=machines,
        engine=engine,
    )
    if context.obj is not None:
        from dilaton.cli.runs.sweep_there import sweep_there

        raise typer.Exit(sweep_there(context.obj, request))
    raise typer.Exit(sweep_lab(request))


app.add_typer(template.app)
app.add_typer(saved_labs.app)
