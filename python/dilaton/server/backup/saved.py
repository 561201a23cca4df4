"""The saved labs of a server in a backup: their trees and names, and put back, that each is what it was."""

from __future__ import annotations

import tarfile
from dataclasses import dataclass
from pathlib import Path

from dilaton.server.backup.entries import add_link, add_tree
from dilaton.service.saved.store import SavedLabs, about
from dilaton.templates.store import TemplateError


@dataclass(frozen=True)
class InBackup:
    """What of the saved labs is in a backup: how many, the digests of images that they need, and what is damaged."""

    count: int
    images: frozenset[str]
    left_out: tuple[str, ...]


def add_saved(archive: tarfile.TarFile, top: Path) -> InBackup:
    """Adds all saved labs of a server, whose stores are in a directory; each stays as it is while it is read."""
    count, images, left_out = 0, set[str](), []
    for labs in _stores(top):
        trees = set[str]()
        for name in labs.names():
            try:
                with labs.reading(name) as tree:
                    if tree is None:  # it was removed meanwhile
                        continue
                    images.update(about(tree).images)
                    place = f"{top.name}/{labs.directory.name}"
                    if tree.name not in trees:
                        add_tree(archive, tree, f"{place}/trees/{tree.name}")
                        trees.add(tree.name)
                    add_link(archive, f"{place}/names/{name}", f"../trees/{tree.name}")
                    count += 1
            except TemplateError as error:
                left_out.append(f"saved lab {error}")
    return InBackup(count, frozenset(images), tuple(left_out))


def check_saved(there: Path, top: Path) -> list[tuple[str, str]]:
    """Looks whether all that were put back are whole: names for images that they need, with the digests.

    Args:
        there: Where they are at the moment.
        top: Where they will be.

    Raises:
        ValueError: One is not.
    """
    needed = []
    for labs in _stores(there):
        will_be = SavedLabs(top / labs.directory.name)
        for name in labs.names():
            try:
                with labs.reading(name) as tree:
                    assert tree is not None
                    needed += [(will_be.image_name(image), image) for image in about(tree).images]
            except TemplateError as error:
                raise ValueError(f"saved lab {error}") from error
    return needed


def _stores(top: Path) -> list[SavedLabs]:
    return [SavedLabs(path.parent) for path in sorted(top.glob("*/names"))]
