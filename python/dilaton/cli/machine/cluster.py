"""`dilaton cluster`: hosts that runs are spread over. Its imports are made when it is used, as those of every verb."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="cluster",
    help="Have a cluster of Ray's, and see what hosts have over which runs can be spread.",
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


@app.command()
def start(
    address: Annotated[
        str,
        typer.Option("--address", metavar="IP", help="Of this machine, by which others reach it."),
    ] = "127.0.0.1",
    machines: Annotated[
        int, typer.Option("--machines", metavar="N", min=1, max=16, help="Be so many machines of it, for trying out.")
    ] = 1,
) -> None:
    """Start a cluster of Ray's whose head is this machine, for dilaton run --engine ray; until dilaton cluster stop."""
    from dilaton.run import machines as runs

    with _refusing():
        head, token = runs.start_cluster(address, machines)
    print(f"a cluster of {machines} is up at {head}; dilaton run LAB --engine ray --machines N")
    if address != "127.0.0.1":
        print(f"on another machine, with a copy of {token}: dilaton cluster join {head} --token FILE --address IP")


@app.command()
def join(
    head: Annotated[str, typer.Argument(metavar="HEAD:PORT", help="Where the head listens, as its start has said.")],
    token: Annotated[
        Path, typer.Option("--token", metavar="FILE", help="A copy of the file that the start has named.")
    ],
    address: Annotated[str, typer.Option("--address", metavar="IP", help="Of this machine, by which others reach it.")],
) -> None:
    """Have this machine join a cluster, until dilaton cluster stop here or there."""
    from dilaton.run import machines as runs

    with _refusing():
        runs.join_cluster(head, token.read_text(), address)
    print(f"this machine is in the cluster of {head}")


@app.command()
def stop() -> None:
    """End what this machine has of a cluster; with the head it ends everywhere. Runs over it fail."""
    from dilaton.run import machines as runs

    with _refusing():
        print("it has ended" if runs.stop_cluster() else "there was nothing to end")


@contextlib.contextmanager
def _refusing() -> Iterator[None]:
    from dilaton.cli.errors import BadInputError, FailedError
    from dilaton.host.errors import GuestError

    try:
        yield
    except (ValueError, OSError) as error:
        raise BadInputError(str(error)) from error
    except GuestError as error:
        raise FailedError(str(error)) from error


@app.command("host-agent", hidden=True)
def host_agent() -> None:
    """Be the host agent of this machine, as a run asks by ssh."""
    from dilaton.run import machines

    raise typer.Exit(machines.serve_agent())
