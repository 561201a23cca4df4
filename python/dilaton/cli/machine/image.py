"""`dilaton image`: the store of images. Its own imports are made when it is used, as those of every verb."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from dilaton.images.store import Store
    from dilaton.service.images.roots import Progress

app = typer.Typer(
    name="image",
    help="List, add or remove images, from which nodes have file trees of their own.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

Name = Annotated[str, typer.Argument(metavar="NAME", help="As in the list, such as nginx:1.27; or a digest.")]
MaxSize = Annotated[
    str | None,
    typer.Option(
        "--max-size", metavar="SIZE", help="How large its files may be together (default: half of what is free)."
    ),
]


AT_A_SERVER = ("list", "inspect", "pull", "remove")
"""What of it a server does."""


@app.callback()
def _options(context: typer.Context) -> None:
    if context.obj is not None and context.invoked_subcommand not in AT_A_SERVER:
        from dilaton.cli.errors import BadInputError

        raise BadInputError(f"--server: image {context.invoked_subcommand}: only {', '.join(AT_A_SERVER)} ask a server")


@app.command("list")
def list_images(context: typer.Context) -> None:
    """Show the images that are in the store."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import list_images_there

        list_images_there(context.obj)
        return
    from rich.markup import escape
    from rich.table import Table

    from dilaton.cli.errors import FailedError
    from dilaton.cli.terminal import Output
    from dilaton.images.reference import parse
    from dilaton.images.store import ALGORITHM, SHORT_DIGEST, ImageError, Store

    store, broken = Store(), []
    rows = Table(box=None, pad_edge=False)
    for heading in ("image", "digest", "size", "runs"):
        rows.add_column(heading, overflow="fold")
    for name, digest in store.names().items():
        try:
            image = store.find(name)
        except ImageError as error:
            broken.append(str(error))
            continue
        digits = digest.removeprefix(ALGORITHM)[:SHORT_DIGEST]
        rows.add_row(escape(parse(name).short), digits, _size(image.size_bytes), escape(" ".join(image.argv)))
    Output().print(rows)
    if broken:
        raise FailedError("\n".join(broken))


@app.command("import")
def import_image(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="An image of container engines, as an archive or a directory; or a root file system: a directory, or "
            "a file with a tar archive or a squashfs, ext4 or erofs.",
        ),
    ],
    name: Annotated[str, typer.Argument(metavar="NAME", help="What it will be called, such as frr:10.1.")],
    max_size: MaxSize = None,
) -> None:
    """Put an image from a file or directory into the store, as an ordinary user."""
    if source.startswith("docker://"):
        from dilaton.cli.errors import BadInputError

        raise BadInputError(f"{source}: in a registry; dilaton image pull {source.removeprefix('docker://')} brings it")
    _bring(source, name, max_size)


@app.command()
def pull(
    context: typer.Context,
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="Such as nginx, quay.io/frrouting/frr:10.1 or NAME@DIGEST.")
    ],
    max_size: MaxSize = None,
    plain_http: Annotated[
        bool, typer.Option("--plain-http", help="Talk to a registry that has no TLS, as one on this machine may.")
    ] = False,
) -> None:
    """Bring an image from its registry, with what `skopeo login` or `podman login` know of you."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import pull_image_there

        pull_image_there(context.obj, name)
        return
    _bring("", name, max_size, plain_http=plain_http)


@app.command()
def build(
    source: Annotated[
        Path, typer.Argument(metavar="SOURCE", help="A lab, all recipes of which are built; or, with NAME, a recipe.")
    ],
    name: Annotated[
        str | None, typer.Argument(metavar="[NAME]", help="What the image of a recipe will be called, such as db:1.")
    ] = None,
    max_size: MaxSize = None,
    again: Annotated[
        bool, typer.Option("--again", help="Also what was built before, with what packages and programs are now.")
    ] = False,
) -> None:
    """Make images from recipes: of packages of Debian, or of programs of this machine."""
    from dilaton.cli.errors import BadInputError, failing, refusing
    from dilaton.images.reference import parse
    from dilaton.images.store import ImageError, Store
    from dilaton.lab.images.of_lab import read_recipe, recipes_of
    from dilaton.service.images.build import build as build_image
    from dilaton.service.request import lab_file

    store = Store()
    if name is None:
        file = lab_file(source)
        found = {recipe.name: recipe for recipe in recipes_of(file)}
        if not found:
            raise BadInputError(f"{file}: no image in it has a recipe; there is nothing to build")
    else:
        with refusing(ValueError):
            found = {parse(name): read_recipe(source)}
    bytes_max = bytes_of(store, max_size)
    for reference, recipe in found.items():
        if again or name is not None or str(reference) not in store.names():
            with failing(ImageError), shown() as progress:
                build_image(store, recipe, reference, progress, bytes_max, _tell)
        print(f"{reference.short} {store.names()[str(reference)]}")


@app.command()
def inspect(context: typer.Context, name: Name) -> None:
    """Show an image as JSON: its digest, its tree, and its configuration."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import inspect_image_there

        inspect_image_there(context.obj, name)
        return
    import json

    from dilaton.cli.errors import refusing
    from dilaton.images.store import ImageError, Store

    with refusing(ImageError, ValueError):
        image = Store().find(name)
    about = {"name": image.name, "digest": image.digest, "root": str(image.root), "size_bytes": image.size_bytes}
    print(json.dumps({**about, "config": image.config}, indent=2))


@app.command()
def export(
    name: Name,
    target: Annotated[str, typer.Argument(metavar="TARGET", help="oci-archive:FILE or docker-archive:FILE.")],
) -> None:
    """Write an image to an archive, with the same digest."""
    from dilaton.cli.errors import failing, refusing
    from dilaton.images.store import ImageError, Store
    from dilaton.service.images import bring as images

    store = Store()
    with refusing(ImageError, ValueError):
        image = store.find(name)
    with failing(ImageError):
        images.export(store, image, target)


@app.command()
def remove(
    context: typer.Context,
    names: Annotated[list[str], typer.Argument(metavar="NAME", help="As in the list.")],
) -> None:
    """Take images out of the store; `dilaton image gc` then frees their room."""
    if context.obj is not None:
        from dilaton.cli.runs.kept import remove_images_there

        remove_images_there(context.obj, names)
        return
    from dilaton.cli.errors import refusing
    from dilaton.images.store import ImageError, Store

    for name in names:
        with refusing(ImageError, ValueError):
            Store().remove(name)


@app.command()
def gc() -> None:
    """Free the room of images that were removed or replaced, and of pulls and imports that were ended."""
    from dilaton.cli.errors import failing
    from dilaton.images.store import ImageError, Store

    with failing(ImageError):
        print(f"{_size(Store().collect())} freed")


def _bring(source: str, name: str, max_size: str | None, *, plain_http: bool = False) -> None:
    from dilaton.cli.errors import failing, refusing
    from dilaton.images.reference import parse
    from dilaton.images.store import ImageError, Store
    from dilaton.service.images import bring as images

    store = Store()
    with refusing(ValueError):
        reference = parse(name)
    bytes_max = bytes_of(store, max_size)
    with failing(ImageError), shown() as progress:
        source = source or f"docker://{reference}"
        image = images.bring(store, source, reference, progress, bytes_max, plain_http=plain_http)
    print(f"{image.name} {image.digest}")


def bytes_of(store: Store, max_size: str | None) -> int:
    """How large the files of an image may be together, as an option says it or as it is without."""
    from dilaton.cli.errors import refusing
    from dilaton.lab.text import units
    from dilaton.service.images.bring import size_max

    with refusing(ValueError, option="--max-size"):
        return units.parse_size(max_size) if max_size else size_max(store)


def _tell(text: str) -> None:
    import sys

    from dilaton.cli.output import visible

    print(visible(text), file=sys.stderr)


@contextlib.contextmanager
def shown() -> Iterator[Progress]:
    """Shows on a terminal what is being done."""
    from dilaton.cli.terminal import Output

    with Output(stderr=True).status("") as status:
        yield lambda what, size_bytes: status.update(f"{what}, {_size(size_bytes)}")


def _size(size_bytes: int) -> str:
    return f"{size_bytes / 1e6:,.1f} MB"
