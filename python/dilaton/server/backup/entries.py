"""Entries of a backup's archive: files with their holes, directories and links, and back.

Holes are written as GNU tar has them (`--sparse-version=1.0`), so that it, bsdtar and Python's `tarfile` read them:
before the data of a file it is said, by numbers in text, where its parts are.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from dilaton.host.sparse import written
from dilaton.run.files.directory import create_file

CHUNK_BYTES = 1 << 20


def add(archive: tarfile.TarFile, name: str, file: IO[bytes], mode: int = 0o600) -> None:
    """Adds an open file, from its beginning, under a name."""
    size = os.fstat(file.fileno()).st_size
    parts = [(begin, end - begin) for begin, end in written(file.fileno())]
    entry = tarfile.TarInfo(name)
    entry.mode, entry.size = mode, sum(count for _, count in parts)
    said = b""
    if entry.size < size:
        numbers = (len(parts), *(number for part in parts for number in part))
        said = "".join(f"{number}\n" for number in numbers).encode()
        said += bytes(-len(said) % tarfile.BLOCKSIZE)
        entry.size += len(said)
        entry.name = f"GNUSparseFile.0/{os.path.basename(name)}"
        about = {"major": "1", "minor": "0", "name": name, "realsize": str(size)}
        entry.pax_headers = {f"GNU.sparse.{key}": value for key, value in about.items()}
    archive.addfile(entry, _Stream(_chunks(said, file, parts)))  # type: ignore[arg-type]


def add_tree(archive: tarfile.TarFile, top: Path, name: str) -> None:
    """Adds a directory and all below it that is a file, a directory or a link; it does not change meanwhile."""
    for folder, folders, names in os.walk(top):
        folders.sort()
        inside = Path(name) / Path(folder).relative_to(top)
        _add_named(archive, str(inside), tarfile.DIRTYPE)
        for each in sorted((*folders, *names)):
            path = Path(folder, each)
            if path.is_symlink():
                add_link(archive, str(inside / each), os.readlink(path))
            elif path.is_file():
                with path.open("rb") as file:
                    add(archive, str(inside / each), file, path.stat().st_mode & 0o777)


def add_link(archive: tarfile.TarFile, name: str, to: str) -> None:
    """Adds a link, wherever it leads."""
    _add_named(archive, name, tarfile.SYMTYPE, to)


def put(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path) -> None:
    """Puts an entry back, through no link, whoever wrote the archive.

    Raises:
        ValueError: it would be below a link, or is none of these kinds.
        OSError: it cannot be written.
    """
    if os.path.realpath(target.parent) != str(target.parent):
        raise ValueError(f"{entry.name!r}: below a link")
    target.parent.mkdir(parents=True, exist_ok=True)
    data = archive.extractfile(entry) if entry.isreg() else None
    if data is not None:
        with open(create_file(target), "wb") as output:
            for begin, count in _parts(entry):
                data.seek(begin)
                output.seek(begin)
                while count > 0 and (chunk := data.read(min(count, CHUNK_BYTES))):
                    output.write(chunk)
                    count -= len(chunk)
            output.truncate(entry.size)
            os.fchmod(output.fileno(), entry.mode & 0o777)
    elif entry.isdir():
        target.mkdir(exist_ok=True)
    elif entry.issym():
        target.symlink_to(entry.linkname)
    else:
        raise ValueError(f"{entry.name!r}: neither a file, a directory nor a link")


def _parts(entry: tarfile.TarInfo) -> list[tuple[int, int]]:
    """Where there is something in a file, and how much."""
    sparse: Any = entry.sparse
    return [(0, entry.size)] if sparse is None else sparse


class _Stream:
    """Chunks of bytes as `tarfile` reads them."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks, self._held = chunks, b""

    def read(self, count: int) -> bytes:
        """So many bytes, fewer at the end."""
        while len(self._held) < count and (chunk := next(self._chunks, b"")):
            self._held += chunk
        found, self._held = self._held[:count], self._held[count:]
        return found


def _chunks(said: bytes, file: IO[bytes], parts: list[tuple[int, int]]) -> Iterator[bytes]:
    if said:
        yield said
    for begin, count in parts:
        for at in range(begin, begin + count, tarfile.RECORDSIZE):
            yield os.pread(file.fileno(), min(tarfile.RECORDSIZE, begin + count - at), at)


def _add_named(archive: tarfile.TarFile, name: str, kind: bytes, to: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, to, 0o700
    archive.addfile(entry)
