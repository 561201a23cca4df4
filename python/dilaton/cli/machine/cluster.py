"""`dilaton cluster`: hosts that runs are spread over. Its imports are made when it is used, as those of every verb."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

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
    from dilaton.run import machines

    with _refusing():
        found = machines.look(hosts)
    rows = [(*_of_host(has), "usable" if not why else "not usable") for has, why in found]
    _show(hosts, ("cores", "memory", "a core", "CPU", "runs", ""), rows, [why for _, why in found])


@app.command()
def doctor(
    hosts: Annotated[list[str], typer.Argument(metavar="HOST", help="As ssh takes it: ws1, or alice@ws1.")],
) -> None:
    """Try whether hosts can have a part in a run: each connects to this machine as in one, and answers."""
    from dilaton.run import machines

    with _refusing():
        found = machines.examine(hosts)
    rows = []
    for examined, why in found:
        answers = "" if examined.answer_host_s is None else f"{examined.answer_host_s * 1000:.2g} ms"
        rows.append((*_of_host(examined.has)[:2], answers, "usable" if not why else "not usable"))
    _show(hosts, ("cores", "memory", "answers in", ""), rows, [why for _, why in found])


def _of_host(has: Any) -> tuple[str, str, str, str, str]:
    """A `having.Has` in words; nothing, where that is not known."""
    from dilaton.cli.output import visible
    from dilaton.host.errors import GuestError

    if isinstance(has, GuestError):
        return "", "", "", "", ""
    speed = "not measured" if has.ghz is None else f"{has.ghz / 1000:.2f} GHz"
    return f"{has.cores}", f"{has.memory_bytes / 1e9:.3g} GB", speed, visible(has.cpu), f"{has.runs}"


def _show(
    hosts: Sequence[str], headings: Sequence[str], rows: Sequence[Sequence[str]], why: Sequence[Sequence[str]]
) -> None:
    """Shows a row for each host, and then why some cannot be used.

    Raises:
        typer.Exit: One cannot.
    """
    from rich.markup import escape
    from rich.table import Table

    from dilaton.cli.errors import HOST_LACKS
    from dilaton.cli.output import visible
    from dilaton.cli.terminal import Output

    table = Table(box=None, pad_edge=False)
    for heading in ("host", *headings):
        table.add_column(heading, overflow="fold")
    for name, row in zip(hosts, rows, strict=True):
        table.add_row(escape(name), *map(escape, row))
    output = Output()
    output.print(table)
    reasons = [f"{name}: {each}" for name, of_host in zip(hosts, why, strict=True) for each in of_host]
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
