"""The files of the source tree, as the style tests see it."""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "dilaton"


@cache
def files() -> tuple[Path, ...]:
    """All files that belong to the tree: git's, those not yet added included, and not what is built from them."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return tuple(path for name in sorted(listed.split("\0")) if name and (path := ROOT / name).is_file())


def files_in(*folders: str, suffix: str = "") -> list[Path]:
    """The files below these folders of the tree whose names end with `suffix`."""
    below = tuple(ROOT / folder for folder in folders)
    return [path for path in files() if path.name.endswith(suffix) and any(path.is_relative_to(top) for top in below)]


def name(path: Path) -> str:
    """The path of a file within the tree."""
    return str(path.relative_to(ROOT))


@cache
def parsed(path: Path) -> ast.Module:
    """The syntax tree of a Python file."""
    return ast.parse(path.read_text(), filename=str(path))


def none_of(offences: Iterable[str]) -> None:
    """Fails, with all of them, when there are offences."""
    found = list(offences)
    assert not found, "\n".join(["", *found])
