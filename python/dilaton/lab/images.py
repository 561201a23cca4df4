"""Images of nodes, as labs name them."""

from __future__ import annotations

from dataclasses import dataclass


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


def find_image(name: str) -> Image:
    """The image of that name or digest.

    Raises:
        ValueError: It is not in the store; or it is no name.
    """
    # Here, since labs without images need none of it.
    from dilaton.images.reference import parse
    from dilaton.images.store import ImageError, Store

    try:
        found = Store().find(name)
    except ImageError as error:
        raise ValueError(f"{error}; to bring it from its registry: dilaton image pull {parse(name).short}") from error
    env = tuple(found.env.items())
    return Image(found.name, found.digest, str(found.root), found.argv, env, found.cwd, found.user)
