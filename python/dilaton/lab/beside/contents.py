"""`files:` of a node: files and directories that it has beside those of its file tree.

They are read with the lab, so that a mistake is told with its line, and become part of the plan. That keeps a run to
what the lab was when it began; and it bounds them, since each guest reads the whole plan. Larger trees are seen in
place by the lab's own `files:`, or are part of an image.

A file may be a template (jinja2), which is filled when addresses are planned. It is in the sandbox, as labs may be
others'.
"""

from __future__ import annotations

import posixpath
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator, ValidationInfo

from dilaton.lab.text import syntax, units

BYTES_MAX = 2**20
"""The longest file."""
TREE_BYTES_MAX = 2**24
"""The most bytes of all files of a node, and of a directory."""
FILES_MAX = 1000
"""The most files in a directory."""
OTHERS = ("/dev", "/proc", "/sys")
"""What the node's kernel has there is not the lab's to write."""

FIELDS = ("text", "from", "template", "owner", "mode")
LARGER = "larger trees are seen in place by files: of the lab, or are part of an image"
_MODE = re.compile("(0o?)?[0-7]{3,4}")
_OWNER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(:[A-Za-z0-9_][A-Za-z0-9_.-]*)?")


@dataclass(frozen=True)
class Entry:
    """A file or directory.

    Attributes:
        below: Where it is, below the path that the lab says; empty: there.
        contents: What is in it; None: it is a directory.
        mode: Its permissions.
    """

    below: str
    contents: bytes | None
    mode: int


@dataclass(frozen=True)
class Contents:
    """What a node has at a path: a file, or a directory with all that is in it, itself first.

    Attributes:
        entries: What that is.
        owner: Whose all of it is: a name or number of the node's, perhaps with a colon and a group.
        is_template: Whether its files are templates.
    """

    entries: tuple[Entry, ...]
    owner: str = "root"
    is_template: bool = False


def parse_place(value: object) -> str:
    """Reads where in a node a file is.

    Raises:
        ValueError: No file of a lab can be there.
    """
    path = posixpath.normpath(syntax.parse_path(value)).replace("//", "/")
    if path == "/" or any(path == other or path.startswith(f"{other}/") for other in OTHERS):
        raise ValueError(f"{path}: the node's own; a file may be anywhere but at / and below {', '.join(OTHERS)}")
    return path


def parse_contents(value: object, directory: str | Path) -> Contents:
    """Reads what a node has at a path: the name of a file or directory beside the lab, or a mapping.

    Args:
        value: What was written.
        directory: Where the lab is.

    Raises:
        ValueError: It cannot be read, is too large, or is no template.
    """
    if isinstance(value, Contents):
        return value
    written: dict[str, Any] = {"from": value} if not isinstance(value, dict) else value
    for name in written:
        if name not in FIELDS:
            raise ValueError(f"{name}: no such field{syntax.did_you_mean(name, FIELDS) or '; ' + _KNOWN}")
    if ("text" in written) == ("from" in written):
        raise ValueError(f"needs either text, or from with the path of a file or directory; {_KNOWN}")
    mode = _parse_mode(written["mode"]) if "mode" in written else None
    owner = syntax.parse_text(written.get("owner", "root"))
    if not _OWNER.fullmatch(owner):
        raise ValueError(f"owner: {owner!r}: must be a user or user:group, by name or number, such as www-data or 0:0")
    if "text" in written:
        text = syntax.parse_text(written["text"]).encode()
        if len(text) > BYTES_MAX:
            raise ValueError(f"text: larger than {units.format_size(BYTES_MAX)}; {LARGER}")
        entries: tuple[Entry, ...] = (Entry("", text, 0o644 if mode is None else mode),)
    else:
        name = syntax.parse_text(written["from"])
        entries = tuple(_read(Path(directory) / name, name, mode))
    is_template = syntax.parse_flag(written.get("template", False))
    if is_template:
        for entry in entries:
            _check_template(entry)
    return Contents(entries, owner, is_template)


_KNOWN = f"known are {', '.join(FIELDS)}"


def _parse_mode(value: object) -> int:
    text = syntax.parse_text(value)
    if not _MODE.fullmatch(text):
        raise ValueError(f"mode: {text}: must be octal digits, as in 0644 or 755")
    return int(text.replace("o", ""), 8)


def _read(path: Path, name: str, mode: int | None) -> Iterator[Entry]:
    """A file, or a directory and what is in it, in the order of their names."""
    if not path.is_dir():
        yield _file(path, name, "", mode)
        return
    found = sorted(path.rglob("*"))
    if len(found) > FILES_MAX:
        raise ValueError(f"{name}: {len(found)} files; a directory of a lab has at most {FILES_MAX}; {LARGER}")
    yield Entry("", None, 0o755)
    total = 0
    for one in found:
        below = str(one.relative_to(path))
        if one.is_symlink():
            raise ValueError(f"{name}/{below}: a symbolic link; a directory of a lab has files and directories")
        entry = Entry(below, None, 0o755) if one.is_dir() else _file(one, f"{name}/{below}", below, mode)
        total += len(entry.contents or b"")
        if total > TREE_BYTES_MAX:
            raise ValueError(f"{name}: larger than {units.format_size(TREE_BYTES_MAX)}; {LARGER}")
        yield entry


def _file(path: Path, name: str, below: str, mode: int | None) -> Entry:
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            raise ValueError(f"{name}: neither a file nor a directory")
        if status.st_size > BYTES_MAX:
            size = units.format_size(status.st_size)
            raise ValueError(f"{name}: {size}; a file of a lab has at most {units.format_size(BYTES_MAX)}; {LARGER}")
        contents = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{name}: cannot be read: {error.strerror} (looked at {path})") from error
    usual = 0o755 if status.st_mode & 0o100 else 0o644
    return Entry(below, contents, usual if mode is None else mode)


def _check_template(entry: Entry) -> None:
    # Here, since it takes longer to import than most labs to read.
    import jinja2

    if entry.contents is None:
        return
    what = entry.below or "template"
    try:
        jinja2.Environment(autoescape=False).parse(entry.contents.decode())
    except UnicodeDecodeError as error:
        raise ValueError(f"{what}: not UTF-8 text, which a template is") from error
    except jinja2.TemplateSyntaxError as error:
        raise ValueError(f"{what}: line {error.lineno}: {error.message}") from error


def _read_contents(value: object, info: ValidationInfo) -> Contents:
    return parse_contents(value, (info.context or {}).get("directory", "."))


Place = Annotated[str, BeforeValidator(parse_place)]
Given = Annotated[Any, BeforeValidator(_read_contents)]
