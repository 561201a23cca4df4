"""What a run record says of the machine and of the program."""

from __future__ import annotations

import functools
import os
import platform
import subprocess

import dilaton
from dilaton.host.files import ROOT
from dilaton.host.identity import Identity
from dilaton.run import here
from dilaton.run.record.model import Dilaton, Host

GIT_HOST_S_MAX = 60.0
"""Host seconds after which git counts as unable to tell the commit: it hangs, however busy the host is."""


@functools.cache
def program() -> Dilaton:
    """This program."""
    return Dilaton(version=dilaton.__version__, commit=_commit())


def host(guest_kernel: str, identity: Identity) -> Host:
    """This machine, and the release of the kernel in its guests, and which one it is."""
    return Host(
        cpu=here.cpu(),
        cores=os.cpu_count() or 1,
        memory_bytes=here.memory_bytes(),
        kernel=platform.release(),
        guest_kernel=guest_kernel,
        guest_kernel_path=identity.path,
        guest_kernel_sha256=identity.sha256,
        guest_seccomp=identity.has_seccomp,
    )


def _commit() -> str | None:
    if not (ROOT / ".git").exists():
        return None
    command = ["git", "-C", str(ROOT), "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=GIT_HOST_S_MAX)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()
