"""The jail: what a guest kernel can see and touch of this machine.

A guest's root user can do in its kernel what it likes, mount the host's file system again included, for all of it ends
in the system calls of one process. So this process is put where they cannot do harm: the machine's file tree is there
read-only; private are /tmp, /dev, /dev/shm (the guest's memory) and /run, where the sockets are of services that would
act on request; /proc is read-only too, since root may set parameters of the whole machine there without any capability;
writable are the run directory and what the user names, alone; there is no network, no process of the host is visible,
and no capability is left.
Everything in the jail dies with its kernel, and that with Dilaton, by its life line (`clock_page.py`). bubblewrap could
die with its parent (--die-with-parent), but where it dies while it makes a jail it leaves the jail's first process
waiting for ever (`orphans.py`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dilaton.plan.bind import Bind

MOUNT = Path("/tmp/dilaton")  # noqa: S108 - inside the jail, where /tmp is private
RUN_DIR = MOUNT / "run"
AGENT = MOUNT / "agent"
CLOCK = MOUNT / "clock.so"
KERNEL = MOUNT / "kernel"

DEPTH = 2
"""Generations from bubblewrap's process on the host to the command in the jail: process 1 of the jail is between."""


@dataclass(frozen=True)
class Parts:
    """What of this machine is put into a jail.

    Attributes:
        run_dir: The run directory; None: the jail has one of its own.
        agent: The agent's program.
        clock: The clock's library.
        files: Of a run directory of the jail's own: open files, which are copied, by name.
        binds: What else.
        kernel: The directory of a kernel of our own; None for Debian's, which is in the machine's file tree.
    """

    run_dir: Path | None
    agent: Path
    clock: Path
    files: Mapping[str, int] = field(default_factory=dict)
    binds: Sequence[Bind] = ()
    kernel: Path | None = None


def command(bwrap: Path, parts: Parts, environment: Mapping[str, str]) -> list[str]:
    """The bubblewrap command line, to be followed by the command that runs in the jail."""
    argv = [str(bwrap), "--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    argv += ["--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--new-session"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    argv += ["--tmpfs", "/dev/shm", "--tmpfs", "/tmp", "--tmpfs", "/run"]  # noqa: S108
    for bind in parts.binds:
        argv += ["--bind" if bind.writable else "--ro-bind", bind.path, bind.path]
    if parts.run_dir is None:
        argv += ["--dir", str(RUN_DIR)]
    else:
        argv += ["--bind", str(parts.run_dir), str(RUN_DIR)]
    for name, file in parts.files.items():
        argv += ["--file", str(file), str(RUN_DIR / name)]
    argv += ["--ro-bind", str(parts.agent), str(AGENT), "--ro-bind", str(parts.clock), str(CLOCK)]
    argv += ["--ro-bind", str(parts.kernel), str(KERNEL)] if parts.kernel else []
    argv += ["--chdir", "/", "--clearenv"]
    for name, value in environment.items():
        argv += ["--setenv", name, value]
    return [*argv, "--"]
