"""File systems that only a kernel reads, ext4 and erofs, as tar archives: a guest's kernel mounts them.

To mount one here takes root. A guest needs none: its root mounts a disk of its node, and tar there sees owners,
permissions, devices and attributes as they are. The guest has a copy, into which the journal of an ext4 may be
replayed.
"""

from __future__ import annotations

from pathlib import Path
from typing import BinaryIO

from dilaton.host.sparse import copy_sparse
from dilaton.images.store import ImageError, copy
from dilaton.lab.errors import LabError
from dilaton.run.control.errors import ControlError
from dilaton.run.files.outputs import read_output
from dilaton.service.images.roots import Progress

PLACE = "/run/tree"
"""Where it is mounted in the node: in memory, so that the directory can be made."""

BLOCK_BYTES = 4096
"""The size of a disk is a multiple of it,"""
DISK_BYTES_MIN = 1 << 20
"""and not less than this."""

TAR = f"tar --create --xattrs --xattrs-include=* -C {PLACE} ."
PACKS = f"mkdir {PLACE} && mount -t KIND -o ro /dev/vda {PLACE} && exec {TAR}"


def pack(kind: str, path: Path, into: BinaryIO, staging: Path, progress: Progress, bytes_max: int) -> None:
    """Writes all that is in a file system as a tar archive.

    Args:
        kind: What it is, as mount(8) calls it.
        path: The file with it.
        into: Gets the archive.
        staging: A directory for what is made meanwhile.
        progress: Is told of it.
        bytes_max: How large the archive may be.

    Raises:
        ImageError: The kernel does not take it for one, or it is larger.
        HostLacksError: This machine lacks something that a guest needs.
    """
    # Whoever imports what is no file system starts no guest.
    from dilaton.service import plain

    progress(f"reading an {kind} file system", 0)
    disk = staging / "disk"
    with path.open("rb") as source, disk.open("w+b") as target:
        copy_sparse(source.fileno(), target.fileno())
        size = max(DISK_BYTES_MIN, -(-path.stat().st_size // BLOCK_BYTES) * BLOCK_BYTES)
        target.truncate(size)
    lab = {
        "name": "unpack",
        "nodes": {"x": {"disk": {"model": "nvme", "size": f"{size}B", "image": str(disk), "mount": "none"}}},
        "run": [{"on": "x", "name": "tree", "exec": ["sh", "-c", PACKS.replace("KIND", kind)]}],
    }
    run_dir = staging / "unpack"
    try:
        with plain.start(lab, out=run_dir) as run:
            record = run.wait().record
    except (ControlError, LabError) as error:
        raise ImageError(f"an {kind} file system cannot be read in a guest: {error}") from error
    output = run_dir / "nodes" / "x" / "tree"
    if record.state != "finished":
        said = read_output(output.with_suffix(".stderr")).strip().splitlines()
        raise ImageError(f"an {kind} file system that a guest does not read: {said[-1] if said else record.reason}")
    with output.with_suffix(".stdout").open("rb") as archive:
        copy(archive, into, bytes_max)
