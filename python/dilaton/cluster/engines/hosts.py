"""Hosts by their names: a host agent is started on each by ssh, or whatever does as it does.

Of a host nothing is needed but that Dilaton is installed there, and that this user may start it without being asked for
a password.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from dilaton.cluster.engines.asking import Asking

NAME = re.compile(r"([A-Za-z0-9_][A-Za-z0-9_.-]*@)?[A-Za-z0-9_:\[][A-Za-z0-9_.:%\[\]-]*")
"""What names a host: as ssh takes it, and never one of its options."""

THIS = "localhost"
"""The host that is this machine, where nothing is needed to start an agent."""


@dataclass(frozen=True)
class Way:
    """How hosts are reached.

    Attributes:
        shell: The command that executes another on a host, as `ssh` does: a host's name and a line for a shell follow.
        program: Dilaton's on the hosts, as words for a shell.
        hub: Where the hub listens, an address of this machine, with a port or without; empty: where hosts reach it.
    """

    shell: Sequence[str]
    program: str
    hub: str


class Hosts(Asking):
    """The engine of hosts that are named."""

    def __init__(self, names: Sequence[str], way: Way) -> None:
        """Starts nothing yet.

        Raises:
            ValueError: One of them cannot be a host, or is named twice.
        """
        for number, name in enumerate(names):
            if not NAME.fullmatch(name):
                raise ValueError(f"{name!r}: not the name of a host, such as ws1, alice@ws1 or 192.0.2.7")
            if name in names[:number]:
                raise ValueError(f"{name}: named twice")
        super().__init__(way.hub)
        self._names, self._way = names, way

    @property
    def names(self) -> Sequence[str]:
        """See `Asking`."""
        return self._names

    @property
    def fix(self) -> str:
        """See `Asking`."""
        return f"dilaton cluster status {' '.join(self._names)}"

    def _command(self, name: str) -> Sequence[str]:
        if name == THIS:
            return [sys.executable, "-m", "dilaton.cluster.host_agent", "--say"]
        return [*self._way.shell, name, f"{self._way.program} cluster host-agent"]

    def _reached_at(self, name: str) -> str | None:
        return None if name == THIS else name.rpartition("@")[2].strip("[]")
