"""The jail: what a guest kernel can see and touch of this machine.

A guest's root user can do in its kernel what it likes, mount the host's file system again included, for all of it ends
in the system calls of one process. So this process is put where they cannot do harm: the machine's file tree is there
read-only; private are /tmp, /dev, /dev/shm (the guest's memory) and /run, where the sockets are of services that would
act on request; /proc is read-only too, since root may set parameters of the whole machine there without any capability;
writable is the run directory alone; there is no network, no process of the host is visible, and no capability is left.
Everything in the jail dies with it, and it dies with Dilaton.
"""

from __future__ import annotations

from pathlib import Path

MOUNT = Path("/tmp/dilaton")  # noqa: S108 - inside the jail, where /tmp is private
RUN_DIR = MOUNT / "run"
AGENT = MOUNT / "agent"
CLOCK = MOUNT / "clock.so"

DEPTH = 2
"""Generations from bubblewrap's process on the host to the command in the jail: process 1 of the jail is between."""


def command(bwrap: Path, run_dir: Path, agent: Path, clock: Path, environment: dict[str, str]) -> list[str]:
    """The bubblewrap command line, to be followed by the command that runs in the jail."""
    argv = [str(bwrap), "--unshare-user", "--unshare-net", "--unshare-pid", "--unshare-ipc", "--unshare-uts"]
    argv += ["--uid", "0", "--gid", "0", "--cap-drop", "ALL", "--die-with-parent", "--new-session"]
    argv += ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
    argv += ["--tmpfs", "/dev/shm", "--tmpfs", "/tmp", "--tmpfs", "/run"]  # noqa: S108
    argv += ["--bind", str(run_dir), str(RUN_DIR)]
    argv += ["--ro-bind", str(agent), str(AGENT), "--ro-bind", str(clock), str(CLOCK)]
    argv += ["--chdir", "/", "--clearenv"]
    for name, value in environment.items():
        argv += ["--setenv", name, value]
    return [*argv, "--"]
