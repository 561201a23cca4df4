"""`dilaton lock`: the images of a lab, by digest, in a file beside it."""

from __future__ import annotations

from pathlib import Path

from dilaton.cli.errors import BadInputError, refusing, writing
from dilaton.images.reference import parse
from dilaton.lab.beside.lock import read_lock, write_lock
from dilaton.lab.images.find import digests
from dilaton.service.prepare import prepare
from dilaton.service.request import LabText, Overrides


def lock_lab(path: Path) -> None:
    """Writes which images a lab has now, beside those that are locked already, which stay.

    Raises:
        LabError: The lab has a mistake, such as an image that is not in the store.
        BadInputError: It has no file, or no images, or the lock cannot be written.
    """
    text = LabText.read(path)
    if text.file is None or not text.file.is_file():
        raise BadInputError(f"{text.name}: no file; dilaton.lock is written beside the file of a lab")
    found = digests(node.image for node in prepare(text, Overrides()).lab.nodes.values())
    if not found:
        raise BadInputError(f"{text.name}: no node has an image that could change; there is nothing to lock")
    directory = text.file.parent
    with refusing(ValueError):
        known = read_lock(directory)
    with writing(directory / "dilaton.lock"):
        written = write_lock(directory, known | found)
    for complete, digest in found.items():
        print(f"{parse(complete).short} {digest}")
    print(f"{written}: written")
