"""The kernel of a run, on a machine that may not have it: carried there once, and kept by its digest, as images are.

What this machine's user has built is used where it is. A kernel that came is a directory as those that are built here
(`host/here/uml/kernels.py`), and has its name only when it is whole. Guests of this process run it from then on,
whatever this machine's user has chosen.
"""

from __future__ import annotations

import os
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from dilaton.cluster.files import archive, carried
from dilaton.host.errors import GuestError
from dilaton.host.here.uml import kernels

SUFFIX = ".kernel"


def given() -> kernels.Kernel | None:
    """The kernel that guests are to run, chosen where a run is conducted; None: Debian's, which is not carried.

    Raises:
        HostLacksError: It is not there.
    """
    chosen = kernels.chosen()
    return None if chosen.built is None else chosen


def use(sha256: str, *, has_seccomp: bool) -> bool:
    """Has guests of this process run the kernel with that digest; False: it is not on this machine.

    Raises:
        HostLacksError: It cannot do without tracing its programs on this machine, and is to.
    """
    for directory in _directories():
        if kernels.at(directory).identity().sha256 == sha256:
            carried.touch(directory)
            os.environ[kernels.VARIABLE] = str(directory) + kernels.SECCOMP * has_seccomp
            kernels.chosen()
            return True
    return False


def _directories() -> Iterator[Path]:
    yield from (kernel.program.parent for kernel in kernels.own())
    yield from carried.parent().glob(f"*{SUFFIX}")


def pack(kernel: kernels.Kernel, into: IO[bytes]) -> None:
    """Writes an archive of a kernel, and goes back to its begin."""

    def write(part: bytes) -> None:
        into.write(part)

    archive.pack(sorted(kernel.program.parent.iterdir()), write)
    into.seek(0)


def keep(contents: Path, sha256: str, within: Path) -> None:
    """Has the kernel with that digest on this machine, out of an archive.

    Args:
        contents: The archive.
        sha256: The digest of the kernel.
        within: A directory of this run's, on the file system of all that is carried.

    Raises:
        GuestError: It is another one, or no kernel.
    """
    directory = within / "kernel"
    directory.mkdir()
    try:
        with contents.open("rb") as file:
            archive.unpack(file, directory)
        kernel = kernels.at(directory)
        if {sha256} != {kernels.sha256(kernel.program), kernel.identity().sha256}:
            raise GuestError(f"what came is not the kernel {sha256[:12]}")
        # Another run may have brought it meanwhile.
        if not (place := carried.place_of(sha256, SUFFIX)).exists():
            directory.rename(place)
    except (OSError, ValueError, TypeError, KeyError, tarfile.TarError) as error:
        raise GuestError(f"the kernel {sha256[:12]} cannot be kept: {error}") from error
    finally:
        shutil.rmtree(directory, ignore_errors=True)
