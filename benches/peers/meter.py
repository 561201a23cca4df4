"""What a command costs, with all processes that come of it: also those that nobody waits for, such as what a jail ends.

A control group of its own counts their CPU time, by its second version (`cpu.stat`) or its first (`cpuacct.usage`),
which takes root. Memory is what the group's processes have for themselves and share among each other, without files
that the kernel keeps for all, looked at ten times a second of the host.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

GROUPS = Path("/sys/fs/cgroup")
GROUP = "dilaton-peers-"
"""What a group's name begins with; the process that measures is the rest."""

LOOK_HOST_S = 0.1
END_HOST_S = 10.0


@dataclass(frozen=True)
class Cost:
    """What a command cost, and whether it went well."""

    cpu_s: float
    host_s: float
    memory_bytes: int
    status: int


class Group:
    """A control group."""

    def __init__(self) -> None:
        """Makes it.

        Raises:
            OSError: this user may not.
        """
        self._second = (GROUPS / "cgroup.controllers").exists()
        name = f"{GROUP}{os.getpid()}"
        self._cpu, self._memory = (
            (GROUPS / name, GROUPS / name) if self._second else (GROUPS / "cpuacct" / name, GROUPS / "memory" / name)
        )
        if self._second:
            (GROUPS / "cgroup.subtree_control").write_text("+cpu +memory")
        for path in {self._cpu, self._memory}:
            path.mkdir()

    def join(self) -> None:
        """Has this process, and all that will come of it, be in the group."""
        for path in {self._cpu, self._memory}:
            (path / "cgroup.procs").write_text(str(os.getpid()))

    def cpu_s(self) -> float:
        """CPU time of all that were in it."""
        if self._second:
            return int(_fields(self._cpu / "cpu.stat")["usage_usec"]) / 1e6
        return int((self._cpu / "cpuacct.usage").read_text()) / 1e9

    def memory_bytes(self) -> int:
        """Memory of all that are in it."""
        fields = _fields(self._memory / "memory.stat")
        names = ("anon", "shmem") if self._second else ("total_rss", "total_shmem")
        return sum(int(fields[name]) for name in names)

    def remove(self) -> None:
        """Removes it, once the last process has left."""
        end = time.monotonic() + END_HOST_S
        for path in {self._cpu, self._memory}:
            while path.exists():
                try:
                    _remove(path)
                except OSError:
                    if time.monotonic() > end:
                        raise
                    time.sleep(LOOK_HOST_S)


def forget_ended() -> None:
    """Removes the groups of processes that were killed while they measured."""
    for path in [*GROUPS.glob(f"{GROUP}*"), *GROUPS.glob(f"*/{GROUP}*")]:
        if not Path("/proc", path.name.removeprefix(GROUP)).exists():
            with contextlib.suppress(OSError):  # some process is still in it
                _remove(path)


def _remove(path: Path) -> None:
    """Removes a group; those that Dilaton made below it go first."""
    for below in sorted(path.rglob("*/"), reverse=True):
        below.rmdir()
    path.rmdir()


def _fields(path: Path) -> dict[str, str]:
    return dict(line.split() for line in path.read_text().splitlines())


@contextlib.contextmanager
def _group() -> Iterator[Group]:
    group = Group()
    try:
        yield group
    finally:
        group.remove()


def cost(command: list[str], log: Path, environment: dict[str, str]) -> Cost:
    """Runs a command to its end; what it says goes to `log`."""
    with _group() as group, log.open("w") as said:
        peak_bytes, over = 0, threading.Event()

        def look() -> None:
            nonlocal peak_bytes
            while not over.wait(LOOK_HOST_S):
                peak_bytes = max(peak_bytes, group.memory_bytes())

        looking = threading.Thread(target=look)
        begin = time.monotonic()
        process = subprocess.Popen(
            command,
            preexec_fn=group.join,
            stdin=subprocess.DEVNULL,
            stdout=said,
            stderr=subprocess.STDOUT,
            env=os.environ | environment,
        )
        looking.start()
        try:
            status = process.wait()
        finally:
            over.set()
            looking.join()
        return Cost(group.cpu_s(), time.monotonic() - begin, peak_bytes, status)
