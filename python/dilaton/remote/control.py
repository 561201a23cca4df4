"""The verbs of a run's control socket (docs/control-protocol.md), asked of its server."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from dilaton.remote.server import RemoteRun
from dilaton.run.control.answers import (
    FAULT_BEGIN,
    FAULT_LIST,
    FAULT_UNDO,
    LINK_CHANGE,
    LINK_SHOW,
    RESUME,
    SUSPEND,
    Answer,
    Name,
)

WAYS: dict[str, tuple[str, str]] = {
    SUSPEND: ("POST", "/suspend"),
    RESUME: ("POST", "/resume"),
    LINK_SHOW: ("GET", "/links"),
    LINK_CHANGE: ("POST", "/links"),
    FAULT_LIST: ("GET", "/faults"),
    FAULT_BEGIN: ("POST", "/faults"),
    FAULT_UNDO: ("POST", "/faults/undo"),
}
"""How a server is asked for each."""

HERE = "directory"
"""What a run is told of this machine, which is another one's affair at a server."""


class Control:
    """As `dilaton.run.control.requests.Client`, of a run of a server."""

    def __init__(self, run: RemoteRun) -> None:
        """Asks nothing yet."""
        self._run = run

    def __enter__(self) -> Control:
        """This one."""
        return self

    def __exit__(self, *_: object) -> None:
        """There is nothing to close."""

    def request(self, verb: Name[Answer], **arguments: Any) -> Answer:
        """Asks for something, and waits until it is done.

        Args:
            verb: One of `WAYS`.
            arguments: As of the control socket.

        Raises:
            ServerError: it is refused, or the server cannot be reached.
        """
        method, path = WAYS[verb]
        asked = {name: value for name, value in arguments.items() if name != HERE}
        query = "&".join(f"{name}={quote(str(value), safe='')}" for name, value in asked.items())
        if method == "GET":
            answered = self._run.asker.ask(method, f"{self._run.path}{path}{query and f'?{query}'}")
        else:
            answered = self._run.asker.ask(method, f"{self._run.path}{path}", asked)
        found: Answer = answered
        return found
