"""Where templates are kept: trees of files by their digest, and names that lead to them.

```text
~/.local/share/dilaton/templates/     ($XDG_DATA_HOME)
├── names/NAME      a link to a tree
├── trees/DIGEST/   a lab and its files, which do not change any more
├── staging/        what is being copied
└── lock            exclusive for who changes something, shared by those who look for a tree
```

A tree is copied into `staging`, made durable and renamed; then a link to it takes the place of the name's by rename(2).
So a name leads to the old template or the new one, whole, whenever a process is killed. What is left in `staging`, or
has no name any more and is not being read, goes when something is changed next. Saved labs are kept in the same way
(`service/saved/`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from dilaton.images.store import default_directory

BYTES_MAX = 256 << 20
FILES_MAX = 10_000
LEFT_OUT = frozenset({"runs", "sweeps"})
"""What runs of a lab have left beside it; hidden files are left out too."""
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}")
DIGEST = re.compile(r"[0-9a-f]{64}")
"""What names a tree itself, and is no name."""


class TemplateError(Exception):
    """A template is not there, or cannot be kept; the text says why."""


class Templates:
    """Those in a directory, which need not be there before one is saved."""

    what, place, listing = "template", "templates", "dilaton template list"
    """What messages call one; where they are in the user's data directory; what shows all."""

    def __init__(self, directory: Path | None = None) -> None:
        self.directory = directory or default_directory().parent / self.place

    def digest_of(self, tree: Path) -> str:
        """The digest of a tree, by which it is known."""
        return digest_of(tree)

    def names(self) -> dict[str, str]:
        """The digests of all templates by their names."""
        links = (self.directory / "names").glob("*")
        return {link.name: os.path.basename(os.readlink(link)) for link in sorted(links) if link.is_symlink()}

    @contextlib.contextmanager
    def reading(self, name: str) -> Iterator[Path | None]:
        """The tree of a template, which stays for as long as it is read; None if there is none of that name.

        Args:
            name: Of the template, or the digest of its tree: who knows that need not be able to read the names.

        Raises:
            TemplateError: It is no longer what was saved.
        """
        if DIGEST.fullmatch(name):
            with self._reading(name) as found:
                yield found
            return
        if name not in self.names():
            yield None
            return
        with contextlib.ExitStack() as stack:
            with self._locked(fcntl.LOCK_SH):
                # Before the lock it may have got another tree, and the old one have gone.
                digest = self.names().get(name)
                tree = None if digest is None else self.directory / "trees" / digest
                if tree is not None:
                    self._check(name, tree)
                    stack.enter_context(_kept(tree))
            yield tree

    @contextlib.contextmanager
    def _reading(self, digest: str) -> Iterator[Path | None]:
        tree = self.directory / "trees" / digest
        if not tree.is_dir():
            yield None
            return
        with _kept(tree):
            # One of which a part has been removed before it was kept is not what was saved.
            self._check(digest, tree)
            yield tree

    def _check(self, name: str, tree: Path) -> None:
        if not tree.is_dir() or self.digest_of(tree) != tree.name:
            raise TemplateError(f"{name}: damaged: {tree} is not what was saved; save it again")

    def save(self, name: str, fill: Callable[[Path], None]) -> str:
        """Keeps a template under a name, which another may have had: its digest.

        Args:
            name: Letters, digits, dots, underscores and hyphens.
            fill: Copies its files into a directory.

        Raises:
            TemplateError: It cannot have that name.
        """
        if not NAME.fullmatch(name):
            raise TemplateError(f"{name[:80]}: a name has letters, digits, dots, underscores and hyphens, at most 63")
        for place in ("names", "trees", "staging"):
            (self.directory / place).mkdir(parents=True, exist_ok=True, mode=0o700)
        with self._locked(fcntl.LOCK_EX):
            self._tidy()
            staging = Path(tempfile.mkdtemp(dir=self.directory / "staging"))
            try:
                made = staging / "tree"
                made.mkdir()
                fill(made)
                digest = self.digest_of(made)
                tree = self.directory / "trees" / digest
                if not tree.exists():
                    _make_durable(made)
                    made.rename(tree)
                    _sync(tree.parent)
                link = staging / "link"
                link.symlink_to(os.path.join("..", "trees", digest))
                link.rename(self.directory / "names" / name)
                _sync(self.directory / "names")
            finally:
                shutil.rmtree(staging, ignore_errors=True)
            self._tidy()
        return digest

    def remove(self, name: str) -> None:
        """Takes a template away.

        Raises:
            TemplateError: There is none of that name.
        """
        if name not in self.names():
            raise TemplateError(f"{name}: no {self.what} that was saved; {self.listing} shows all")
        with self._locked(fcntl.LOCK_EX):
            (self.directory / "names" / name).unlink(missing_ok=True)
            self._tidy()

    def _tidy(self) -> None:
        """Removes what no name leads to. Only under the lock."""
        used = set(self.names().values())
        unused = [tree for tree in (self.directory / "trees").glob("*") if tree.name not in used]
        for path in [*(tree for tree in unused if not _is_read(tree)), *(self.directory / "staging").glob("*")]:
            shutil.rmtree(path)

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        with (self.directory / "lock").open("a") as file:
            fcntl.flock(file, how)
            yield


@contextlib.contextmanager
def _kept(tree: Path) -> Iterator[None]:
    """Keeps a tree from being removed, until the end of the context or of the process."""
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)


def _is_read(tree: Path) -> bool:
    """Whether somebody reads a tree that has no name any more."""
    descriptor = os.open(tree, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def copy_tree(source: Path, target: Path, without: Collection[Path] = ()) -> None:
    """Copies what a lab has beside it, but for hidden files, what runs have left, and `without`.

    Raises:
        TemplateError: It is too large, or has something that is no file, or a link that leads out.
        OSError: Something cannot be read or written.
    """
    room, top = [FILES_MAX, BYTES_MAX], source.resolve()
    left_out = {path.resolve() for path in without}

    def copy(directory: Path, into: Path) -> None:
        for path in sorted(directory.iterdir()):
            if (
                path.name.startswith(".")
                or (directory == source and path.name in LEFT_OUT)
                or (not path.is_symlink() and path.resolve() in left_out)
            ):
                continue
            room[0] -= 1
            copied = into / path.name
            if path.is_symlink():
                if not _is_inside(path, top):
                    raise TemplateError(f"{path}: a link that leads out of what is saved of {source}")
                copied.symlink_to(os.readlink(path))
            elif path.is_dir():
                copied.mkdir()
                copy(path, copied)
            elif path.is_file():
                room[1] -= path.stat().st_size
                if min(room) >= 0:
                    shutil.copyfile(path, copied)
                    copied.chmod(0o755 if os.access(path, os.X_OK) else 0o644)
            else:
                raise TemplateError(f"{path}: not a file, directory or link")
            if min(room) < 0:
                raise TemplateError(f"{source}: a template has at most {FILES_MAX} files, of {BYTES_MAX >> 20} MiB")

    copy(source, target)


def _is_inside(link: Path, top: Path) -> bool:
    """Whether all of the way that a link goes is copied: one that leaves and returns would lead nowhere elsewhere."""
    at = os.path.realpath(link.parent)
    for part in Path(os.readlink(link)).parts:
        at = os.path.realpath(os.path.join(at, part))
        if not Path(at).is_relative_to(top):
            return False
        inside = Path(at).relative_to(top).parts
        if (inside and inside[0] in LEFT_OUT) or any(name.startswith(".") for name in inside):
            return False
    return True


def sum_of(path: Path) -> str:
    """SHA-256 of a file's contents, in hexadecimal digits."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def digest_of(tree: Path, sum_of: Callable[[Path], str] = sum_of) -> str:
    """SHA-256 of the names, kinds and contents of all files of a tree, in hexadecimal digits."""
    entries = []
    for path in sorted(tree.rglob("*")):
        if path.is_symlink():
            kind, said = "link", os.readlink(path)
        elif path.is_dir():
            kind, said = "directory", ""
        else:
            kind = "program" if path.stat().st_mode & 0o100 else "file"
            said = sum_of(path)
        entries.append([str(path.relative_to(tree)), kind, said])
    return hashlib.sha256(json.dumps(entries).encode(errors="surrogateescape")).hexdigest()


def _make_durable(tree: Path) -> None:
    for path in [tree, *tree.rglob("*")]:
        if not path.is_symlink():
            _sync(path)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
