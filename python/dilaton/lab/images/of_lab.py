"""Recipes of images in a lab that need not be whole yet: it is, once they are built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dilaton.images.recipe import Recipe
from dilaton.lab.errors import LabError
from dilaton.lab.errors import Path as Steps
from dilaton.lab.images.find import tree_of
from dilaton.lab.images.recipe import parse_recipe
from dilaton.lab.loader import read
from dilaton.lab.text.document import Document, read_document

OF_NAMES = (("nodes",), ("kinds",), ("groups",))
"""Fields whose keys are names, which may be those of fields."""


def recipes_of(file: Path) -> list[Recipe]:
    """The recipes that a lab has wherever it may say `image`.

    Raises:
        LabError: The file cannot be read, is no YAML, or has a recipe with a mistake.
    """
    document = read_document(read(file), str(file))
    return [_parse(document, steps, value, file.parent) for steps, value in _images(document.data, ())]


def read_recipe(file: Path) -> Recipe:
    """The recipe that is all of a file.

    Raises:
        LabError: As above.
    """
    document = read_document(read(file), str(file))
    return _parse(document, (), document.data, file.parent)


def _parse(document: Document, steps: Steps, value: Any, directory: Path) -> Recipe:
    if document.problems:
        raise LabError(document.problems)
    try:
        if not isinstance(value, dict | str):
            raise ValueError("not a recipe; one is debian: {suite: trixie, packages: [...]}, or host: [...]")
        return parse_recipe(value, directory)
    except ValueError as error:
        raise LabError([document.problem(steps, str(error))]) from error


def _images(data: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    """What is written wherever a node may say `image`, if it is no name; disks have images of their own."""
    if isinstance(data, dict):
        has_names = steps[-1:] in OF_NAMES
        for name, value in data.items():
            if name == "image" and not has_names:
                recipe = value if isinstance(value, dict) else tree_of(str(value))
                yield from [] if recipe is None else [((*steps, name), recipe)]
            elif name != "disk" or has_names:
                yield from _images(value, (*steps, name))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _images(value, (*steps, number))
