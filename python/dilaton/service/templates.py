"""Saving labs as templates, and starting from one: those that were saved, and the examples."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from dilaton.host.files import EXAMPLES
from dilaton.images.reference import parse
from dilaton.lab.beside.lock import NAME as LOCK_FILE
from dilaton.lab.beside.lock import read_lock, write_lock
from dilaton.lab.errors import LabError
from dilaton.lab.text.replacing import replace_field
from dilaton.run.files.directory import LAB_FILE
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides
from dilaton.templates.description import FILE, Description, defaults, filled, read_description
from dilaton.templates.store import TemplateError, Templates, copy_tree

README = "README.md"


@dataclass(frozen=True)
class Template:
    """A template, as it is shown.

    Attributes:
        name: What it is called.
        digest: Of all its files; empty: an example, which changes with the program.
        title: A few words.
        parameters: What may be chosen, by name: the default, and what it is.
        files: What it consists of, by their paths.
        images: The images that it has, by name, with their digests.
    """

    name: str
    digest: str
    title: str
    parameters: dict[str, tuple[str, str]]
    files: tuple[str, ...]
    images: dict[str, str]


def names(store: Templates) -> dict[str, str]:
    """All templates, with the digests of those that were saved."""
    examples = {path.parent.name: "" for path in sorted(EXAMPLES.glob(f"*/{LAB_FILE}"))}
    return examples | store.names()


def save(store: Templates, lab: Path, name: str) -> str:
    """Saves a lab with all that is beside it, its images by digest: the digest of the template.

    Args:
        store: Where.
        lab: A directory with a lab and its files; or the file of a lab that needs no others.
        name: What it will be called.

    Raises:
        LabError: The lab has mistakes.
        ValueError: Its description has.
        TemplateError: It cannot be saved.
        OSError: Something cannot be read or written.
    """

    def fill(tree: Path) -> None:
        if lab.is_dir():
            # The store may be below the lab.
            copy_tree(lab, tree, without=(store.directory,))
        else:
            (tree / LAB_FILE).write_text(LabText.read(lab).text)
            write_lock(tree, read_lock(lab.parent))
        found = prepare(LabText.read(tree), Overrides()).lab
        images = {str(parse(node.image.name)): node.image for node in found.nodes.values() if node.image != "host"}
        locked = {name: image.digest for name, image in images.items() if not parse(image.name).digest}
        # A directory's lock may be of other labs of it, too, which are saved with it.
        kept = (read_lock(tree) if lab.is_dir() else {}) | locked
        if kept:
            write_lock(tree, kept)
        else:
            (tree / LOCK_FILE).unlink(missing_ok=True)
        _describe(name, "", tree)

    return store.save(name, fill)


def show(store: Templates, name: str) -> Template:
    """What a template is.

    Raises:
        TemplateError: There is none of that name, or it is damaged.
    """
    with _found(store, name) as tree:
        return _describe(name, store.names().get(name, ""), tree)


def new(store: Templates, name: str, path: Path, chosen: Mapping[str, str]) -> None:
    """Writes a lab from a template: all of it, or nothing.

    Args:
        store: Where templates are.
        name: Of the template.
        path: The directory that is made; the lab has its name.
        chosen: Values of parameters, and of other fields that the lab has by their paths.

    Raises:
        LabError: With what was chosen the lab has mistakes.
        ValueError: There is no such parameter, or the lab cannot have that name.
        TemplateError: There is no such template, or the directory is there already.
        OSError: Something cannot be written.
    """
    path = Path(os.path.abspath(path))
    if os.path.lexists(path):
        raise TemplateError(f"{path}: exists already, and is left as it is")
    # What is missing on the way there is made with it, and comes to its place in one step.
    first = path
    while not os.path.lexists(first.parent):
        first = first.parent
    with _found(store, name) as tree, tempfile.TemporaryDirectory(dir=first.parent, prefix=".dilaton-") as beside:
        made = Path(beside) / path.relative_to(first.parent)
        made.mkdir(parents=True)
        copy_tree(tree, made)
        file = made / LAB_FILE
        text = filled(_description(made), file.read_text(), chosen)
        file.write_text(replace_field(text, ("name",), path.name))
        try:
            prepare(LabText.read(made), Overrides())
        except LabError as error:
            # The file that has the mistake is about to go.
            raise LabError([replace(problem, file=f"{name}/{LAB_FILE}") for problem in error.problems]) from error
        (Path(beside) / first.name).rename(first)


@contextlib.contextmanager
def _found(store: Templates, name: str) -> Iterator[Path]:
    with store.reading(name) as tree:
        if tree is None and name not in names(store):
            raise TemplateError(f"{name}: no such template; dilaton template list shows all")
        yield tree or EXAMPLES / name


def _description(tree: Path) -> Description:
    file = tree / FILE
    return read_description(file.read_text(), FILE) if file.is_file() else Description()


def _describe(name: str, digest: str, tree: Path) -> Template:
    description, lab = _description(tree), (tree / LAB_FILE).read_text()
    heading = (tree / README).read_text().partition("\n")[0] if (tree / README).is_file() else lab.partition("\n")[0]
    title = description.title or (heading.lstrip("# ") if heading.startswith("#") else "")
    chosen = {
        parameter: (value, description.parameters[parameter].about)
        for parameter, value in defaults(description, lab).items()
    }
    files = tuple(str(path.relative_to(tree)) for path in sorted(tree.rglob("*")) if not path.is_dir())
    return Template(name, digest, title, chosen, files, read_lock(tree))
