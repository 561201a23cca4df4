"""Recipes of images in a lab that need not be whole yet: it is, once they are built."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dilaton.images.recipe import Recipe
from dilaton.lab.errors import LabError
from dilaton.lab.errors import Path as Steps
from dilaton.lab.images.recipe import parse_recipe
from dilaton.lab.loader import read
from dilaton.lab.text.document import Document, read_document


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
        if not isinstance(value, dict):
            raise ValueError("not a recipe; one is debian: {suite: trixie, packages: [...]}, or host: [...]")
        return parse_recipe(value, directory)
    except ValueError as error:
        raise LabError([document.problem(steps, str(error))]) from error


def _images(data: Any, steps: Steps) -> Iterator[tuple[Steps, Any]]:
    if isinstance(data, dict):
        for name, value in data.items():
            if name == "image" and isinstance(value, dict):
                yield (*steps, name), value
            else:
                yield from _images(value, (*steps, name))
    elif isinstance(data, list):
        for number, value in enumerate(data):
            yield from _images(value, (*steps, number))
