"""Whom a verb asks that steers a run: the run itself, by its control socket, or a server that has it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any, Protocol

from dilaton.run.control.answers import Answer, Name
from dilaton.run.control.requests import Client
from dilaton.service.catalogue import find


class Asked(Protocol):
    """Who answers the verbs of the control socket (docs/control-protocol.md)."""

    def request(self, verb: Name[Answer], **arguments: Any) -> Answer:
        """Asks for something, and waits until it is done."""


Reach = Callable[[str], AbstractContextManager[Asked]]
"""Finds a run by what it was called on the command line."""


def here(run: str) -> Client:
    """A run of this machine.

    Raises:
        ControlError: there is none, or it does not go on.
    """
    return Client(find(run))
