"""Control groups (cgroup v2) of jails: what all processes of a guest together may take of this machine.

A jail gives each place that a guest's root can write a size. But a guest that takes over its kernel is a process of the
user's, and may ask the host for memory and processes as every other one. That is bounded by a control group, where this
process may make one: where the group that it is in, or that one's parent, is the user's and hands down controllers. So
it is for everything that runs below the user's own systemd (`systemd-run --user --scope`), and in a container with a
delegated group. A group that has processes of its own cannot hand down controllers unless it is the root of all, so its
parent is where a sibling of ours can be made.

The limits are generous, since whoever reaches them is broken or hostile: a guest that was slowed by a limit would be
wrong in virtual time. Memory that is asked for beyond the limit ends the whole guest (memory.oom.group).
"""

from __future__ import annotations

import contextlib
import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from dilaton.host.errors import GuestError
from dilaton.host.here.jail import jail
from dilaton.host.here.jail.limits import processes_max

CONTROLLERS = ("memory", "pids", "cpu")
"""The controllers by which we set limits; each is used where it is handed down."""

PREFIX = "dilaton-"

STUB_BYTES = 64 << 10
"""Memory of the host's kernel for a process of a guest: descriptors, stacks, page tables."""

MEMORY_BYTES_BESIDE = 256 << 20
"""What a guest's kernel takes of the host's memory beside the guest's own: its program and files that it reads."""

CPU_PERIOD_US = 100_000

CPUS_MAX = 2
"""A guest computes on one core; a thread of its kernel waits for disks beside that."""

_numbers = itertools.count()


@dataclass(frozen=True)
class Place:
    """Where control groups can be made.

    Attributes:
        directory: Of the group that they are made in.
        controllers: What it hands down of `CONTROLLERS`, in that order.
    """

    directory: Path
    controllers: tuple[str, ...]


def find(proc: Path = Path("/proc/self")) -> Place | None:
    """Where this process may make control groups with limits; None where it may not.

    Args:
        proc: The directory of this process below /proc.
    """
    own = own_directory((proc / "cgroup").read_text(), (proc / "mountinfo").read_text())
    if own is None:
        return None
    return next((place for directory in (own, own.parent) if (place := _usable(directory))), None)


def own_directory(cgroup: str, mountinfo: str) -> Path | None:
    """The directory of the cgroup v2 that a process is in; None where none is mounted.

    Args:
        cgroup: The text of its /proc/PID/cgroup.
        mountinfo: That of its /proc/PID/mountinfo.
    """
    group = next((line.removeprefix("0::") for line in cgroup.splitlines() if line.startswith("0::")), None)
    for line in mountinfo.splitlines():
        fields, _, source = line.partition(" - ")
        root, mount = fields.split()[3:5]
        if group is not None and source.startswith("cgroup2 ") and (group + "/").startswith(root.rstrip("/") + "/"):
            return Path(mount) / group[len(root.rstrip("/")) :].lstrip("/")
    return None


def _usable(directory: Path) -> Place | None:
    try:
        handed_down = (directory / "cgroup.subtree_control").read_text().split()
    except OSError:
        return None
    controllers = tuple(name for name in CONTROLLERS if name in handed_down)
    # Who becomes a member of a group there has to leave another one below it, which takes leave to write this file.
    is_ours = all(os.access(path, os.W_OK) for path in (directory, directory / "cgroup.procs"))
    return Place(directory, controllers) if controllers and is_ours else None


@contextlib.contextmanager
def made(place: Place | None, memory_bytes: int, nice: int) -> Iterator[Path | None]:
    """Makes a control group for a jail, and removes it if the body fails; else the jail's warden does.

    Args:
        place: Where; None: none is made.
        memory_bytes: What the guest is given, and what it shares with others.
        nice: How nice the guest is.

    Yields:
        Its directory.

    Raises:
        GuestError: The host refuses.
    """
    if place is None:
        yield None
        return
    _sweep(place.directory)
    group = place.directory / f"{PREFIX}{os.getpid()}-{next(_numbers)}"
    with contextlib.ExitStack() as undo:
        try:
            group.mkdir()
            undo.callback(_remove, group)
            for name, value in limits(memory_bytes, nice, place.controllers).items():
                (group / name).write_text(value)
        except OSError as error:
            raise GuestError(f"no control group can be made for the guest: {error}") from error
        yield group
        undo.pop_all()


def limits(memory_bytes: int, nice: int, controllers: tuple[str, ...]) -> Mapping[str, str]:
    """The files of a guest's control group, and what is written to each.

    Args:
        memory_bytes: What the guest is given.
        nice: How nice it is.
        controllers: What limits can be set by.
    """
    processes = processes_max(memory_bytes)
    places_bytes = jail.BESIDE_MEMORY_BYTES + jail.TMP_BYTES + jail.RUN_BYTES
    files = {
        "memory": {
            "memory.max": str(memory_bytes + places_bytes + MEMORY_BYTES_BESIDE + processes * STUB_BYTES),
            "memory.oom.group": "1",
        },
        "pids": {"pids.max": str(processes)},
        "cpu": {
            "cpu.max": f"{CPUS_MAX * CPU_PERIOD_US} {CPU_PERIOD_US}",
            # Within a group alone niceness would weigh.
            "cpu.weight.nice": str(nice),
        },
    }
    return {name: value for controller in controllers for name, value in files[controller].items()}


def _sweep(directory: Path) -> None:
    """Removes empty groups of runs that were killed together with the wardens that would have removed them."""
    for group in directory.glob(f"{PREFIX}*"):
        maker = group.name.removeprefix(PREFIX).partition("-")[0]
        if maker.isdecimal() and not Path(f"/proc/{maker}").exists():
            _remove(group)


def _remove(group: Path) -> None:
    """Removes a group that has no members, if it is there."""
    with contextlib.suppress(OSError):
        group.rmdir()
