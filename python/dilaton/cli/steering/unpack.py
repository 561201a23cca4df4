"""Unpacks what a node sends, whose root may have made it: never more than plain files below one place.

The archive is read as a stream, and no name in it is believed. Of what was asked for, there are made directories,
regular files, symbolic links that stay inside, and hard links among its files, each by names in directories that are
held open and never reached through a link (openat(2), O_NOFOLLOW). They belong to the caller; permissions are those of
the node without set-id and sticky bits and the caller's umask. All else is refused by name, and the rest goes on.

**Links that stay inside.** A target may climb by `..` at its beginning only, and no higher than the copy's root. Since
the place of a link is never reached through another, and whatever other links its target passes obey the same rule, it
ends inside; a `..` behind a name could climb from wherever that name leads.

Python's own filters (PEP 706) are not in the Python of Debian 12, and give up at the first member that they refuse.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import stat
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import BinaryIO

from dilaton.images.archive import BoundedMember

REASONS_MAX = 20
"""A hostile archive may have any number of members."""

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class RefusedError(Exception):
    """Something in an archive is not unpacked; the text says why."""


@dataclass
class Unpacked:
    """What became of an archive.

    Attributes:
        made: How many of its members are there now.
        refused: How many are not.
        reasons: Names of the first of these, each with why.
    """

    made: int = 0
    refused: int = 0
    reasons: list[str] = field(default_factory=list)

    def refuse(self, name: str, reason: RefusedError) -> None:
        """Notes that a member is not made."""
        self.refused += 1
        if len(self.reasons) < REASONS_MAX:
            self.reasons.append(f"{name}: {reason}")


def unpack(source: BinaryIO, into: str, name: str, *, preserve: bool = False) -> Unpacked:
    """Unpacks what has that name, and what is below it.

    Args:
        source: A tar archive.
        into: The directory in which it is made, which is there.
        name: Of what was asked for; `.`: everything, without a name.
        preserve: Whether to keep set-id and sticky bits, pipes, and symbolic links wherever they lead, too.

    Raises:
        OSError: There is no room, or no permission.
        tarfile.TarError: It is no archive, not whole, or one that takes too much; what came before is there.
    """
    root = os.open(into, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return _Unpacking(root, name, preserve).run(source)
    finally:
        os.close(root)


class _Unpacking:
    def __init__(self, root: int, name: str, preserve: bool) -> None:
        self._root, self._preserve = root, preserve
        self._asked = () if name == "." else (name,)
        self._umask = os.umask(0o077)
        os.umask(self._umask)
        self._files: set[tuple[str, ...]] = set()
        """Regular files that were made, to which hard links may lead."""
        self._directories: dict[tuple[str, ...], tarfile.TarInfo] = {}
        """Whose permissions and dates are set when everything is in them."""

    def run(self, source: BinaryIO) -> Unpacked:
        unpacked = Unpacked()
        with tarfile.open(fileobj=source, mode="r|", tarinfo=BoundedMember, errors="surrogateescape") as archive:
            for member in archive:
                # They would all be kept.
                archive.members = []  # type: ignore[attr-defined]
                self._check_size(member)
                try:
                    self._make(archive, member)
                    unpacked.made += 1
                except RefusedError as reason:
                    unpacked.refuse(member.name, reason)
        # The deepest first: there may be no way through them any more.
        for path, member in sorted(self._directories.items(), key=lambda item: -len(item[0])):
            with self._parent_of(path) as (parent, base):
                directory = os.open(base, DIRECTORY, dir_fd=parent)
                try:
                    self._finish(directory, member)
                finally:
                    os.close(directory)
        return unpacked

    def _check_size(self, member: tarfile.TarInfo) -> None:
        """Gives up where there cannot be room: tarfile would pass over it in steps, even after its stream has ended."""
        free = os.fstatvfs(self._root)
        free_bytes = free.f_bavail * free.f_frsize
        if not 0 <= member.size <= free_bytes:
            raise tarfile.ReadError(
                f"{member.name}: says that it has {member.size} bytes, and {free_bytes} are free here"
            )

    def _make(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        path = self._path(member.name)
        if member.isdir():
            self._make_directory(path, member)
        elif not path:
            raise RefusedError("not a directory, as it has to be where its contents are copied")
        elif member.issym():
            self._make_link(path, member)
        elif member.islnk():
            self._make_hard_link(path, member)
        elif member.isfifo() and self._preserve:
            with self._emptied(path) as (parent, base):
                os.mkfifo(base, member.mode & 0o7777, dir_fd=parent)
        elif member.isreg() and not member.issparse():
            self._make_file(path, archive, member)
        else:
            raise RefusedError(_kind(member))

    def _path(self, name: str) -> tuple[str, ...]:
        """The parts of a member's name.

        Raises:
            RefusedError: it is not of what was asked for.
        """
        parts = tuple(part for part in name.split("/") if part not in ("", "."))
        if name.startswith("/") or ".." in parts or "\0" in name:
            raise RefusedError("leads out of the copy")
        if parts[: len(self._asked)] != self._asked:
            raise RefusedError("was not asked for")
        return parts

    @contextlib.contextmanager
    def _parent_of(self, path: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """The directory in which something is, open, and its name there, which is empty for the root's own.

        Raises:
            RefusedError: one above is no directory, or a link.
        """
        here = os.dup(self._root)
        try:
            for part in path[:-1]:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(part, 0o700, dir_fd=here)
                try:
                    below = os.open(part, DIRECTORY, dir_fd=here)
                except OSError as error:
                    if error.errno not in (errno.ENOTDIR, errno.ELOOP):
                        raise
                    raise RefusedError(f"{part}, above it, is no directory") from error
                os.close(here)
                here = below
            yield here, path[-1] if path else ""
        finally:
            os.close(here)

    @contextlib.contextmanager
    def _emptied(self, path: tuple[str, ...]) -> Iterator[tuple[int, str]]:
        """As `_parent_of`, with nothing of that name there any more."""
        with self._parent_of(path) as (parent, base):
            try:
                os.unlink(base, dir_fd=parent)
            except FileNotFoundError:
                pass
            except OSError as error:
                if isinstance(error, IsADirectoryError) or _is_directory(base, parent):
                    raise RefusedError("a directory is there") from error
                raise
            yield parent, base

    def _make_directory(self, path: tuple[str, ...], member: tarfile.TarInfo) -> None:
        if path:
            with self._parent_of((*path, "")):
                pass
            self._directories[path] = member

    def _make_file(self, path: tuple[str, ...], archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        contents = archive.extractfile(member)
        assert contents is not None
        with self._emptied(path) as (parent, base):
            file = os.open(base, NEW_FILE, 0o600, dir_fd=parent)
        with os.fdopen(file, "wb") as to:
            shutil.copyfileobj(contents, to)
            to.flush()
            self._finish(file, member)
        self._files.add(path)

    def _make_link(self, path: tuple[str, ...], member: tarfile.TarInfo) -> None:
        target = member.linkname
        if not self._preserve and not stays_inside(path[len(self._asked) :], target):
            raise RefusedError(f"a link that leads out of the copy, to {target}")
        with self._emptied(path) as (parent, base):
            os.symlink(target, base, dir_fd=parent)

    def _make_hard_link(self, path: tuple[str, ...], member: tarfile.TarInfo) -> None:
        original = self._path(member.linkname)
        if original not in self._files:
            raise RefusedError(f"a hard link to {member.linkname}, which is no file of the copy")
        with self._parent_of(original) as (source, name), self._emptied(path) as (parent, base):
            os.link(name, base, src_dir_fd=source, dst_dir_fd=parent, follow_symlinks=False)
        self._files.add(path)

    def _finish(self, file: int, member: tarfile.TarInfo) -> None:
        """Sets permissions and date."""
        os.fchmod(file, member.mode & 0o7777 if self._preserve else member.mode & 0o777 & ~self._umask)
        with contextlib.suppress(OverflowError, ValueError):
            os.utime(file, (member.mtime, member.mtime))


def stays_inside(place: tuple[str, ...], target: str) -> bool:
    """Whether a symbolic link stays inside the copy.

    Args:
        place: Where it is below the copy's root; nothing where it is the copy.
        target: What it says.
    """
    parts = [part for part in target.split("/") if part not in ("", ".")]
    climbs = next((number for number, part in enumerate(parts) if part != ".."), len(parts))
    return bool(target) and not target.startswith("/") and ".." not in parts[climbs:] and climbs < len(place)


def _is_directory(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode)


def _kind(member: tarfile.TarInfo) -> str:
    """What is refused whatever it says."""
    if member.isblk() or member.ischr():
        return "a device node"
    if member.isfifo():
        return "a named pipe"
    return "a sparse file" if member.issparse() else "neither a file nor a directory nor a link"
