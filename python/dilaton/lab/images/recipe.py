"""What a lab says of an image that is made on this machine: its recipe (`images/recipe.py`)."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, ValidationInfo, model_validator

from dilaton.images.recipe import Debian, OfHost, OfTree, Recipe
from dilaton.lab.text import syntax
from dilaton.lab.text.part import Part, Text, made

VARIANTS = ("extract", "custom", "essential", "apt", "minbase", "important", "standard")
"""Of mmdebstrap(1)."""
_WORD = re.compile(r"[a-z0-9][a-z0-9+.-]*(?::[a-z0-9]+)?(?:[=/][A-Za-z0-9.+:~-]+)?")
"""A suite or package, perhaps with its architecture and version, as apt-get takes it."""


def _listed(value: object) -> object:
    return value if isinstance(value, list) else [value]


def _word(value: str) -> str:
    if not _WORD.fullmatch(value):
        raise ValueError(f"{value}: not the name of a suite or package; one is such as trixie, or redis-server")
    return value


def _mirror(value: str) -> str:
    if not value or value.startswith("-") or not value.isprintable():
        raise ValueError(f"{value}: not a mirror; one is such as http://mirror.example.org/debian")
    return value


def _place(value: str) -> str:
    if not value or value.startswith("-") or ("/" in value and not value.startswith("/")) or "\0" in value:
        raise ValueError(f"{value}: neither the name of a program nor an absolute path")
    return value


def _tree(value: object, info: ValidationInfo) -> str:
    """The path of a tree, which starts at the directory of the lab."""
    path = syntax.parse_text(value)
    if not path or "\0" in path:
        raise ValueError(f"{path!r}: must be the path of a directory or file, such as rootfs.tar")
    return os.path.abspath(os.path.join((info.context or {}).get("directory", "."), path))


def _variant(value: object) -> str:
    return syntax.parse_choice(value, "the variant", VARIANTS)


Word = Annotated[Text, AfterValidator(_word)]


class OfDebian(Part):
    """Packages of a suite."""

    suite: Word
    packages: Annotated[tuple[Word, ...], BeforeValidator(_listed)] = ()
    mirror: Annotated[tuple[Annotated[Text, AfterValidator(_mirror)], ...], BeforeValidator(_listed)] = ()
    variant: Annotated[
        Literal["extract", "custom", "essential", "apt", "minbase", "important", "standard"], BeforeValidator(_variant)
    ] = "apt"


class Written(Part):
    """A recipe as a lab has it: `debian`, `host` or `from`, and what the image runs."""

    debian: OfDebian | None = None
    host: Annotated[tuple[Annotated[Text, AfterValidator(_place)], ...], BeforeValidator(_listed)] | None = None
    tree: Annotated[str, BeforeValidator(_tree)] | None = Field(default=None, validation_alias="from")
    command: Annotated[tuple[str, ...], BeforeValidator(syntax.parse_exec)] = ()
    env: dict[Annotated[str, BeforeValidator(syntax.parse_variable)], Text] = Field(default_factory=dict)
    cwd: Annotated[str, BeforeValidator(syntax.parse_path)] = "/"
    user: Text = "root"

    @model_validator(mode="after")
    def _one(self) -> Written:
        if [self.debian, self.host, self.tree].count(None) != 2:
            raise ValueError(
                "write debian: {suite: trixie, packages: [...]}, host: [...] or from: FILE, one of the three"
            )
        return self


def parse_recipe(value: dict[str, Any] | str, directory: str | Path = ".") -> Recipe:
    """Reads a recipe.

    Args:
        value: As it is written; the path of a tree stands for a recipe that says no more.
        directory: Where paths of trees start.

    Raises:
        ValueError: It is none; the text names the first field that cannot be so.
    """
    said = made(Written, {"from": value} if isinstance(value, str) else value, "recipe", {"directory": directory})
    source: Debian | OfHost | OfTree
    if said.debian is not None:
        source = Debian(said.debian.suite, said.debian.packages, said.debian.mirror, said.debian.variant)
    elif said.tree is not None:
        source = OfTree(said.tree)
    else:
        source = OfHost(said.host or ())
    return Recipe(source, said.command, tuple(sorted(said.env.items())), said.cwd, said.user)
