"""Hosts that are network namespaces, with addresses and a network of their own, made by an ordinary user.

One holds who conducts the run, at 10.77.0.1; host N is at 10.77.N.2, on a cable of its own. What executes on a host is a
script that enters its namespace, as ssh would go to a machine; each has a place of its own for what agents keep.
"""

from __future__ import annotations

import contextlib
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.conftest import PATIENCE_HOST_S, command_line, environment

CONDUCTOR = "10.77.0.1"

SHELL = """#!/bin/sh
host=$1; shift
export XDG_CACHE_HOME={directory}/$host
exec nsenter --target "$(cat {directory}/$host/pid)" --net sh -c "exec $*"
"""


@dataclass(frozen=True)
class NamedHosts:
    """Hosts, as many as were asked for."""

    directory: Path
    pid: int
    """Of who holds the namespaces of who conducts."""
    names: list[str]

    def entered(self, *command: str) -> list[str]:
        """A command, executed where runs are conducted."""
        return ["nsenter", f"--target={self.pid}", "--user", "--net", "--preserve-credentials", *command]

    def cut(self, number: int) -> None:
        """Pulls the cable of a host."""
        subprocess.run(self.entered("ip", "link", "set", f"host{number}", "down"), check=True)

    def join(self, number: int) -> None:
        """Plugs it in again."""
        for arguments in (
            ("link", "set", f"host{number}", "up"),
            ("route", "replace", self.names[number - 1], "dev", f"host{number}", "src", CONDUCTOR),
        ):
            subprocess.run(self.entered("ip", *arguments), check=True)

    def go(self, number: int) -> None:
        """Cuts a host off, so that nothing can be started there either."""
        pid = self._pid(number)
        pid.rename(pid.with_name("away"))
        self.cut(number)

    def come_back(self, number: int) -> None:
        """Undoes that."""
        pid = self._pid(number)
        with contextlib.suppress(FileNotFoundError):
            pid.with_name("away").rename(pid)
        self.join(number)

    def _pid(self, number: int) -> Path:
        return self.directory / self.names[number - 1] / "pid"

    def holder(self, number: int) -> int:
        """The process that holds the namespace of a host."""
        return int(self._pid(number).read_text())

    def environment(self) -> dict[str, str]:
        """That of who conducts."""
        program = ["env", f"PYTHONPATH={environment()['PYTHONPATH']}", sys.executable, "-m", "dilaton"]
        reached = {"DILATON_RSH": str(self.directory / "shell"), "DILATON_REMOTE": shlex.join(program)}
        return environment() | reached

    def dilaton(self, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
        """Runs `dilaton` to its end where runs are conducted."""
        command = self.entered(*command_line(*arguments))
        return subprocess.run(command, env=self.environment(), capture_output=True, text=True, check=False)

    @contextlib.contextmanager
    def started(self, *arguments: str | Path, stdout: int | None = None) -> Iterator[subprocess.Popen[str]]:
        """Starts `dilaton` there, and ends it with the context."""
        command, pipe = self.entered(*command_line(*arguments)), subprocess.PIPE
        with subprocess.Popen(command, env=self.environment(), stdout=stdout, stderr=pipe, text=True) as process:
            try:
                yield process
            finally:
                process.kill()

    def kept(self) -> list[Path]:
        """What agents keep on hosts."""
        return [path for name in self.names for path in (self.directory / name).glob("dilaton/machines/*")]


@contextlib.contextmanager
def named_hosts(directory: Path, count: int) -> Iterator[NamedHosts]:
    """So many hosts, for as long as the context is."""
    with contextlib.ExitStack() as stack:

        def holding(*command: str) -> int:
            process = subprocess.Popen([*command, "sleep", "infinity"])
            stack.callback(process.wait)
            stack.callback(process.kill)
            end = time.monotonic() + PATIENCE_HOST_S
            # It is in its namespaces once it is the program that only waits.
            while Path(f"/proc/{process.pid}/comm").read_text() != "sleep\n":
                assert time.monotonic() < end and process.poll() is None, command
                time.sleep(0.01)
            return process.pid

        pid = holding("unshare", "--user", "--map-root-user", "--net")
        hosts = NamedHosts(directory, pid, [f"10.77.{number}.2" for number in range(1, count + 1)])

        def ip(*arguments: str, of: int = pid) -> None:
            command = hosts.entered("nsenter", f"--target={of}", "--net", "ip", *arguments)
            subprocess.run(command, check=True)

        ip("link", "set", "lo", "up")
        ip("address", "add", CONDUCTOR, "dev", "lo")
        for number, name in enumerate(hosts.names, 1):
            host = holding(*hosts.entered("unshare", "--net"))
            ip("link", "add", f"host{number}", "type", "veth", "peer", "name", "eth0", "netns", str(host))
            hosts.join(number)
            for link in ("lo", "eth0"):
                ip("link", "set", link, "up", of=host)
            ip("address", "add", name, "dev", "eth0", of=host)
            ip("route", "add", CONDUCTOR, "dev", "eth0", of=host)
            (directory / name).mkdir()
            (directory / name / "pid").write_text(f"{host}\n")
        shell = directory / "shell"
        shell.write_text(SHELL.format(directory=directory))
        shell.chmod(0o755)
        yield hosts


def processes_of(pid: int) -> dict[int, str]:
    """All processes in the network namespace of one, but for those that hold it, with their command lines."""
    wanted, found = os.readlink(f"/proc/{pid}/ns/net"), {}
    for process in Path("/proc").glob("[0-9]*"):
        # Some end meanwhile, others are somebody else's.
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_text().replace("\0", " ")
            if command and os.readlink(process / "ns/net") == wanted:
                found[int(process.name)] = command
    return {number: command for number, command in found.items() if not command.startswith("sleep infinity")}
