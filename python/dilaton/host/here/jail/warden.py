"""The process between this one and a jail, which ends each with the other (`crates/warden/src/main.rs`)."""

from __future__ import annotations

from pathlib import Path

from dilaton.host import files

DEPTH = 1
"""Generations from the warden's process to the outer one of what it keeps."""


def command(life_fd: int, group: Path | None) -> list[str]:
    """The command line of a warden, to be followed by the command that it is to keep.

    Args:
        life_fd: A pipe's end to read, whose other end this process holds, and nobody else.
        group: The directory of the control group that the command is started in, and that goes with it.

    Raises:
        HostLacksError: It is not built.
    """
    return [str(files.built(files.WARDEN)), str(life_fd), str(group or "-")]
