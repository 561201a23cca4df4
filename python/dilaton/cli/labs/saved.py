"""`dilaton saved`: labs that were saved with what their nodes have. Its own imports are made when it is used."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer(
    name="saved",
    help="Labs that dilaton save has kept, with what their nodes have; dilaton up NAME goes on from there.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As in the list.")]


@app.command("list")
def list_saved(context: typer.Context) -> None:
    """Show the saved labs."""
    if context.obj is not None:
        from dilaton.cli.runs.saved_there import list_saved_there

        list_saved_there(context.obj)
        return
    from rich.markup import escape
    from rich.table import Table

    from dilaton.cli.terminal import Output
    from dilaton.host.sparse import taken_bytes
    from dilaton.measure import numbers
    from dilaton.service.saved.store import SavedLabs, about
    from dilaton.templates.store import TemplateError

    store, broken = SavedLabs(), []
    rows = Table(box=None, pad_edge=False)
    for heading in ("name", "lab", "saved at", "size"):
        rows.add_column(heading, overflow="fold")
    for name, digest in store.names().items():
        tree = store.directory / "trees" / digest
        try:
            found = about(tree)
        except TemplateError as error:
            broken.append(f"{name}: {error}")
            continue
        size = taken_bytes(tree)
        rows.add_row(escape(name), escape(found.lab), numbers.duration(found.virtual_s), f"{size / 1e6:,.1f} MB")
    Output().print(rows)
    if broken:
        from dilaton.cli.errors import FailedError

        raise FailedError("\n".join(broken))


@app.command()
def show(context: typer.Context, name: Name) -> None:
    """Show a saved lab as JSON: what was steered, and where its lab and results are."""
    if context.obj is not None:
        from dilaton.cli.runs.saved_there import show_saved_there

        show_saved_there(context.obj, name)
        return
    import json

    from dilaton.cli.errors import refusing
    from dilaton.service.errors import RequestError
    from dilaton.service.saved.restore import reading
    from dilaton.service.saved.store import LAB, RESULTS, about

    with refusing(RequestError), reading(name) as tree:
        places = {"lab_directory": str(tree / LAB), "results": str(tree / RESULTS)}
        print(json.dumps(about(tree).model_dump() | places, indent=2))


@app.command()
def remove(
    context: typer.Context, names: Annotated[list[str], typer.Argument(metavar="NAME", help="As in the list.")]
) -> None:
    """Remove saved labs; runs that have gone on from them are not affected."""
    if context.obj is not None:
        from dilaton.cli.runs.saved_there import remove_saved_there

        remove_saved_there(context.obj, names)
        return
    from dilaton.cli.errors import refusing
    from dilaton.service.saved.store import SavedLabs
    from dilaton.templates.store import TemplateError

    for name in names:
        with refusing(TemplateError):
            SavedLabs().remove(name)
