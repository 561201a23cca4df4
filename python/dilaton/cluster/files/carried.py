"""What was carried to this machine, each once: trees of images, in files that are named by the digest of their image.

Nodes are given the tree of an image, a file in the store of whoever conducts their run. A machine that has it under the
same path, as in a directory that all share, uses that. Another one gets it from the conductor before its guests boot,
and has it from then on. It is written among what the agent keeps for its run, compared with the digest of its bytes,
and only then named, so that what has a name is whole. What no run has used for a month goes when something else comes.
Kernels are beside them (`kernel.py`).
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import time
from collections.abc import Iterable
from pathlib import Path

from dilaton.cluster.files import place
from dilaton.host.errors import GuestError
from dilaton.plan.model import Plan, StoredImage

UNUSED_HOST_S_MAX = 30 * 24 * 3600.0


def parent() -> Path:
    """Where they are."""
    return place.parent().with_name("carried")


def images(planned: Plan, guests: Iterable[str]) -> dict[str, StoredImage]:
    """The images of the nodes of these guests, by digest."""
    wanted = set(guests)
    return {
        node.image.digest: node.image
        for node in planned.nodes
        if node.guest in wanted and isinstance(node.image, StoredImage)
    }


def found(image: StoredImage) -> Path | None:
    """The tree of an image on this machine; None: it has to be carried."""
    if Path(image.file).is_file():
        return Path(image.file)
    with contextlib.suppress(FileNotFoundError):
        touch(_file(image.digest))
        return _file(image.digest)
    return None


def touch(path: Path) -> None:
    """Notes that a run uses something that was carried here."""
    os.utime(path)


def placed(planned: Plan) -> Plan:
    """A plan with the files of this machine; what is nowhere keeps its own, and is missed by whoever boots it."""
    nodes = []
    for node in planned.nodes:
        if isinstance(node.image, StoredImage) and (file := found(node.image)) is not None:
            node = node.model_copy(update={"image": node.image.model_copy(update={"file": str(file)})})
        nodes.append(node)
    return planned.model_copy(update={"nodes": nodes})


class Arriving:
    """Something on its way here."""

    def __init__(self, file: Path) -> None:
        """It is written to that file, on the file system of all others, until it is whole."""
        self._path, self._file = file, file.open("wb")
        self._sum = hashlib.sha256()

    def add(self, part: bytes) -> None:
        """The next part of it, which is on the disk then: nobody waits for all of it at the end."""
        self._sum.update(part)
        self._file.write(part)
        self._file.flush()
        os.fdatasync(self._file.fileno())

    def finish(self, digest: str, sha256: str) -> None:
        """It was all: the tree of the image with that digest, whose bytes have the other one.

        Raises:
            GuestError: They have another.
        """
        self.whole(digest, sha256).rename(_file(digest))

    def whole(self, what: str, sha256: str) -> Path:
        """It was all, and its bytes have that digest; the file, for which there is a place now.

        Raises:
            GuestError: They have another.
        """
        self._file.close()
        if self._sum.hexdigest() != sha256:
            self._path.unlink()
            raise GuestError(f"what came of {what} is not what was sent")
        parent().mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_unused()
        return self._path

    def close(self) -> None:
        """Nothing more comes."""
        self._file.close()


def place_of(digits: str, suffix: str) -> Path:
    """Where what has a SHA-256 of these digits is, once it is here.

    Raises:
        GuestError: That is none.
    """
    if len(digits) != 64 or set(digits) - set("0123456789abcdef"):
        raise GuestError(f"{digits[:100]}: not a digest")
    return parent() / f"{digits}{suffix}"


def _file(digest: str) -> Path:
    algorithm, _, digits = digest.partition(":")
    if algorithm != "sha256":
        raise GuestError(f"{digest[:100]}: not the digest of an image")
    return place_of(digits, ".squashfs")


def _remove_unused() -> None:
    for path in parent().iterdir():
        # Another agent may do the same at this moment.
        with contextlib.suppress(FileNotFoundError):
            if time.time() - path.stat().st_mtime <= UNUSED_HOST_S_MAX:
                continue
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
