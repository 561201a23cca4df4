"""The store of images in a backup, and put back into one that may have others already."""

from __future__ import annotations

import contextlib
import io
import json
import re
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from dilaton.images.reference import parse
from dilaton.images.store import ALGORITHM, DOCUMENT_BYTES_MAX, Adding, ImageError, Store, digest_of, publish
from dilaton.server.backup.entries import add, put
from dilaton.service.saved.store import IMAGES

NAMES, BLOBS, ROOTS = "names.json", "blobs", "roots"
"""The digests of images by their names, before all files."""

OF_SAVED = re.compile(rf"{re.escape(IMAGES)}(-[0-9a-f]+)?:")
"""Names of what saved labs need; they get those of their new place."""


def add_images(archive: tarfile.TarFile, folder: str, store: Store, needed: Iterable[str]) -> tuple[int, list[str]]:
    """Adds the images that have names, and those that saved labs need: how many, and what is damaged, in words.

    Args:
        archive: To which.
        folder: Its part for images.
        store: From which nothing is freed meanwhile.
        needed: Their digests.
    """
    names = {name: digest for name, digest in store.names().items() if not OF_SAVED.match(name)}
    files, damaged, whole = dict[str, Path](), list[str](), set[str]()
    for digest in sorted({*names.values(), *needed}):
        try:
            found = _files_of(store, digest)
        except ImageError as error:
            damaged.append(f"image {error}")
            continue
        files |= found
        whole.add(digest)
    said = json.dumps({name: digest for name, digest in names.items() if digest in whole}).encode()
    about = tarfile.TarInfo(f"{folder}/{NAMES}")
    about.size, about.mode = len(said), 0o600
    archive.addfile(about, io.BytesIO(said))
    for name, path in files.items():
        with path.open("rb") as file:
            add(archive, f"{folder}/{name}", file)
    return len(whole), damaged


class ImagesBack:
    """Images that come back into a store; what it has already stays."""

    def __init__(self, store: Store, stack: contextlib.ExitStack) -> None:
        """Until the end of `stack` nothing is freed there, once there is something."""
        self._store, self._stack = store, stack
        self._names: dict[str, str] = {}
        self._adding: Adding | None = None

    def put(self, archive: tarfile.TarFile, entry: tarfile.TarInfo, parts: Sequence[str]) -> None:
        """Puts a file back, by its path in the archive's part for images.

        Raises:
            ValueError, ImageError: It is none of an image, or is damaged.
        """
        data = archive.extractfile(entry) if entry.isreg() else None
        match parts:
            case [name] if name == NAMES and data is not None:
                names = dict(json.loads(data.read(DOCUMENT_BYTES_MAX)))
                self._names = {str(name): str(digest) for name, digest in names.items()}
            case [folder, name] if folder == BLOBS and data is not None:
                digest = ALGORITHM + name
                if not self._store.blob(digest).exists():
                    staged = self._staged(archive, entry)
                    if digest_of(staged) != digest:
                        raise ValueError(f"{entry.name!r}: is not what its name says")
                    self._store.keep(staged, digest)
            case [folder, name] if folder == ROOTS and data is not None:
                if not (root := self._store.root(ALGORITHM + name)).exists():
                    publish(self._staged(archive, entry), root)
            case _:
                raise ValueError(f"{entry.name!r}: not a file of an image")

    def name(self, others: Iterable[tuple[str, str]]) -> None:
        """Gives all their names, unless the store has another image of that name.

        Args:
            others: Names that images get beside those in the archive, where the store has them.

        Raises:
            ImageError: One is not whole.
        """
        there = self._store.names() if self._store.directory.is_dir() else {}
        found = [(name, digest) for name, digest in self._names.items() if name not in there]
        found += [(name, digest) for name, digest in others if self._store.blob(digest).exists()]
        for name, digest in found:
            self._begun()
            _files_of(self._store, digest)
            self._store.name(parse(name), digest)

    def _begun(self) -> Adding:
        if self._adding is None:
            self._adding = self._stack.enter_context(self._store.adding())
        return self._adding

    def _staged(self, archive: tarfile.TarFile, entry: tarfile.TarInfo) -> Path:
        path = self._begun().staging.resolve() / "file"
        put(archive, entry, path)
        return path


def _files_of(store: Store, digest: str) -> dict[str, Path]:
    """All files of an image, by what they are called in a backup.

    Raises:
        ImageError: One is not there.
    """
    found = {f"{BLOBS}/{path.name}": path for path in map(store.blob, store.blobs_of(digest))}
    found[f"{ROOTS}/{store.root(digest).stem}"] = store.root(digest)
    if gone := [path for path in found.values() if not path.is_file()]:
        raise ImageError(f"{digest}: {gone[0]} is not there any more; pull or import it again")
    return found
