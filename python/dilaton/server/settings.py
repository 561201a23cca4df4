"""How a server is set up."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

PORT = 8642

LOOPBACK = ("127.0.0.1", "::1", "localhost")

BODY_BYTES_MAX = 4 << 20
"""The longest body of a request; the largest is a lab, whose text has at most a million characters."""

MESSAGE_BYTES_MAX = 1 << 18
"""Of a WebSocket's message; more than anybody pastes at once."""


def default_directory() -> Path:
    """Where a server keeps its data, unless told: a directory of the user's own, as the XDG specification has it."""
    data = os.environ.get("XDG_DATA_HOME", "")
    return (Path(data) if os.path.isabs(data) else Path.home() / ".local" / "share") / "dilaton" / "server"


@dataclass(frozen=True)
class Settings:
    """How a server is set up.

    Attributes:
        directory: Where its data are: the database, and a directory for each run.
        host, port: Where it listens.
        url: Under which people reach it; empty: by its host and port.
        at_once: How many runs go on at once; more wait in the queue.
    """

    directory: Path
    host: str = LOOPBACK[0]
    port: int = PORT
    url: str = ""
    at_once: int = 1

    @property
    def origin(self) -> str:
        """What browsers say of pages of this server: scheme, host and port."""
        if self.url:
            parts = urlsplit(self.url)
            return f"{parts.scheme}://{parts.netloc}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"http://{host}:{self.port}"

    @property
    def origins(self) -> frozenset[str]:
        """Under which origins the server is known: on loopback, under all names of that."""
        if self.url or self.host not in LOOPBACK:
            return frozenset({self.origin})
        return frozenset(f"http://{name}:{self.port}" for name in ("127.0.0.1", "[::1]", "localhost"))

    @property
    def hosts(self) -> frozenset[str]:
        """What requests may name as their host. Another is that of a page whose name was pointed at this server."""
        return frozenset(origin.partition("://")[2] for origin in self.origins)

    @property
    def is_secure(self) -> bool:
        """Whether people reach it over TLS, so that cookies travel over nothing else."""
        return self.origin.startswith("https:")

    @property
    def database(self) -> Path:
        """The file of the database."""
        return self.directory / "server.sqlite"

    @property
    def runs(self) -> Path:
        """The directory of the runs' directories."""
        return self.directory / "runs"

    @property
    def layouts(self) -> Path:
        """The directory of where labs' nodes are drawn."""
        return self.directory / "layouts"
