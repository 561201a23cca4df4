"""Plain trees: a directory, a tar archive or a file system becomes an image of one layer, as all in the store are."""

from __future__ import annotations

import os
import tarfile
from pathlib import Path
from typing import Any, BinaryIO

from dilaton.host import files
from dilaton.images.archive import attributes_of
from dilaton.images.store import ImageError, Store, copy
from dilaton.service.images.mounted import pack
from dilaton.service.images.programs import begin_of, output_of, packing, uncompressed
from dilaton.service.images.roots import ARCHITECTURE, Progress

LAYER = "application/vnd.oci.image.layer.v1.tar"
SQUASHFS_MAGIC = b"hsqs"
DETECTED_BYTES = 2048
FILE_SYSTEMS = {"ext4": (1080, b"\x53\xef"), "erofs": (1024, b"\xe2\xe1\xf5\xe0")}
"""Where a superblock has which bytes, of file systems that begin with nothing."""
HELP = (
    "an image comes from an archive or directory of container engines, a directory, or a file with a tar archive or a "
    "squashfs, ext4 or erofs"
)


def wrap(store: Store, path: Path, staging: Path, progress: Progress, bytes_max: int) -> str:
    """Makes a plain tree an image of one layer: the digest of its manifest."""
    layer = staging / "layer"
    with layer.open("wb") as file:
        write_tree(path, file, staging, progress, bytes_max)
    return of_layer(store, layer, staging, {})


def write_tree(path: Path, into: BinaryIO, staging: Path, progress: Progress, bytes_max: int) -> None:
    """Writes a plain tree as a tar archive.

    Raises:
        ImageError: There is none at that path, or it is larger.
        HostLacksError: This machine lacks what it takes to read it.
    """
    progress("reading", 0)
    if path.is_dir():
        _pack(path, into)
    elif path.is_file():
        _plain(path, into, staging, progress, bytes_max)
    else:
        raise ImageError(f"there is no such file or directory; {HELP}")


def of_layer(store: Store, layer: Path, staging: Path, settings: dict[str, object]) -> str:
    """Makes a file with a layer an image: the digest of its manifest."""
    size = layer.stat().st_size
    digest = store.keep(layer)
    config: dict[str, Any] = {
        "architecture": ARCHITECTURE,
        "os": "linux",
        "rootfs": {"type": "layers", "diff_ids": [digest]},
    }
    config |= {"config": settings} if settings else {}
    config_digest, config_size = store.keep_document(staging, config)
    manifest = {
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {
            "mediaType": "application/vnd.oci.image.config.v1+json",
            "digest": config_digest,
            "size": config_size,
        },
        "layers": [{"mediaType": LAYER, "digest": digest, "size": size}],
    }
    return store.keep_document(staging, manifest)[0]


def _pack(directory: Path, into: BinaryIO) -> None:
    """Packs a directory; what belongs to the caller becomes root's, as it will be used by root of a node."""

    def add(path: Path, name: str) -> None:
        member = archive.gettarinfo(path, name)
        if member.uid == os.getuid():
            member.uid = 0
        if member.gid == os.getgid():
            member.gid = 0
        member.uname = member.gname = ""
        member.pax_headers = attributes_of(path)
        if member.isreg():
            with path.open("rb") as file:
                archive.addfile(member, file)
        else:
            archive.addfile(member)

    with tarfile.open(fileobj=into, mode="w", format=tarfile.PAX_FORMAT, errors="surrogateescape") as archive:
        add(directory, ".")
        for path in sorted(directory.rglob("*")):
            if path.is_symlink() or not path.is_socket():
                add(path, str(path.relative_to(directory)))


def _plain(path: Path, into: BinaryIO, staging: Path, progress: Progress, bytes_max: int) -> None:
    """Copies the tar archive in a file, whatever it is packed in, or that of the file system in it."""
    with path.open("rb") as file:
        if begin_of(file).startswith(SQUASHFS_MAGIC):
            with output_of([str(files.program("sqfs2tar", "squashfs-tools-ng")), str(path)], None) as stream:
                copy(stream, into, bytes_max)
            return
        begin = file.read(DETECTED_BYTES)
        file.seek(0)
        for kind, (place, magic) in FILE_SYSTEMS.items():
            if begin[place:].startswith(magic):
                pack(kind, path, into, staging, progress, bytes_max)
                return
        # As an archive of no files does.
        if not begin.strip(b"\0"):
            raise ImageError(f"there is nothing in it; {HELP}")
        with uncompressed(file, packing(file)) as stream:
            copy(stream, into, bytes_max)
