"""`dilaton.lock`: which images the names in the labs of a directory mean, by digest.

A tag of a registry is moved when a new version comes, and so is a name in the store when it is pulled again. A lab
that is to mean the same next year has this file beside it, which `dilaton lock` writes; whatever reads the lab heeds
it. It is one for all labs of a directory, as they are put under version control together.
"""

from __future__ import annotations

import json
import os
import re
import tempfile
from collections.abc import Mapping
from pathlib import Path

NAME = "dilaton.lock"
BYTES_MAX = 1 << 20
_DIGEST = re.compile("sha256:[0-9a-f]{64}")


def read_lock(directory: str | Path) -> dict[str, str]:
    """The digests of images by their complete names; none, if the directory has no such file.

    Raises:
        ValueError: The file cannot be read, or is none that `dilaton lock` has written.
    """
    path = Path(directory) / NAME
    try:
        with path.open("rb") as file:
            raw = file.read(BYTES_MAX + 1)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise ValueError(f"{path}: cannot be read: {error.strerror}") from error
    try:
        images = json.loads(raw)["images"]
        is_good = all(_DIGEST.fullmatch(digest) for digest in images.values())
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        is_good = False
    if len(raw) > BYTES_MAX or not is_good:
        raise ValueError(f"{path}: not as dilaton lock writes it; remove it, and dilaton lock LAB writes it anew")
    return dict(images)


def write_lock(directory: str | Path, images: Mapping[str, str]) -> Path:
    """Writes the digests of images by their complete names: where. Whoever reads it sees the old file or the new one.

    Raises:
        OSError: It cannot be written; then the old file stays.
    """
    path = Path(directory) / NAME
    text = json.dumps({"images": dict(sorted(images.items()))}, indent=1) + "\n"
    with tempfile.NamedTemporaryFile("w", dir=path.parent, prefix=f".{NAME}-", delete=False) as file:
        try:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
            os.chmod(file.name, 0o644)
            os.replace(file.name, path)
        except BaseException:
            os.unlink(file.name)
            raise
    return path
