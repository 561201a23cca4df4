"""The verbs of `dilaton`.

Each verb's own imports are made when it is used, so that `--help` is there at once.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from dilaton import __version__
from dilaton.cli import kernel

BAD_INPUT = 2
HOST_LACKS = 3

app = typer.Typer(
    name="dilaton",
    help="Real Linux kernels and programs on networks that you do not have, in virtual time.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

LabFile = Annotated[Path, typer.Argument(metavar="LAB", help="The lab: a YAML file, or a directory with a lab.yaml.")]
RunName = Annotated[
    str, typer.Argument(metavar="RUN", help="A run that goes on: its directory, or the name of its lab.")
]
RunDirectory = Annotated[Path, typer.Argument(metavar="RUN", help="A run directory.")]
Out = Annotated[
    Path | None, typer.Option("--out", metavar="DIR", help="Run directory [default: runs/<lab>-<UTC>-<n>].")
]
TdfOption = Annotated[
    str | None, typer.Option("--tdf", metavar="N", help="Time dilation factor, instead of the lab's.")
]
DriveOption = Annotated[
    str | None,
    typer.Option("--drive", metavar="wall|work|event", help="What drives virtual time, instead of the lab's."),
]
MaxSpeedOption = Annotated[
    str | None,
    typer.Option(
        "--max-speed", metavar="N", help="Virtual seconds per host second not to exceed, instead of the lab's."
    ),
]
HoldAtOption = Annotated[
    str | None, typer.Option("--hold-at", metavar="T", help="Hold the clock at this virtual instant, such as 5s.")
]
SetOption = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="PATH=VALUE", help="Any field instead of the lab's: links.0.rate=1Gbit. Repeatable."),
]
TerminalOption = Annotated[
    bool | None,
    typer.Option("-t/-T", "-it", "--terminal/--no-terminal", help="Give it a terminal [default: if there is one]."),
]
NoJail = Annotated[
    bool,
    typer.Option("--no-jail", help="Run guests without a jail: what runs in them can write your files."),
]


@app.command()
def run(
    lab: LabFile,
    out: Out = None,
    tdf: TdfOption = None,
    drive: DriveOption = None,
    max_speed: MaxSpeedOption = None,
    hold_at: HoldAtOption = None,
    metrics: Annotated[
        int | None,
        typer.Option(
            "--metrics", metavar="PORT", min=0, max=65535, help="Answer Prometheus there; 0: at any free port."
        ),
    ] = None,
    stay: Annotated[
        bool, typer.Option("--stay", help="Go on when nothing is left to do, at host speed, until stopped.")
    ] = False,
    settings: SetOption = None,
    no_jail: NoJail = False,
) -> None:
    """Run a lab, and show what was asked and what was measured."""
    from dilaton.cli.check import Overrides
    from dilaton.cli.errors import BadInputError
    from dilaton.cli.run import hold_option, run_lab
    from dilaton.run.execute import Options

    try:
        options = Options(jailed=not no_jail, hold_at_ns=hold_option(hold_at))
    except BadInputError as error:
        print(error, file=sys.stderr)
        raise typer.Exit(BAD_INPUT) from error
    overrides = Overrides(tdf, drive, max_speed, tuple(settings or ()))
    raise typer.Exit(run_lab(lab, out, overrides, options, metrics=metrics, stays=stay))


@app.command()
def demo(out: Out = None, no_jail: NoJail = False) -> None:
    """Run examples/dumbbell: a 10 Gbit/s link, real ping and iperf3, about a minute."""
    from dilaton.cli.check import Overrides
    from dilaton.cli.run import run_lab
    from dilaton.host.files import ROOT
    from dilaton.run.execute import Options

    raise typer.Exit(run_lab(ROOT / "examples" / "dumbbell", out, Overrides(), Options(jailed=not no_jail)))


@app.command("exec", context_settings={"allow_interspersed_args": False})
def execute(
    command: Annotated[
        list[str], typer.Argument(metavar="COMMAND...", help="A program of this machine, and arguments.")
    ],
    tdf: Annotated[str, typer.Option("--tdf", metavar="N", help="Time dilation factor.")] = "1",
    drive: Annotated[
        str, typer.Option("--drive", metavar="wall|work|event", help="What drives virtual time.")
    ] = "work",
    max_speed: Annotated[
        str | None,
        typer.Option("--max-speed", metavar="N", help="Virtual seconds per host second at most [with a terminal: 1]."),
    ] = None,
    memory: Annotated[str, typer.Option("--memory", metavar="SIZE", help="Of the guest.")] = "1G",
    seed: Annotated[int, typer.Option("--seed", metavar="N", help="Of random numbers, on the event drive.")] = 1,
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
    from dilaton.cli.exec import Options
    from dilaton.cli.exec import execute as run_command

    options = Options(tdf, drive, max_speed, memory, seed, writable or [], out, terminal)
    raise typer.Exit(run_command(command, options))


@app.command()
def check(labs: Annotated[list[Path], typer.Argument(metavar="LAB...")]) -> None:
    """Read and plan labs, and say what is wrong with them, without running anything."""
    from dilaton.cli.check import check_labs

    raise typer.Exit(check_labs(labs))


@app.command()
def plan(lab: LabFile, tdf: TdfOption = None, drive: DriveOption = None, settings: SetOption = None) -> None:
    """Print what a lab compiles to, as JSON: every address, queue, process and instant."""
    from dilaton.cli.check import Overrides, print_plan

    raise typer.Exit(print_plan(lab, Overrides(tdf, drive, None, tuple(settings or ()))))


@app.command()
def report(
    run_dir: Annotated[Path, typer.Argument(metavar="RUN|addressing", help="A run directory; or the word addressing.")],
    lab: Annotated[
        Path | None, typer.Argument(metavar="[LAB]", help="With addressing: the lab whose addresses are printed.")
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option("--format", metavar="svg|pdf|png|csv|parquet", help="Write figures and tables as files instead."),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where [default: RUN/report].")] = None,
) -> None:
    """Write report.html of a run: a page with its figures and tables; or these as files. Or print a lab's addresses."""
    if lab is not None:
        if str(run_dir) != "addressing":
            print(f"{run_dir}: not a report of a lab; write dilaton report addressing {lab}", file=sys.stderr)
            raise typer.Exit(BAD_INPUT)
        from dilaton.cli.addressing import print_addressing

        raise typer.Exit(print_addressing(lab))
    from dilaton.cli.report import report as write

    raise typer.Exit(write(run_dir, formats or [], out))


@app.command()
def compare(
    run_dirs: Annotated[
        list[Path], typer.Argument(metavar="RUN RUN...", help="Run directories; the first is the reference.")
    ],
    tolerance: Annotated[str, typer.Option(metavar="%", help="Relative difference that does not matter.")] = "5%",
    figure: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Draw both, to an .svg, .pdf or .png file.")
    ] = None,
) -> None:
    """Say whether runs measured the same: status 0 indistinguishable, 1 different."""
    from dilaton.cli.compare import compare_runs

    raise typer.Exit(compare_runs(run_dirs, tolerance, figure))


@app.command()
def sweep(
    lab: LabFile,
    settings: Annotated[
        list[str],
        typer.Option("--set", metavar="PATH=A,B,C", help="A field and its values, such as time.tdf=1,10,100."),
    ],
    repeat: Annotated[int, typer.Option(min=1, help="Runs of each point, each with a seed of its own.")] = 1,
    jobs: Annotated[int, typer.Option("-j", "--jobs", min=1, help="Runs side by side.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", metavar="DIR", help="Where [default: sweeps/<lab>].")] = None,
) -> None:
    """Run a lab at every combination of values; go on where an earlier sweep was interrupted."""
    from dilaton.cli.sweep import sweep_lab

    raise typer.Exit(sweep_lab(lab, settings, repeat, jobs, out))


@app.command()
def graph(
    lab: LabFile,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="FILE", help=".svg, .png, .pdf or .dot [default: <lab>.svg].")
    ] = None,
) -> None:
    """Draw the network of a lab."""
    from dilaton.cli.graph import write_graph

    raise typer.Exit(write_graph(lab, out))


@app.command()
def export(
    lab: LabFile,
    out: Annotated[
        Path, typer.Option("--out", "-o", metavar="FILE", help=".clab.yml, .graphml, .dot or .py (Mininet).")
    ],
    to: Annotated[
        str | None, typer.Option("--to", metavar="FORMAT", help="The format, if FILE does not say it.")
    ] = None,
) -> None:
    """Write the network of a lab for containerlab, Mininet, Graphviz or a graph library, and say what is left out."""
    from dilaton.cli.graph import write_export

    raise typer.Exit(write_export(lab, out, to))


validate = typer.Typer(help="Measure what this machine's emulation really does.", no_args_is_help=True)
app.add_typer(validate, name="validate")


@validate.callback()
def _validate() -> None:
    pass


@validate.command()
def link(
    rate: Annotated[str | None, typer.Option("--rate", metavar="RATE", help="Of the link; none: delays only.")] = None,
    delay: Annotated[str, typer.Option("--delay", metavar="TIME", help="One way.")] = "10ms",
    tdf: Annotated[str, typer.Option("--tdf", metavar="N", help="Time dilation factor.")] = "1",
    drive: Annotated[str, typer.Option("--drive", metavar="wall|work", help="What drives virtual time.")] = "work",
    out: Out = None,
) -> None:
    """Send probes over a link, and print what was configured and what was measured, with a figure."""
    from dilaton.cli.validate import validate_link

    raise typer.Exit(validate_link(rate, delay, tdf, drive, out))


@app.command()
def clock(
    run: RunName,
    action: Annotated[
        str, typer.Argument(metavar="show|hold|release|until|step|tdf", help="What to do with its clock.")
    ] = "show",
    value: Annotated[
        str | None, typer.Argument(metavar="[T|N]", help="until: a virtual instant, such as 5s; tdf: a factor.")
    ] = None,
) -> None:
    """Show or steer the clock of a run that goes on."""
    from dilaton.cli.control import steer

    raise typer.Exit(steer(run, action, value))


@app.command(name="link")
def steer_link(
    run: RunName,
    which: Annotated[str | None, typer.Argument(metavar="[LINK]", help="As a--b or a:eth0--b:eth1.")] = None,
    action: Annotated[str, typer.Argument(metavar="show|set|down|up", help="What to do with it.")] = "show",
    fields: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FIELD=VALUE...]", help="set: as in the lab: loss=5% delay.jitter=2ms b_to_a.rate=1Mbit"
        ),
    ] = None,
    at: Annotated[str | None, typer.Option("--at", metavar="T", help="At this virtual instant, not now.")] = None,
) -> None:
    """Show or change the links of a run that goes on."""
    from dilaton.cli.link import steer_link as steer

    raise typer.Exit(steer(run, which, action, fields or [], at))


@app.command()
def top(
    run: RunName,
    once: Annotated[bool, typer.Option("--once", help="Print it once, as without a terminal.")] = False,
) -> None:
    """Watch a run that goes on: its clock, links, nodes and programs."""
    from dilaton.cli.top import show_top

    raise typer.Exit(show_top(run, once=once))


@app.command()
def ps() -> None:
    """List the runs that go on."""
    from dilaton.cli.control import list_runs

    raise typer.Exit(list_runs())


@app.command()
def up(
    lab: LabFile,
    detached: Annotated[
        bool, typer.Option("--detach", "-d", help="Leave it in the background, until dilaton down.")
    ] = False,
    out: Out = None,
    tdf: TdfOption = None,
    drive: DriveOption = None,
    max_speed: MaxSpeedOption = None,
    hold_at: HoldAtOption = None,
    settings: SetOption = None,
) -> None:
    """Start a lab that stays, and work in it by hand, at a prompt; at host speed unless told otherwise."""
    from dilaton.cli.up import Options, bring_up

    options = Options(out, tdf, drive, max_speed, hold_at, tuple(settings or ()))
    raise typer.Exit(bring_up(lab, options, detached=detached))


@app.command()
def down(
    run: Annotated[str, typer.Argument(metavar="RUN|LAB", help="A run that goes on, or the lab of the only one.")],
) -> None:
    """End a lab that was brought up, in good order, and wait for its end; its run directory stays."""
    from dilaton.cli.up import take_down

    raise typer.Exit(take_down(run))


@app.command("cli")
def prompt(run: RunName) -> None:
    """Work in a run that goes on, at a prompt with the words of Mininet's; the run goes on afterwards."""
    from dilaton.cli.prompt import attach_prompt

    raise typer.Exit(attach_prompt(run))


@app.command()
def stop(run: RunName) -> None:
    """End a run in good order, and wait for its end."""
    from dilaton.cli.control import stop_run

    raise typer.Exit(stop_run(run))


@app.command(context_settings={"allow_interspersed_args": False})
def shell(
    run: RunName,
    node: Annotated[str, typer.Argument(metavar="NODE", help="Where.")],
    command: Annotated[
        list[str] | None, typer.Argument(metavar="[COMMAND...]", help="A program and arguments [default: a shell].")
    ] = None,
    terminal: TerminalOption = None,
) -> None:
    """Run a program in a node of a run that goes on, with these streams or in this terminal."""
    from dilaton.cli.shell import open_shell

    words = command or []
    # Which ends the options of most programs that execute others, and is theirs, not the command's.
    raise typer.Exit(open_shell(run, node, words[1:] if words[:1] == ["--"] else words, terminal))


@app.command("cp")
def copy(
    run: RunName,
    source: Annotated[str, typer.Argument(metavar="[NODE:]PATH", help="What is copied.")],
    target: Annotated[str, typer.Argument(metavar="[NODE:]PATH", help="Where; one of both is in a node.")],
) -> None:
    """Copy files and directories to a node of a run that goes on, or from there."""
    from dilaton.cli.cp import copy as copy_files

    raise typer.Exit(copy_files(run, source, target))


@app.command()
def logs(
    run: Annotated[str, typer.Argument(metavar="RUN", help="A run directory, or the name of a lab that runs.")],
    who: Annotated[
        str | None, typer.Argument(metavar="[NODE[/PROCESS]]", help="Whose outputs [default: everyone's].")
    ] = None,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Go on as they grow, until the run ends.")] = False,
) -> None:
    """Print what the programs of a run have written."""
    from dilaton.cli.logs import print_logs

    raise typer.Exit(print_logs(run, who, follow=follow))


app.add_typer(kernel.app)


@app.command()
def scale(
    lab: LabFile,
    onto: Annotated[int, typer.Option("--onto", metavar="GUESTS", min=1, help="How many guests hold the machines.")],
    machines: Annotated[
        int | None, typer.Option("--machines", metavar="N", min=1, help="How many hosts the lab has to have.")
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", metavar="FILE", help="The scaled lab, beside LAB [LAB-onto-GUESTS.yaml].")
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Of a run, in virtual time; else stop_after of the lab."),
    ] = None,
    pilot: Annotated[
        str | None,
        typer.Option("--pilot", metavar="TIME", help="How much is run to predict host time, else a tenth."),
    ] = None,
) -> None:
    """Put the machines of a lab onto few guests: TDF, CPU shares, memory, host time, and a lab ready to run."""
    from dilaton.cli.scale import Request, scale_lab

    raise typer.Exit(scale_lab(Request(lab, machines, onto, out, duration, pilot)))


@app.command()
def doctor(
    calibrate: Annotated[
        bool, typer.Option("--calibrate", help="Measure how fast a core is, for labs that name CPU speeds in GHz.")
    ] = False,
) -> None:
    """Say what this machine has and lacks, with the fix for each lack."""
    from dilaton.cli import doctor as verb

    verb.calibrate() if calibrate else verb.doctor()


def _version(wanted: bool) -> None:
    if wanted:
        print(f"dilaton {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Runs the command line. Exit status: 0 well, 1 a check or process failed, 2 bad input, 3 the host lacks something,
    130 interrupted."""
    from dilaton.host.errors import HostLacksError

    try:
        app(prog_name="dilaton")
    except HostLacksError as error:
        print(f"dilaton: {error.what}\n  to fix it: {error.fix}", file=sys.stderr)
        sys.exit(HOST_LACKS)
