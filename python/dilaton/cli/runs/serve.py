"""`dilaton serve`: becomes the server's process, which is no part of the command line."""

from __future__ import annotations

import json
import os
from importlib.util import find_spec
from pathlib import Path
from typing import NoReturn

from dilaton.cli.errors import BadInputError
from dilaton.host.errors import HostLacksError
from dilaton.host.processes import PYTHON

NEEDED = ("fastapi", "uvicorn", "sqlalchemy", "alembic", "argon2", "websockets")
"""What the server imports that nothing else does."""


def become_server(
    config: Path | None,
    port: int | None,
    host: str | None,
    data: Path | None,
    at_once: int | None,
    backup: Path | None = None,
    restore: Path | None = None,
) -> NoReturn:
    """Becomes the server. What is None is as the file says, or as usual.

    Raises:
        HostLacksError: it is not installed.
        BadInputError: it cannot do both.
    """
    if backup is not None and restore is not None:
        raise BadInputError("--backup, --restore: one of them at a time")
    if lacking := [name for name in NEEDED if find_spec(name) is None]:
        raise HostLacksError(
            f"the server's packages are not installed: {', '.join(lacking)}", "pip install dilaton[server]"
        )
    asked = {
        "config": config and str(config),
        "port": port,
        "host": host,
        "directory": data and str(data.absolute()),
        "at_once": at_once,
        "backup": backup and str(backup.absolute()),
        "restore": restore and str(restore.absolute()),
    }
    asked = {name: value for name, value in asked.items() if value is not None}
    os.execv(PYTHON[0], [*PYTHON, "-m", "dilaton.server", json.dumps(asked)])
