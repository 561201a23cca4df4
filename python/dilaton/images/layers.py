"""The layers of an image as one tree, which is never unpacked.

A layer is a tar archive of what it adds to those below it, with **whiteouts** for what it takes away: `.wh.NAME`
removes NAME, `.wh..wh..opq` all that lower layers have in its directory (OCI image specification, "Image Layer
Filesystem Changeset"). To unpack them one over the other takes root, for owners and devices, and care with every name.
Here the headers alone are read, into a tree of names in memory; then one archive is written of what is left, each
file's data straight from its layer. So nothing that an image says is ever a path, an owner or a device of this machine,
and an ordinary user's image has all three as they should be.

A name in a layer may pass a symbolic link of a layer below, as in `/lib/x` where `/lib` leads to `/usr/lib`. It is
followed inside the tree. A hard link is one more name of an **inode**; when its first name goes, the inode stays.
"""

from __future__ import annotations

import copy
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO, BinaryIO

from dilaton.images.archive import ATTRIBUTE, BoundedMember

ENTRIES_MAX = 1_000_000
"""Each takes about a KiB of memory."""
DEPTH_MAX = 256
LINKS_MAX = 40
"""Symbolic links on the way to a name, as in Linux."""
ID_MAX = 2**32 - 2
WHITEOUT = ".wh."
OPAQUE = ".wh..wh..opq"
ATTRIBUTES = (f"{ATTRIBUTE}user.", f"{ATTRIBUTE}security.")
"""Those that are kept, file capabilities among them. Others mean something to the kernel that mounts the tree, such as
`trusted.overlay.`, which is not the image's to say."""


class LayerError(Exception):
    """A layer cannot be what it says; the text says why."""


@dataclass
class _Inode:
    layer: int
    member: tarfile.TarInfo
    written: str | None = None
    """Its first name in what is written."""


@dataclass
class _Directory:
    layer: int
    member: tarfile.TarInfo | None
    """None: no layer says anything of it."""
    children: dict[str, _Directory | _Inode] = field(default_factory=dict)


class Tree:
    """What the layers added so far make together."""

    def __init__(self, bytes_max: int) -> None:
        """An empty one, which takes files of so many bytes together."""
        self._root = _Directory(0, None)
        self._archives: list[tarfile.TarFile] = []
        self._bytes_left, self._entries_left = bytes_max, ENTRIES_MAX

    def add(self, layer: BinaryIO) -> None:
        """Lays one over those before it. The file is read again when the tree is written.

        Raises:
            LayerError: It is no tar archive, or cannot be part of a tree.
        """
        number = len(self._archives)
        try:
            # It is read again, and the file is the caller's.
            archive = tarfile.open(  # noqa: SIM115
                fileobj=layer, mode="r:", tarinfo=BoundedMember, errors="surrogateescape"
            )
            self._archives.append(archive)
            for member in archive:
                self._count(member)
                self._apply(member, number)
        except (tarfile.TarError, ValueError, EOFError) as error:
            raise LayerError(f"layer {number + 1}: not a whole tar archive: {error}") from error

    def write(self, out: IO[bytes]) -> None:
        """Writes the whole tree as one tar archive."""
        with tarfile.open(fileobj=out, mode="w|", format=tarfile.PAX_FORMAT, errors="surrogateescape") as archive:
            for path, found in self._walk():
                if isinstance(found, _Inode):
                    self._write_inode(archive, path, found)
                else:
                    archive.addfile(_entry(found.member or _plain_directory(), path))

    def _write_inode(self, archive: tarfile.TarFile, path: str, inode: _Inode) -> None:
        entry = _entry(inode.member, path)
        if inode.written is not None:
            entry.type, entry.linkname, entry.size = tarfile.LNKTYPE, inode.written, 0
            archive.addfile(entry)
            return
        inode.written = path
        archive.addfile(entry, self._archives[inode.layer].extractfile(inode.member) if entry.isreg() else None)

    def _walk(self) -> Iterator[tuple[str, _Directory | _Inode]]:
        ahead: list[tuple[str, _Directory | _Inode]] = [("", self._root)]
        while ahead:
            path, found = ahead.pop()
            yield path or ".", found
            if isinstance(found, _Directory):
                above = f"{path}/" if path else ""
                ahead.extend((f"{above}{name}", child) for name, child in reversed(found.children.items()))

    def _count(self, member: tarfile.TarInfo) -> None:
        self._entries_left -= 1
        self._bytes_left -= member.size if member.isreg() else 0
        if self._entries_left < 0:
            raise LayerError(f"more than {ENTRIES_MAX} files")
        if self._bytes_left < 0:
            raise LayerError(
                f"{_shown(member.name)}: with this the files are larger than an image may be; see --max-size"
            )

    def _apply(self, member: tarfile.TarInfo, layer: int) -> None:
        *above, name = _parts(member.name) or [""]
        if not 0 <= member.uid <= ID_MAX or not 0 <= member.gid <= ID_MAX:
            raise LayerError(f"{_shown(member.name)}: no user has the number {member.uid}, or no group {member.gid}")
        directory = self._directory(above, layer, member.name)
        if name == OPAQUE:
            _remove_lower(directory, layer)
        elif name.startswith(WHITEOUT):
            _remove(directory, name.removeprefix(WHITEOUT), layer)
        elif member.isdir():
            old = self._root if not name else directory.children.get(name)
            if isinstance(old, _Directory):
                old.layer, old.member = layer, member
            else:
                directory.children[name] = _Directory(layer, member)
        elif not name:
            raise LayerError(f"{_shown(member.name)}: the root of a tree is a directory")
        elif member.islnk():
            directory.children[name] = self._linked(member)
        elif member.isreg() or member.issym() or member.ischr() or member.isblk() or member.isfifo():
            directory.children[name] = _Inode(layer, member)
        else:
            raise LayerError(f"{_shown(member.name)}: not a file, directory, link, device or pipe")

    def _linked(self, member: tarfile.TarInfo) -> _Inode:
        """What a hard link is another name of."""
        *above, name = _parts(member.linkname) or [""]
        found = self._directory(above, None, member.name).children.get(name)
        if not isinstance(found, _Inode):
            raise LayerError(
                f"{_shown(member.name)}: a hard link to {_shown(member.linkname)}, which is no file of the image"
            )
        return found

    def _directory(self, parts: list[str], layer: int | None, name: str) -> _Directory:
        """The directory of these names, symbolic links followed; one that is missing is made in `layer`, if given."""
        way, ahead, links = [self._root], parts[::-1], 0
        while ahead:
            part = ahead.pop()
            if part == "..":
                way = way[:-1] or way
                continue
            child = way[-1].children.get(part)
            if child is None and layer is not None:
                child = way[-1].children[part] = _Directory(layer, None)
            if isinstance(child, _Directory):
                way.append(child)
            elif isinstance(child, _Inode) and child.member.issym() and links < LINKS_MAX:
                links += 1
                target = child.member.linkname
                way = way[:1] if target.startswith("/") else way
                ahead += [word for word in target.split("/") if word not in ("", ".")][::-1]
            else:
                raise LayerError(f"{_shown(name)}: {part} on the way there is no directory")
            if len(way) > DEPTH_MAX:
                raise LayerError(f"{_shown(name)}: below more than {DEPTH_MAX} directories")
        return way[-1]


def _parts(name: str) -> list[str]:
    """The names in a path of a layer, which starts at the root of the tree however it is written."""
    parts = [part for part in name.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise LayerError(f"{_shown(name)}: leads out of the image by ..")
    return parts


def _remove(directory: _Directory, name: str, layer: int) -> None:
    """Takes away what lower layers have by that name."""
    found = directory.children.get(name)
    if isinstance(found, _Directory) and _has(found, layer):
        _remove_lower(found, layer)
    elif found is not None and not _has(found, layer):
        del directory.children[name]


def _remove_lower(directory: _Directory, layer: int) -> None:
    """Takes away all that lower layers have in a directory; what this layer has put there stays."""
    ahead = [directory]
    while ahead:
        now = ahead.pop()
        now.children = {name: child for name, child in now.children.items() if _has(child, layer)}
        ahead += [child for child in now.children.values() if isinstance(child, _Directory)]


def _has(found: _Directory | _Inode, layer: int) -> bool:
    """Whether a layer has put something there."""
    ahead = [found]
    while ahead:
        now = ahead.pop()
        if now.layer == layer:
            return True
        if isinstance(now, _Directory):
            ahead += now.children.values()
    return False


def _entry(member: tarfile.TarInfo, path: str) -> tarfile.TarInfo:
    """A member under another name, without what a header says a second time, or to this machine."""
    entry = copy.copy(member)
    entry.name, entry.uname, entry.gname = path, "", ""
    entry.mtime = max(0, min(int(entry.mtime), ID_MAX))
    entry.mode &= 0o7777
    kept = {name: value for name, value in member.pax_headers.items() if name.startswith(ATTRIBUTES)}
    entry.pax_headers = kept
    return entry


def _plain_directory() -> tarfile.TarInfo:
    entry = tarfile.TarInfo(".")
    entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    return entry


def _shown(name: str) -> str:
    """A name that is not too long for a message."""
    return name if len(name) <= 200 else f"{name[:200]}…"
