"""Images of nodes, as labs name them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from dilaton.images.recipe import Recipe
    from dilaton.images.reference import Reference

ARCHIVES = ("oci-archive:", "docker-archive:")
PATHS = ("./", "../", "/")
SUFFIXES = (
    *(f".tar{packed}" for packed in ("", ".gz", ".xz", ".bz2", ".zst")),
    *(".tgz", ".txz", ".squashfs", ".sqfs", ".ext4", ".erofs", ".img"),
)
"""What files with images, root file systems and archives of these are called."""


@dataclass(frozen=True)
class Image:
    """An image in the store.

    Attributes:
        name: As people write it.
        digest: Of its manifest.
        root: The file with its tree.
        argv: What it runs; nothing, if it says none.
        env: The environment in which it does, as pairs.
        cwd: The directory in which it does.
        user: Whose process that is.
        volumes: Directories that have to be there.
    """

    name: str
    digest: str
    root: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    user: str
    volumes: tuple[str, ...] = ()


def digests(images: Iterable[Image | Literal["host"]]) -> dict[str, str]:
    """The digests of images of nodes by their complete names, but for those that are named by digest."""
    from dilaton.images.reference import parse

    return {str(name): image.digest for image in images if image != "host" and not (name := parse(image.name)).digest}


def find_image(name: str, directory: str | Path) -> Image:
    """The image of that name or digest.

    Args:
        name: As the lab has it.
        directory: Of the lab, where a lock may say which image the name means.

    Raises:
        ValueError: It is not in the store; or it is no name; or the lock is none.
    """
    # Here, since labs without images need none of it.
    from dilaton.images.reference import parse

    reference, pull = parse(name), "to bring it from its registry: dilaton image pull"
    return _find(reference, name, directory, f"{pull} {reference.short}", f"{pull} {reference.repository}@")


def tree_of(text: str) -> str | None:
    """The path of an archive or a tree, if that is what a lab names by this, and not the name of an image.

    What is written alone says so, not what happens to be beside the lab.
    """
    path = next((text.removeprefix(prefix) for prefix in ARCHIVES if text.startswith(prefix)), None)
    return path or (text if text.startswith(PATHS) or text.endswith(SUFFIXES) else None)


def find_recipe(recipe: Recipe, directory: str | Path) -> Image:
    """The image that was built from a recipe; the rest as of `find_image`."""
    again = "import it from who has built it, or remove the line and build it anew; it is "
    return _find(recipe.name, recipe.name.short, directory, "to build it: dilaton image build LAB", again)


def _find(reference: Reference, name: str, directory: str | Path, remedy: str, locked_remedy: str) -> Image:
    """The image of a name; where there is none the remedy is told, and of one that is locked that for its digest."""
    from dilaton.images.store import ImageError, Store
    from dilaton.lab.beside.lock import NAME, read_lock

    store = Store()
    digest = read_lock(directory).get(str(reference))
    if digest is not None and digest not in store.names().values():
        raise ValueError(
            f"{name}: {Path(directory) / NAME} says that it is {digest}, which is not in the store of images; "
            f"{locked_remedy}{digest}"
        )
    try:
        found = store.find(digest or name)
    except ImageError as error:
        raise ValueError(f"{error}; {remedy}") from error
    shown = reference.short if digest else found.name
    env = tuple(found.env.items())
    volumes = tuple(_places(found.volumes))
    return Image(shown, found.digest, str(found.root), found.argv, env, found.cwd, found.user, volumes)


def _places(paths: Iterable[str]) -> Iterator[str]:
    """Those of them at which a lab could have something."""
    from dilaton.lab.beside.contents import parse_place

    for path in paths:
        with contextlib.suppress(ValueError):
            yield parse_place(path)
