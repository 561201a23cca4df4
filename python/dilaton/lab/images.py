"""Images of nodes, as labs name them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    """

    name: str
    digest: str
    root: str
    argv: tuple[str, ...]
    env: tuple[tuple[str, str], ...]
    cwd: str
    user: str


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
    from dilaton.images.store import ImageError, Store
    from dilaton.lab.beside.lock import NAME, read_lock

    store, reference = Store(), parse(name)
    digest = read_lock(directory).get(str(reference))
    if digest is not None and digest not in store.names().values():
        raise ValueError(
            f"{name}: {Path(directory) / NAME} says that it is {digest}, which is not in the store of images; to bring "
            f"it from its registry: dilaton image pull {reference.repository}@{digest}"
        )
    try:
        found = store.find(digest or name)
    except ImageError as error:
        raise ValueError(f"{error}; to bring it from its registry: dilaton image pull {reference.short}") from error
    shown = reference.short if digest else found.name
    env = tuple(found.env.items())
    return Image(shown, found.digest, str(found.root), found.argv, env, found.cwd, found.user)
