"""Recipes: images that are made on this machine, from what a lab says of them.

A recipe says where its files come from, and what the image runs. The same recipe has the same name wherever it is
written, made of its digest, so that a lab finds what was built for another, and one that is changed is another image.
What it was built into is told by the image's own digest, as of any image: packages and programs are as new as they were
when it was built.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass

from dilaton.images.reference import Reference

REGISTRY = "localhost"
"""Of names of images that no registry has."""
DIGITS = 12


@dataclass(frozen=True)
class Debian:
    """Packages of Debian, or of what is made like it, with all that they depend on.

    Attributes:
        suite: Such as `trixie`.
        packages: Beside what every system of the suite has.
        mirrors: Where it comes from, as mmdebstrap has it: addresses, or lines of sources.list(5); none: Debian's own.
        variant: What every system has, a word of mmdebstrap's.
    """

    suite: str
    packages: tuple[str, ...] = ()
    mirrors: tuple[str, ...] = ()
    variant: str = "apt"

    @property
    def label(self) -> str:
        """What people read in the name."""
        return f"debian-{self.suite}"


@dataclass(frozen=True)
class OfHost:
    """Programs of this machine with the libraries that they are linked with, and files.

    Attributes:
        names: Of programs, which are looked for as a shell would, and absolute paths of files and directories.
    """

    names: tuple[str, ...]

    label = "host"


@dataclass(frozen=True)
class OfTree:
    """A file tree that is here already.

    Attributes:
        path: Of a directory, or of a file with an archive or a file system, or of an image of container engines, as
            `dilaton image import` takes them.
    """

    path: str

    label = "tree"


@dataclass(frozen=True)
class Recipe:
    """How an image is made.

    Attributes:
        source: Where its files come from.
        command: What it runs; nothing, if it says none.
        env: The environment in which it does, as pairs.
        cwd: The directory.
        user: Whose process it is: a name or number, perhaps with a colon and a group.
    """

    source: Debian | OfHost | OfTree
    command: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "/"
    user: str = "root"

    @property
    def name(self) -> Reference:
        """What its image is called in the store."""
        said = json.dumps([self.source.label, asdict(self)], sort_keys=True).encode()
        return Reference(f"{REGISTRY}/{self.source.label}", hashlib.sha256(said).hexdigest()[:DIGITS])

    @property
    def settings(self) -> dict[str, object]:
        """The same as an image's configuration has it (OCI image specification, "Image Configuration")."""
        variables = [f"{name}={value}" for name, value in self.env]
        said = {"Cmd": list(self.command), "Env": variables, "WorkingDir": self.cwd, "User": self.user}
        return {name: value for name, value in said.items() if value}
