"""`dilaton serve`: becomes the server's process, which is no part of the command line."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from dilaton.host.errors import HostLacksError
from dilaton.host.processes import PYTHON

NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "argon2", "websockets")
"""What the server imports that nothing else does."""


def become_server(port: int, host: str, data: Path | None, at_once: int) -> NoReturn:
    """Becomes the server.

    Raises:
        HostLacksError: it is not installed.
    """
    if lacking := [name for name in NEEDED if find_spec(name) is None]:
        raise HostLacksError(
            f"the server's packages are not installed: {', '.join(lacking)}", "pip install dilaton[server]"
        )
    directory = None if data is None else str(data.absolute())
    asked = {"port": port, "host": host, "directory": directory, "at_once": at_once}
    os.execv(PYTHON[0], [*PYTHON, "-m", "dilaton.server", json.dumps(asked)])
