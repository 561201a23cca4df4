"""`dilaton cluster`: hosts that runs are spread over. Its imports are made when it is used, as those of every verb."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="cluster",
    help="See what hosts have over which runs can be spread.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command()
def status(
    hosts: Annotated[list[str], typer.Argument(metavar="HOST", help="As ssh takes it: ws1, or alice@ws1.")],
) -> None:
    """Show what hosts have, what runs there, and why one cannot have a part in a run of this machine."""
    from rich.markup import escape
    from rich.table import Table

    from dilaton.cli.errors import HOST_LACKS, BadInputError
    from dilaton.cli.output import visible
    from dilaton.cli.terminal import Output
    from dilaton.run import machines

    try:
        found = machines.look(hosts)
    except ValueError as error:
        raise BadInputError(str(error)) from error
    rows = Table(box=None, pad_edge=False)
    for heading in ("host", "cores", "memory", "a core", "CPU", "runs", ""):
        rows.add_column(heading, overflow="fold")
    for name, (has, why) in zip(hosts, found, strict=True):
        usable = "usable" if not why else "not usable"
        if isinstance(has, str):
            rows.add_row(escape(name), "", "", "", "", "", usable)
            continue
        speed = "not measured" if has.ghz is None else f"{has.ghz / 1000:.2f} GHz"
        memory = f"{has.memory_bytes / 1e9:.3g} GB"
        rows.add_row(escape(name), f"{has.cores}", memory, speed, escape(visible(has.cpu)), f"{has.runs}", usable)
    output = Output()
    output.print(rows)
    reasons = [f"{name}: {each}" for name, (_, why) in zip(hosts, found, strict=True) for each in why]
    for reason in reasons:
        output.print(visible(reason), markup=False, soft_wrap=True)
    if reasons:
        raise typer.Exit(HOST_LACKS)


@app.command("host-agent", hidden=True)
def host_agent() -> None:
    """Be the host agent of this machine, as a run asks by ssh."""
    from dilaton.run import machines

    raise typer.Exit(machines.serve_agent())
