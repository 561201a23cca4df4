"""The verb that serves: other people, or one's own browser and programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def serve(
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="Where to listen; 0: any free port.")] = 8642,
    host: Annotated[str, typer.Option("--host", help="The address to listen on, of loopback.")] = "127.0.0.1",
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Where labs and runs are kept (default: yours).")
    ] = None,
    at_once: Annotated[
        int, typer.Option("--at-once", metavar="N", min=1, help="Runs that go on at once; others wait.")
    ] = 1,
) -> None:
    """Serve labs and runs by an API and a page, for yourself, on this machine; Ctrl-C ends it, and runs go on."""
    from dilaton.cli.runs.serve import become_server

    become_server(port, host, data, at_once)
