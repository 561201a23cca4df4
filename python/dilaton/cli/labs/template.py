"""`dilaton template`: labs that others start from. Its own imports are made when it is used."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    name="template",
    help="Start from a template, or save a lab as one; the examples are templates too.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As in the list, such as dumbbell.")]


@app.command("list")
def list_templates(context: typer.Context) -> None:
    """Show the templates that there are: those that were saved, and the examples."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import list_templates_there

        list_templates_there(context.obj)
        return
    from rich.markup import escape
    from rich.table import Table

    from dilaton.cli.terminal import Output
    from dilaton.service import templates
    from dilaton.templates.store import TemplateError, Templates

    store = Templates()
    rows = Table(box=None, pad_edge=False)
    for heading in ("template", "saved as", "what it is", "parameters"):
        rows.add_column(heading, overflow="fold")
    broken = []
    for name, digest in templates.names(store).items():
        try:
            found = templates.show(store, name)
        except (TemplateError, ValueError, OSError) as error:
            broken.append(str(error))
            continue
        rows.add_row(escape(name), digest[:12] or "example", escape(found.title), escape(" ".join(found.parameters)))
    Output().print(rows)
    if broken:
        from dilaton.cli.errors import FailedError

        raise FailedError("\n".join(broken))


@app.command()
def save(
    context: typer.Context,
    lab: Annotated[Path, typer.Argument(metavar="LAB", help="A directory with a lab.yaml, or a YAML file.")],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the template will be called.")],
) -> None:
    """Save a lab, with all that is in its directory, as a template."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import save_template_there

        save_template_there(context.obj, lab, name)
        return
    from dilaton.cli.errors import refusing, writing
    from dilaton.service import templates
    from dilaton.templates.store import TemplateError, Templates

    store = Templates()
    with refusing(TemplateError, ValueError), writing(store.directory):
        print(f"{name} {templates.save(store, lab, name)}")


@app.command()
def show(context: typer.Context, name: Name) -> None:
    """Show a template as JSON: its parameters with their defaults, files and images."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import show_template_there

        show_template_there(context.obj, name)
        return
    import json
    from dataclasses import asdict

    from dilaton.cli.errors import refusing
    from dilaton.service import templates
    from dilaton.templates.store import TemplateError, Templates

    with refusing(TemplateError, ValueError):
        found = asdict(templates.show(Templates(), name))
    found["parameters"] = {
        parameter: {"default": default, "about": about} for parameter, (default, about) in found["parameters"].items()
    }
    print(json.dumps(found, indent=2))


@app.command()
def new(
    context: typer.Context,
    name: Name,
    path: Annotated[Path, typer.Argument(metavar="DIR", help="The directory to write; the lab will have its name.")],
    settings: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="A parameter, or a field such as time.tdf. Repeatable."),
    ] = None,
) -> None:
    """Write a lab from a template."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import new_of_template_there

        new_of_template_there(context.obj, name, path, settings or ())
        return
    import shlex

    from dilaton.cli.errors import refusing, writing
    from dilaton.lab.settings import parse_setting
    from dilaton.service import templates
    from dilaton.templates.store import TemplateError, Templates

    with refusing(TemplateError, ValueError), writing(path):
        chosen = dict(parse_setting(setting) for setting in settings or ())
        templates.new(Templates(), name, path, chosen)
    print(f"{path}: written; next: dilaton run {shlex.quote(str(path))}")


@app.command()
def remove(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="Of templates that were saved.")],
) -> None:
    """Remove templates; examples stay."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import remove_templates_there

        remove_templates_there(context.obj, names)
        return
    from dilaton.cli.errors import refusing
    from dilaton.templates.store import TemplateError, Templates

    for name in names:
        with refusing(TemplateError):
            Templates().remove(name)
