"""The jail: what a guest kernel can see and touch of this machine.

A guest's root user can do in its kernel what it likes, mount the host's file system again included, for all of it ends
in the system calls of one process. So this process is put where they cannot do harm: the machine's file tree is there
read-only; private are /tmp, /dev, /dev/shm (the guest's memory) and /run, where the sockets are of services that would
act on request; /proc is read-only too, since root may set parameters of the whole machine there without any capability;
writable are the run directory and what the user names, alone; there is no network, no process of the host is visible,
and no capability is left. What is private is memory of the host, so each of these places has a size, and /dev cannot be
written.
Everything in the jail dies with its process 1, the kernel's guard (`crates/clock/src/host/guard.rs`), that with the
kernel, and the kernel with Dilaton, by its life line (`clock_page.py`). So bubblewrap is not to make a process 1 of its
own, which would wait for whatever outlives the kernel (--as-pid-1). It could die with its parent (--die-with-parent),
but where it dies while it makes a jail it leaves the jail's first process waiting for ever. So its parent is a warden,
which ends what it leaves (`warden.py`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dilaton.host.here.jail import warden
from dilaton.plan.bind import Bind

OWN_PLACES = tuple(Path(path) for path in ("/tmp", "/var/tmp", "/run", "/dev/shm"))  # noqa: S108
"""Where a guest has places of its own, in which nothing of this machine is seen."""

MOUNT = Path("/tmp/dilaton")  # noqa: S108 - inside the jail, where /tmp is private
RUN_DIR = MOUNT / "run"
AGENT = MOUNT / "agent"
CLOCK = MOUNT / "clock.so"
KERNEL = MOUNT / "kernel"

BESIDE_MEMORY_BYTES = 32 << 20
"""What /dev/shm has room for beside the guest's memory: so much longer is the kernel's file of it."""

TMP_BYTES = 64 << 20
"""The size of /tmp, where the plan is when there is no run directory."""

RUN_BYTES = 4 << 20

HIDDEN_BYTES = 4096
"""The size of an empty directory in the place of one that is hidden."""

DEPTH = warden.DEPTH + 2
"""Generations from the warden to the kernel: between are bubblewrap's process on the host, and the kernel's guard,
which is process 1 of the jail."""


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
        memory_bytes: What the guest is given; its memory is a file in the jail.
        hidden: Directories of this machine that are empty there, but for what else is put into them.
    """

    run_dir: Path | None
    agent: Path
    clock: Path
    files: Mapping[str, int] = field(default_factory=dict)
    binds: Sequence[Bind] = ()
    kernel: Path | None = None
    memory_bytes: int = 0
    hidden: Sequence[Path] = ()


def command(bwrap: Path, parts: Parts, environment: Mapping[str, str]) -> list[str]:
    """The bubblewrap command line, to be followed by the command that runs in the jail."""
    argv = [str(bwrap), "--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    argv += ["--as-pid-1", "--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--new-session"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    sizes = {"/dev/shm": parts.memory_bytes + BESIDE_MEMORY_BYTES, "/tmp": TMP_BYTES, "/run": RUN_BYTES}  # noqa: S108
    for place, size_bytes in sizes.items():
        argv += ["--size", str(size_bytes), "--tmpfs", place]
    for directory in parts.hidden:
        argv += ["--size", str(HIDDEN_BYTES), "--tmpfs", str(directory)]
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
    # Once everything is mounted below them.
    for directory in parts.hidden:
        argv += ["--remount-ro", str(directory)]
    argv += ["--remount-ro", "/dev", "--chdir", "/", "--clearenv"]
    for name, value in environment.items():
        argv += ["--setenv", name, value]
    return [*argv, "--"]
