"""`dilaton kernel`: which kernel guests run. Its own imports are made when it is used, as those of every verb."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="kernel",
    help="List, build or choose the kernel that guests run.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)


@app.command("list")
def list_kernels() -> None:
    """Show the kernels that are there; a star is at the one that guests run."""
    from rich.markup import escape
    from rich.table import Table

    from dilaton.cli.errors import FailedError
    from dilaton.cli.terminal import Output
    from dilaton.host.here.uml import kernels

    chosen, found = kernels.chosen_name(), kernels.there()
    rows = Table(box=None, pad_edge=False)
    for heading in ("", "kernel", "made from"):
        rows.add_column(heading, overflow="fold")
    sources = {kernels.DEBIAN: "the package user-mode-linux"}
    sources |= {
        kernel.name: f"{kernel.name.removesuffix(kernels.SECCOMP)}, its programs not traced"
        if kernel.has_seccomp
        else kernel.built.source
        for kernel in found
        if kernel.built
    }
    for name, source in sources.items():
        rows.add_row("*" if name == chosen else "", name, escape(source))
    Output().print(rows)
    if chosen not in sources:
        raise FailedError(f"{chosen}: guests are to run this kernel, which is not there; choose one of the list")


@app.command()
def build(
    source: Annotated[
        Path | None,
        typer.Option(
            "--source", metavar="PATH", help="A tree of Linux or an archive of one (default: linux-source-6.12)."
        ),
    ] = None,
) -> None:
    """Build a kernel for guests, fifteen minutes of CPU, once for a source; then `dilaton kernel use` it."""
    from dilaton.cli.errors import failing
    from dilaton.host.here.uml.kernel_build import BuildError
    from dilaton.host.here.uml.kernel_build import build as make

    with failing(BuildError):
        kernel = make(source, lambda what: print(what, file=sys.stderr))
    print(kernel.name)


@app.command()
def use(
    name: Annotated[str, typer.Argument(metavar="NAME", help="As in the list; `debian` is the stock one.")],
) -> None:
    """Let all guests of this user run that kernel from now on."""
    from dilaton.host.here.uml import kernels

    kernels.choose(name)
