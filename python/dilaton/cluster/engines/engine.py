"""What finds machines and starts a host agent on each: all that a run over several machines has of an engine.

Which guests are on which machine, what machines say to each other, and what becomes of a run without one of them, is no
business of its.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from dilaton.plan.model import Plan


@dataclass(frozen=True)
class Host:
    """A machine.

    Attributes:
        name: By which messages name it.
        memory_bytes: What guests may take of it.
    """

    name: str
    memory_bytes: int


@dataclass(frozen=True)
class Order:
    """What a host agent is started with, which it reads from its standard input.

    Attributes:
        key: The run's, in hexadecimal: who has it belongs to the run.
        hub: Where the hub listens.
        number: Of the machine.
        directory: Where the machine keeps its part of the run; its parent is there. Empty: in a place of its own.
    """

    key: str
    hub: str
    number: int
    directory: str


class Engine(Protocol):
    """An engine, whose methods are called in their order here. `stop` may be called at any time, and again."""

    async def hosts(self, planned: Plan, *, jailed: bool) -> Sequence[Host]:
        """The machines that there are, each of which has what a plan needs.

        Raises:
            HostLacksError: One has not.
            GuestError: One cannot be asked.
        """

    def address(self) -> str:
        """Where the hub is to listen so that all machines reach it; a port of 0 is any."""

    async def start(self, host: Host, order: Order) -> None:
        """Starts the host agent of a machine.

        Raises:
            GuestError: It does not start.
        """

    def directory(self, number: int, run_dir: Path) -> Path | None:
        """Where machine `number` keeps its part of a run; None: it finds a place itself."""

    def there(self, host: Host) -> int:
        """How often the agent of a machine has said that it is there, which it does until it joins the run."""

    async def ended(self, host: Host) -> str:
        """Waits until the agent of a machine has ended, and says how, and what its last word was."""

    async def stop(self, lost: Sequence[Host] = ()) -> None:
        """Ends all agents, and with them everything that they have started; those of lost machines without patience."""
