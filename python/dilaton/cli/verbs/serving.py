"""The verb that serves: other people, or one's own browser and programs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command()
def serve(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A file for a server of several people.")
    ] = None,
    port: Annotated[
        int | None, typer.Option("--port", min=0, max=65535, help="Where to listen (default: 8642); 0: any free port.")
    ] = None,
    host: Annotated[str | None, typer.Option("--host", help="The address to listen on (default: 127.0.0.1).")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="DIR", help="Where labs and runs are kept (default: yours).")
    ] = None,
    at_once: Annotated[
        int | None,
        typer.Option("--at-once", metavar="N", min=1, help="Runs that go on at once (default: 1); others wait."),
    ] = None,
    backup: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write all that the server knows to a new file, and end; it may go on."),
    ] = None,
    restore: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Put a backup into a new server's data, and end.")
    ] = None,
) -> None:
    """Serve labs and runs by an API and a page, for yourself or a group; Ctrl-C ends it, and runs go on."""
    from dilaton.cli.runs.serve import become_server

    become_server(
        {
            "config": config,
            "port": port,
            "host": host,
            "directory": data and data.absolute(),
            "at_once": at_once,
            "backup": backup and backup.absolute(),
            "restore": restore and restore.absolute(),
        }
    )
