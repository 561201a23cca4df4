"""What a lab takes from files: configurations, and the directories that its nodes are to see."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from dilaton.lab.text import syntax

OWN_PLACES = frozenset(map(Path, ("/", "/dev", "/proc", "/run", "/sys", "/tmp", "/var/tmp")))  # noqa: S108 - of nodes
"""Directories that are not a lab's: nodes have their own."""

BYTES_MAX = 1024 * 1024
"""The longest configuration."""


FILES_MAX = 100
"""The most files in a directory of configurations."""


@dataclass(frozen=True)
class FileText:
    """What is in a file."""

    text: str


@dataclass(frozen=True)
class DirectoryTexts:
    """What is in the files of a directory, by their names."""

    texts: Mapping[str, str]


def read_beside(value: object, directory: str | Path) -> FileText | DirectoryTexts:
    """The text of a file, or those of the files in a directory; its path starts at the lab's directory.

    Raises:
        ValueError: it cannot be read, or is no text; or there is too much in a directory.
    """
    name = syntax.parse_text(value)
    path = Path(directory) / name
    if not path.is_dir():
        return FileText(_read(path, name))
    files = sorted(file for file in path.iterdir() if file.is_file() and not file.name.startswith("."))
    if len(files) > FILES_MAX:
        raise ValueError(f"{name}: a directory of {len(files)} files; a configuration has at most {FILES_MAX}")
    return DirectoryTexts({file.name: _read(file, f"{name}/{file.name}") for file in files})


def _read(path: Path, name: str) -> str:
    try:
        if path.stat().st_size > BYTES_MAX:
            raise ValueError(f"{name}: larger than {BYTES_MAX} bytes")
        return path.read_text()
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{path}: not UTF-8 text") from error


def find_beside(value: object, directory: str | Path) -> tuple[str, ...]:
    """Directories with a lab's files, as absolute paths; those written start at the lab's directory.

    Raises:
        ValueError: one is not there, is no directory, or is one that nodes have of their own.
    """
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        raise ValueError("must be a directory or a list of them, such as . for that of the lab")
    found = []
    for name in map(syntax.parse_text, names):
        path = (Path(directory) / name).resolve()
        if not path.is_dir():
            raise ValueError(f"{name}: not a directory (looked at {path})")
        if path in OWN_PLACES:
            raise ValueError(f"{name}: nodes have a {path} of their own; name a directory in it")
        found.append(str(path))
    return tuple(dict.fromkeys(found))
