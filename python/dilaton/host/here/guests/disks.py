"""The block devices of a guest on this machine: disks, whose files keep their contents, the trees of images, which are
only read, and what describes both to the clock.

A disk without an image has a file without a name in the run directory, which takes only the room of what is written and
goes with the guest. A guest gets its files opened, so that it reaches them from its jail and nothing beside them; the
kernel opens them anew by `/proc/self/fd/N`.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from dilaton.host import files
from dilaton.host.errors import GuestError
from dilaton.host.sparse import copy_sparse

if TYPE_CHECKING:
    from dilaton.plan import model as plan

VARIABLE = "DILATON_DISKS"
"""The environment variable by which a guest gets them: for each its words, ended by a semicolon."""

FD_MIN = 4096
"""The number of the first disk's descriptor in the first guest of a run. It is on the kernel's command line (see
`kernel.LINE_FD_MIN`)."""

DISKS_MAX = 16

MAGIC_OFFSET, MAGIC = 1080, b"\x53\xef"
"""The magic number of ext2, ext3 and ext4, and where it is."""

BLANK_BYTES = 1 << 16
"""An image whose first bytes are 0 so far has nothing in it."""

JOURNAL_MIB = 64
"""The journal of file systems that are made here, on disks large enough."""


AT_ONCE = "model=fixed read_latency_ns=0 write_latency_ns=0 requests_per_s=0 bytes_per_s=0"
"""How long it takes to read the tree of an image: like the machine's own files, whatever time the CPU takes."""


@dataclass(frozen=True)
class Disks:
    """What the kernel of a guest is given for its disks; without any, nothing.

    Attributes:
        arguments: of its command line.
        environment: describes them to the clock.
        fds: their files, to be inherited.
        files: the files of disks of nodes, by node.
    """

    arguments: list[str] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    fds: tuple[int, ...] = ()
    files: dict[str, int] = field(default_factory=dict)


@contextlib.contextmanager
def opened(planned: plan.Plan, number: int, run_dir: Path | None) -> Iterator[Disks]:
    """The disks of the guest of that number, open for as long as the context is.

    Raises:
        GuestError: An image cannot be used, or there is no room for a file system.
        HostLacksError: This machine cannot make file systems.
    """
    name = planned.guests[number].name
    nodes = [node for node in planned.nodes if node.guest == name and node.disk is not None]
    trees = {
        node.image.device: node.image for node in planned.nodes if node.guest == name and node.image.kind == "stored"
    }
    with contextlib.ExitStack() as stack:
        arguments, words, fds, files_of = [], [], [], dict[str, int]()
        for node in nodes:
            disk = node.disk
            assert disk is not None, "only nodes with one are here"
            fd = _open(disk, node.name, run_dir)
            stack.callback(os.close, fd)
            copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FD_MIN + number * DISKS_MAX + disk.number)
            stack.callback(os.close, copy)
            files_of[node.name] = copy
            _prepare(disk, node.name, copy, planned.seed)
            arguments.append(f"ubd{disk.number}=/proc/self/fd/{copy}")
            parameters = dict(disk.parameters)
            if disk.volatile_cache is not None:
                parameters["volatile_bytes"] = disk.volatile_cache.bytes
                if disk.volatile_cache.torn_seed is not None:
                    parameters["torn_seed"] = disk.volatile_cache.torn_seed
            described = " ".join(f"{name}={value}" for name, value in parameters.items())
            words.append(f"image={copy} model={disk.model} {described};")
            fds.append(copy)
        for device, image in trees.items():
            fd = _open_tree(image)
            stack.callback(os.close, fd)
            copy = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, FD_MIN + number * DISKS_MAX + device)
            stack.callback(os.close, copy)
            arguments.append(f"ubd{device}r=/proc/self/fd/{copy}")
            words.append(f"image={copy} {AT_ONCE};")
            fds.append(copy)
        yield Disks(arguments, {VARIABLE: "".join(words)} if words else {}, tuple(fds), files_of)


def _open(disk: plan.Disk, node: str, run_dir: Path | None) -> int:
    """The file of a disk, of which nobody else writes an image."""
    if disk.image is None:
        with tempfile.TemporaryFile(dir=run_dir) as file:
            os.truncate(file.fileno(), disk.size_bytes)
            if disk.contents is not None:
                _fill(file.fileno(), disk.contents, node)
            return os.dup(file.fileno())
    try:
        fd = os.open(disk.image, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise GuestError(f"the disk of {node}: {disk.image} cannot be opened: {error.strerror}") from error
    try:
        # Kept for as long as anybody has it open, the kernel of the guest included.
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(fd).st_size < disk.size_bytes:
            raise GuestError(f"the disk of {node}: {disk.image} has become smaller than {disk.size_bytes} bytes")
    except BlockingIOError:
        os.close(fd)
        raise GuestError(f"the disk of {node}: {disk.image} is in use by another run") from None
    except BaseException:
        os.close(fd)
        raise
    return fd


def _fill(fd: int, contents: str, node: str) -> None:
    """Copies what a disk has in it at first."""
    try:
        with open(contents, "rb") as source:
            copy_sparse(source.fileno(), fd)
    except OSError as error:
        raise GuestError(f"the disk of {node}: {contents} cannot be copied: {error.strerror}") from error


def _open_tree(image: plan.StoredImage) -> int:
    """The file with an image's tree, to be read."""
    try:
        return os.open(image.file, os.O_RDONLY | os.O_CLOEXEC)
    except OSError as error:
        raise GuestError(f"the image {image.name}: {image.file} cannot be opened: {error.strerror}") from error


def _prepare(disk: plan.Disk, node: str, fd: int, seed: int) -> None:
    """Makes a file system on a disk that is to be mounted and has nothing in it.

    The same seed makes the same one, so that runs can be repeated.
    """
    if disk.mount is None or os.pread(fd, len(MAGIC), MAGIC_OFFSET) == MAGIC:
        return
    if os.pread(fd, BLANK_BYTES, 0).strip(b"\0"):
        raise GuestError(f"the disk of {node}: {disk.image} has something else in it than ext4; write mount: none")
    identity = uuid.uuid5(uuid.NAMESPACE_OID, f"{seed} {node}")
    extended = f"hash_seed={identity},lazy_itable_init=1,lazy_journal_init=1,nodiscard"
    argv = [str(files.program("mke2fs", "e2fsprogs")), "-q", "-F", "-t", "ext4", "-m", "0", "-U", str(identity)]
    argv += ["-E", extended, *(["-J", f"size={JOURNAL_MIB}"] if disk.size_bytes >= 1 << 30 else [])]
    argv += [f"/proc/self/fd/{fd}", f"{disk.size_bytes // 1024}k"]
    environment = os.environ | {"E2FSPROGS_FAKE_TIME": "1", "MKE2FS_SYNC": "0"}
    done = subprocess.run(argv, pass_fds=[fd], env=environment, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"mke2fs ended with status {done.returncode}"]
        raise GuestError(f"the disk of {node}: no file system can be made on it: {lines[-1]}")
