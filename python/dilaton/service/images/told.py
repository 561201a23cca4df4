"""What a file or directory is, as it is itself: an image of container engines, or a tree."""

from __future__ import annotations

import contextlib
import re
import tarfile
from collections.abc import Generator
from pathlib import Path
from typing import BinaryIO

from dilaton.images.archive import BoundedMember
from dilaton.images.store import ImageError
from dilaton.service.images.programs import packing, uncompressed

MARKS = {"oci-layout": "oci-archive", "manifest.json": "docker-archive"}
"""The member by which an archive tells what it is, and what skopeo calls that."""
BESIDE = re.compile(r"\.?|blobs|index\.json|repositories|(?:sha256:)?[0-9a-f]{64}(?:\.json|\.tar)?")
"""What else an archive of an image has, perhaps before that."""


def image_in(path: Path, bytes_max: int) -> str | None:
    """The image that a file or directory has in it, as skopeo has it; None: it has none.

    Args:
        path: Of it.
        bytes_max: How large the files of an archive may be together.

    Raises:
        ImageError: It is packed, and cannot be unpacked; or an image, and larger.
        HostLacksError: This machine lacks the program for it.
    """
    if path.is_dir():
        return f"oci:{path}" if (path / "oci-layout").is_file() else None
    # What is no archive has no image in it, whatever else it is.
    with contextlib.suppress(OSError, EOFError, tarfile.TarError, ValueError), path.open("rb") as file:
        with contextlib.closing(_tops(file, bytes_max)) as tops:
            found = next((top for top in tops if not BESIDE.fullmatch(top)), "")
        return f"{MARKS[found]}:{path}" if found in MARKS else None
    return None


def _tops(file: BinaryIO, bytes_max: int) -> Generator[str]:
    """What the names of members begin with; the next is looked for behind the contents of one."""
    left = bytes_max
    with (
        uncompressed(file, packing(file)) as stream,
        tarfile.open(fileobj=stream, mode="r|", tarinfo=BoundedMember) as archive,
    ):
        for member in archive:
            left -= member.size
            yield member.name.removeprefix("./").partition("/")[0]
            if left < 0:
                raise ImageError("larger than an image may be; see --max-size")
